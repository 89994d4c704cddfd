"""Does scheduling cost those anything who have nothing to gain from it?

    python benchmarks/gil_cpu_threads.py [--threads 1,2,4,8] [--work nbody,json,...] [--rounds 15]

A countdown of the same length in 1, 2, 4 and 8 threads, and single-threaded programs of the kinds that the
suite pyperformance has. In each process the quickest of some runs counts. CPU time for a single thread, which
is what is left of a run when the machine's mood is taken away; wall-clock time for several. Stock CPython,
`sys.setswitchinterval(.0005)` and `fairlead run` take turns.
"""

from __future__ import annotations

from harness import FIGURES, Row, Target, answer, arguments, run, subject, ways

WORK = ("nbody", "fannkuch", "json", "pickle", "regex", "objects", "generators", "files")


def row(work: str, threads: int, scale: float, runs: int) -> Row:
    def take(mode: str) -> FIGURES:
        settings = {"work": work, "threads": threads, "scale": scale, "runs": runs}
        with subject("compute", ways()[mode], **settings) as (process, _):
            return answer(process)

    figure = "CPU s" if threads == 1 else "wall s"
    name = f"{threads} CPU threads" if work == "countdown" else work
    return Row(name, take, list(ways()), [Target(figure, "fairlead", of="stock", at_most=1.02)])


def main() -> None:
    parser = arguments(__doc__ or "", rounds=15)
    parser.add_argument("--threads", default="1,2,4,8")
    parser.add_argument("--work", default=",".join(WORK))
    options = parser.parse_args()
    scale, runs = (0.01, 1) if options.quick else (1.0, 5)
    rows = [row("countdown", int(threads), scale, runs) for threads in options.threads.split(",") if threads]
    rows += [row(work, 1, scale, runs) for work in options.work.split(",") if work]
    run("Does scheduling cost those anything who have nothing to gain from it?", rows, options)


if __name__ == "__main__":
    main()

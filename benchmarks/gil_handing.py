"""Do threads that hand work to each other do so as fast as under stock CPython?

    python benchmarks/gil_handing.py [--cpu-threads 0,1] [--foreign 2] [--rounds 5] [--seconds 2]

`lock`: two threads, each with a lock on which the other wakes it. `queue`: the same with a queue.Queue each.
`submit`: `submit().result()` of a ThreadPoolExecutor with one thread. `pipeline`: three threads with a queue
before each, and some ten microseconds of work in each. There is one item, so no two threads ever have work at
once. A hop is there and back: through one other thread, in the pipeline through three. `full`: a queue.Queue
with room for one item, and a thread that takes it. `semaphore`: 16 threads take turns with a
threading.Semaphore. `notify`: a hundred threads wait for a Condition, are told at once, and answer.
`--foreign` adds busy processes to the machine.

Stock CPython, `sys.setswitchinterval(.0005)` and `fairlead run` take turns. Each figure is the median of the
rounds [lowest..highest].
"""

from __future__ import annotations

from typing import Any

from harness import FIGURES, MachineShares, Row, Target, Way, answer, arguments, run, subject, ways
from processes import REFERENCE

KINDS = ("lock", "queue", "submit", "pipeline", "full", "semaphore", "notify")


def row(kind: str, cpu_threads: int, modes: dict[str, Way], options: Any) -> Row:
    def take(mode: str) -> FIGURES:
        settings = {"kind": kind, "seconds": options.seconds, "cpu_threads": cpu_threads}
        with subject("handing", modes[mode], **settings) as (process, _):
            machine = MachineShares()
            return {**answer(process), **machine.figures()}

    targets = [
        Target("hops/s", mode, of=REFERENCE, which=max if cpu_threads else min, at_least=0.9)
        for mode in modes
        if mode not in REFERENCE
    ]
    name = f"{kind}, {cpu_threads} CPU threads, {options.foreign} foreign processes"
    return Row(name, take, list(modes), targets)


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--cpu-threads", default="0,1")
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    if options.quick:
        options.only, options.cpu_threads, options.seconds = "queue", "0", 0.2
    modes = ways()
    rows = [
        row(kind, int(cpu_threads), modes, options)
        for cpu_threads in options.cpu_threads.split(",")
        for kind in options.only.split(",")
    ]
    run("Do threads that hand work to each other do so as fast as under stock CPython?", rows, options)


if __name__ == "__main__":
    main()

"""What do fairlead's hooks add to one release and retake of the GIL that no other thread wants?

    python benchmarks/gil_pair.py [--rounds 15]

In nanoseconds of CPU time: with no hooks (stock), while counting (`gil.observe`), recording (`gil.record`)
and scheduling (`gil.schedule`), after another thread has waited for the GIL, and before any has (resting).
"""

from __future__ import annotations

from harness import FIGURES, Row, Sample, Target, answer, arguments, run, show, spread, subject

LIMIT_NS = 35
HOOKS = ("counting", "recording", "scheduled", "resting")


def over_stock(samples: list[Sample], mode: str) -> list[float]:
    stock = Target("pair ns", "stock").values(samples)
    return [
        mine - theirs for mine, theirs in zip(Target("pair ns", mode).values(samples), stock, strict=True)
    ]


def main() -> None:
    options = arguments(__doc__ or "", rounds=15).parse_args()
    calls, runs = (1000, 2) if options.quick else (2000, 400)

    def take(mode: str) -> FIGURES:
        with subject("pair", hooks=mode, calls=calls, runs=runs) as (process, _):
            return answer(process)

    question = "What do the hooks add to a release and retake of the GIL?"
    samples = run(question, [Row("one thread, none waits", take, ["stock", *HOOKS])], options)
    for mode in HOOKS:
        added = over_stock(samples, mode)
        verdict = "met" if sorted(added)[len(added) // 2] <= LIMIT_NS else "MISSED"
        judged = f"   must be <= {show(LIMIT_NS)}: {verdict}" if mode == "scheduled" else ""
        print(f"    {mode:<10} over stock: {spread(added)} ns{judged}")


if __name__ == "__main__":
    main()

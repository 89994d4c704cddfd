"""How long does a thread that gives the GIL up often wait to get it back, at the worst?

    python benchmarks/gil_stalls.py [--foreign 2] [--rounds 5] [--seconds 5]

Three programs of the standard library only, each beside one thread that computes. `yielding`: a thread calls
`time.sleep(0)` each 5 ms while another ticks (sleeps 1 ms, computes .05 ms). `workers`: eight threads take
jobs from a queue, 100 a second at random times; each computes, sleeps twice, and computes, 3.8 ms in all.
`locked`: a thread takes a lock that another one, which computes, holds for a fifth of its time, beside eight
threads that serve for half a core; when it is late, it calls `time.sleep(0)` in between. Medians tell little
here: the maximum counts. `--foreign` adds busy processes to the machine.

Stock CPython, `sys.setswitchinterval(.0005)` and `fairlead run` take turns. Each figure is the median of the
rounds [lowest..highest].
"""

from __future__ import annotations

import time
from typing import Any

from harness import (
    FIGURES,
    MachineShares,
    Row,
    Target,
    Way,
    answer,
    arguments,
    run,
    subject,
    ways,
    work_seconds,
)
from processes import REFERENCE, steps_per_ms

KINDS = {
    "yielding": "time.sleep(0) beside a ticking thread",
    "workers": "eight workers with short sleeps",
    "locked": "a lock that a computing thread holds",
}


class Program:
    """One of the programs. All modes of a round have the same arrivals and steps."""

    def __init__(self, kind: str, modes: dict[str, Way], options: Any) -> None:
        self.kind, self.modes, self.options = kind, modes, options
        self.taken = 0
        self.rate = 0.0

    def take(self, mode: str) -> FIGURES:
        turn, first = divmod(self.taken, len(self.modes))
        if first == 0:
            self.rate = steps_per_ms()
        self.taken += 1
        settings = {"kind": self.kind, "seconds": self.options.seconds, "seed": self.options.seed + turn}
        with subject("stalls", self.modes[mode], cpu_threads=1, steps_per_ms=self.rate, **settings) as (
            process,
            facts,
        ):
            machine = MachineShares()
            begun, before = time.monotonic(), work_seconds(facts)
            figures = answer(process)
            share = (work_seconds(facts) - before) / (time.monotonic() - begun)
            return {**figures, "CPU share": share, **machine.figures()}

    def row(self) -> Row:
        targets = [
            Target("max, ms", mode, of=REFERENCE, which=max, at_most=1.1, how="every")
            for mode in self.modes
            if mode not in REFERENCE
        ]
        name = f"{KINDS[self.kind]}, {self.options.foreign} foreign processes"
        return Row(name, self.take, list(self.modes), targets)


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.quick:
        options.seconds = 0.3
    modes = ways()
    rows = [Program(kind, modes, options).row() for kind in options.only.split(",")]
    run("How long do threads that give the GIL up often wait for it at the worst?", rows, options)


if __name__ == "__main__":
    main()

"""How long does a computation take beside threads that leave the GIL for short calls, and what do they get?

    python benchmarks/gil_beside.py [--foreign 2] [--rounds 5] [--kinds sha256,stat+log,...]
                                    [--free-threaded PYTHON] [--apart] [--recorded]

A row is a fixed computation (.4 s by itself) beside one thread of each kind that its name lists; `NxKIND`
stands for so many. `frames` in a name has the computation come in frames of 28 ms, 5 ms of sleep between two.
Stock CPython, `sys.setswitchinterval(.0005)` and `fairlead run` take turns; with `--apart` also stock CPython
with the callers in a process of their own, with `--free-threaded` also an interpreter without a GIL. With
`--recorded` also `fairlead record --policy interactive`, whose recording says for what part of the time the
computation waited although no thread held the GIL.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import FIGURES, Row, Target, Way, answer, run, server_arguments, subject, ways
from processes import steps_per_ms

from fairlead.gil.analysis.analyse import analyse
from fairlead.record.recording import Recording

RIVALS = ("stock", "interval")
FRAME_MS = 28.0
ROWS = (
    "sha256", "compress", "crc32", "stat", "log", "sqlite", "socket", "select", "numpy", "redis", "nap",
    "stat+log", "sha256+redis", "sqlite+log+nap", "crc32+socket+select+numpy", "2xchat", "frames+2xchat",
)  # fmt: skip
"""Each kind, mixtures, and frames beside threads that run mostly Python code."""


def kinds_of(row: str) -> list[str]:
    found = (re.fullmatch(r"(?:(\d+)x)?(\w+)", part) for part in row.split("+"))
    pairs = [(int(one[1] or 1), one[2]) for one in found if one]
    return [kind for count, kind in pairs for _ in range(count) if kind != "frames"]


class Beside:
    """A row's program."""

    def __init__(self, name: str, modes: dict[str, Way], options: argparse.Namespace) -> None:
        self.name, self.modes = name, modes
        self.frames = round(options.seconds * 1e3 / FRAME_MS) if "frames" in name else 1
        self.ms = options.seconds * 1e3

    def take(self, mode: str) -> FIGURES:
        if mode == "recorded":
            with TemporaryDirectory() as folder:
                return self._recorded(Path(folder) / "out.flrec")
        return self._run(self.modes[mode])

    def _recorded(self, path: Path) -> FIGURES:
        fairlead = str(Path(sys.executable).with_name("fairlead"))
        command = (fairlead, "record", "--policy", "interactive", "-o", str(path), "--")
        figures = self._run(Way(command))
        seen = analyse(Recording(path))
        main = next(thread.serial for thread in seen.threads if thread.name == "MainThread")
        free = sum(cell.seconds for cell in seen.blame if (cell.waiter, cell.holder) == (main, 0))
        return {**figures, "waited for a free GIL": free / figures["computation, s"]}

    def _run(self, way: Way) -> FIGURES:
        steps = round(self.ms * steps_per_ms())
        settings = {"kinds": kinds_of(self.name), "steps": steps, "frames": self.frames}
        with subject("beside", way, **settings) as (process, _):
            return answer(process)

    def row(self) -> Row:
        slow = [Target("computation, s", "fairlead", of=RIVALS, which=max, at_most=1.3)]
        if self.frames > 1:
            slow.append(Target("longest part, s", "fairlead", of=RIVALS, which=max, at_most=1.3))
        calls = Target("calls/s", "fairlead", of=RIVALS, which=max, at_least=1.0)
        return Row(self.name, self.take, list(self.modes), [*slow, calls])


def main() -> None:
    parser = server_arguments(__doc__ or "", rounds=5)
    parser.add_argument("--kinds", default=",".join(ROWS))
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--apart", action="store_true", help="also: the callers in another process")
    parser.add_argument("--recorded", action="store_true", help="also: what a recording says")
    options = parser.parse_args()
    if options.quick:
        options.seconds = 0.06
    modes = ways()
    if options.apart:
        modes["another process"] = Way(settings={"apart": True})
    if options.free_threaded:
        modes["free-threaded"] = Way(python=options.free_threaded)
    if options.recorded:
        modes["recorded"] = Way()
    rows = [Beside(name, modes, options).row() for name in options.kinds.split(",")]
    run("How long does a computation take beside threads that leave the GIL for short calls?", rows, options)


if __name__ == "__main__":
    main()

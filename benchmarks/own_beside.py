"""How long does a computation take beside threads that leave the GIL for short calls, and what do they get?

    fairlead lab run benchmarks/own_beside.py --budget 5m -v
    fairlead lab run benchmarks/own_beside.py:redis --variant stock --variant fairlead --beside 2 -v

Recorded: by `fairlead record --policy interactive`, whose recording says for what part of its time the
computation waited although no thread held the GIL.
"""

EXPERIMENT = {
    "id": "own.beside",
    "question": "How long does a computation take beside threads that leave the GIL for short calls?",
    "explanation": (
        "One thread computes, for n ms if it were alone. Beside it each kind of calls has a thread that "
        "makes them over and over, in the same process unless the way says another. The computation's time "
        "counts, and how many calls were made meanwhile."
    ),
    "size_name": "ms",
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "computation_s",
    "metrics": [
        {"name": "computation_s", "title": "computation", "unit": "s"},
        {"name": "longest_s", "title": "longest part", "unit": "s"},
        {"name": "calls_per_s", "title": "calls", "unit": "per s"},
        {"name": "free_share", "title": "waits, GIL free", "unit": "share"},
    ],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": ["stock", "interval", "fairlead", "another process", "free-threaded", "recorded"],
            "help": "how threads get the GIL: by CPython, with a switch interval of 0.5 ms, by fairlead run",
        },
    },
    "claims": [
        {"topic": "{case}, computation", "of": {"by": "fairlead"}, "over": {"by": "stock"}, "more_than": 1.3,
         "says": "{title}: a computation takes over 1.3 times as long under fairlead as under stock",
         "otherwise": "{title}: a computation takes no longer under fairlead than under stock"},
        {"topic": "{case}, calls", "of": {"by": "fairlead"}, "over": {"by": "stock"}, "more_than": 1,
         "metric": "calls_per_s",
         "says": "{title}: more calls beside a computation under fairlead than under stock",
         "otherwise": "{title}: no more calls beside a computation under fairlead than under stock"},
        {"topic": "{case}, 0.5 ms", "of": {"by": "fairlead"}, "over": {"by": "interval"}, "more_than": 1.3,
         "says": "{title}: a computation takes over 1.3 times as long under fairlead as with 0.5 ms",
         "otherwise": "{title}: a computation takes no longer under fairlead than with 0.5 ms",
         "main": False},
        {"topic": "{case}, calls, 0.5", "of": {"by": "fairlead"}, "over": {"by": "interval"},
         "more_than": 1, "metric": "calls_per_s", "main": False,
         "says": "{title}: more calls beside a computation under fairlead than with 0.5 ms",
         "otherwise": "{title}: no more calls beside a computation under fairlead than with 0.5 ms"},
    ],
    "cases": {
        "sha256": "Hashes of 16 kB",
        "stat": "Calls of os.stat",
        "log": "Lines of a log",
        "sqlite": "Queries of SQLite",
        "redis": "Questions to Redis",
        "nap": "Sleeps of 1 ms",
        "stat-log": "Calls of os.stat, and a log",
        "three": "SQLite, a log and sleeps",
        "chat": {
            "title": "Two threads that mostly run Python code",
            "sizes": {"quick": [50], "standard": [100], "full": [400]},
        },
        "frames": {
            "title": "The same two threads, and a computation in frames",
            "explanation": "The computation comes in parts of 28 ms, with pauses of 5 ms between them.",
            "sizes": {"quick": [56], "standard": [112], "full": [392]},
            "claims": [
                {"topic": "frames, longest", "of": {"by": "fairlead"}, "over": {"by": "stock"},
                 "more_than": 1.3, "metric": "longest_s",
                 "says": "the longest frame takes over 1.3 times as long under fairlead as under stock",
                 "otherwise": "the longest frame takes no longer under fairlead than under stock"},
            ],
        },
    },
    "sizes": {"quick": [50], "standard": [200], "full": [400]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import shutil  # noqa: E402
import sys  # noqa: E402
from dataclasses import replace  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from tempfile import TemporaryDirectory  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402
from processes import Way, answer, steps_per_ms, subject  # noqa: E402

KINDS = {
    "stat-log": ["stat", "log"],
    "three": ["sqlite", "log", "nap"],
    "chat": ["chat", "chat"],
    "frames": ["chat", "chat"],
}
"""Of the cases that have not one thread of their own name."""
FRAME_MS = 28


def computation(case, by, n):
    kinds = KINDS.get(case, [case])
    if "redis" in kinds and shutil.which("redis-server") is None:
        raise probe.Skipped("needs redis-server")
    way = own.way(by)
    frames = n // FRAME_MS if case == "frames" else 1
    settings = {"kinds": kinds, "steps": round(n * steps_per_ms()), "frames": frames}
    if by == "recorded":
        with TemporaryDirectory() as directory:
            return recorded(settings, Path(directory) / "out.flrec")
    return figures(replace(way, settings={"apart": True}) if by == "another process" else way, settings)


def figures(way, settings):
    with subject("beside", way, **settings) as (process, _):
        return answer(process)


def recorded(settings, path):
    own.gil()
    from fairlead.gil.analysis.analyse import analyse
    from fairlead.record.recording import Recording

    command = (Path(sys.executable).with_name("fairlead"), "record", "--policy", "interactive", "-o", path)
    seen = figures(Way((*map(str, command), "--")), settings)
    recording = analyse(Recording(path))
    main = next(thread.serial for thread in recording.threads if thread.name == "MainThread")
    free = sum(cell.seconds for cell in recording.blame if (cell.waiter, cell.holder) == (main, 0))
    return {**seen, "free_share": free / seen["computation_s"]}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(computation, case) for case in EXPERIMENT["cases"]})

"""Record a process whose threads come and go, for minutes, and look for what grows.

    tools/gil_soak.py [--seconds 200] [--seed N] [--threads 40] [--interpreters 0.01] [--python PATH]

A process records every event of its GIL while threads are started and end, in waves of another size, work
and moment each time, some forked children among them, and interpreters with GILs of their own where there
are any. Beside it a second process, the control, does just the same from the same seed, and is not
observed: what grows in both is the interpreter's own.

All the while their memory (the kernel's count of private pages), descriptors and threads are looked at,
after the same waves, what malloc() has given out and what it keeps for later, and what fairlead itself has
(records, seats, rings, tables: counted by the extension, so to the byte). From the third quarter of the run
to the last none may rise: by then every table has been filled once. Of memory it is the rise over the
control's that counts. The recording must be whole.

Exit status 0: nothing grew; 1: something did, with the seed that shows it.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import fairlead.gil
from fairlead.record.recording import BlockType, Recording

GROWTH_KIB = 512
"""More than that from the third to the last quarter, median against median and less the control's, is growth:
two processes that do the same differ by that much, for an allocator's reasons."""
GROWTH_OF_OURS = 0.1
"""Likewise of what fairlead keeps, relative to it: records of ended threads rise and are folded in turns."""
WAVES_A_LOOK = 10
TOLD = {"malloc_free_kib", "pairs", "losses", "stacks"}
"""Not judged: part of what is private, and places in tables, whose size is in "bytes"."""

WORK: tuple[Callable[[], object], ...] = (
    lambda: sum(range(20_000)),
    lambda: time.sleep(0),
    lambda: time.sleep(0.002),
    lambda: hashlib.sha256(bytes(200_000)).digest(),
    lambda: [os.stat("/") for _ in range(50)],  # noqa: PTH116 - lets go of the GIL, once a call
    lambda: fairlead.gil.counters(),
)

Census = dict[str, int]
"""What there is of a process at a moment, by name."""


class Allocated(ctypes.Structure):
    """struct mallinfo2 of the GNU C library, from 2.33 on."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated() -> Census:
    """What malloc has given out and not got back, and what it has got back and keeps."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return {}
    function.restype = Allocated
    found = function()
    return {
        "malloc_kib": (found.uordblks + found.hblkhd) // 1024,
        "malloc_free_kib": found.fordblks // 1024,
    }


def census() -> Census:
    """Of this process: by the kernel, and by the extension."""
    from fairlead import _probe

    gc.collect()
    private = 0
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Dirty:", "Private_Clean:")):
            private += int(line.split()[1])
    return {
        "private_kib": private,
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "tasks": len(os.listdir("/proc/self/task")),  # noqa: PTH208
        **allocated(),
        **_probe.memory(),
    }


def wave(dice: random.Random, size: int) -> int:
    """Start threads, some of which start more, and wait for them all; returns how many."""
    works = [dice.choices(WORK, k=dice.randint(1, 6)) for _ in range(dice.randint(1, size))]

    def body(own: list[Callable[[], object]]) -> None:
        for work in own:
            work()

    threads = [threading.Thread(target=body, args=(own,)) for own in works]
    for thread in threads:
        thread.start()
        if dice.random() < 0.1:
            time.sleep(dice.random() * 0.002)
    for thread in threads:
        thread.join()
    return len(threads)


def fork() -> None:
    """A child that is recorded afresh for a moment."""
    child = os.fork()
    if not child:
        time.sleep(0)
        os._exit(0)
    os.waitpid(child, 0)


def interpreter() -> None:
    """One with a GIL of its own, where there is such a thing, made, used and ended."""
    try:
        import _interpreters  # type: ignore[import-not-found]
    except ImportError:
        return
    made = _interpreters.create("isolated")
    _interpreters.run_string(made, "import threading\nt = threading.Thread(target=int)\nt.start(); t.join()")
    _interpreters.destroy(made)


def soak(seconds: float, dice: random.Random, size: int, interpreters: float) -> None:
    """What there was after every so many waves, as lines of JSON; then how many threads came and went."""
    waves = started = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started += wave(dice, size)
        chance = dice.random()
        if chance < 0.02:
            fork()
        elif chance < 0.02 + interpreters:
            interpreter()
        waves += 1
        if waves % WAVES_A_LOOK == 0:
            print(json.dumps(census()), flush=True)
    print(json.dumps({"started": started}))


def child(options: argparse.Namespace) -> None:
    """What both processes are."""
    with ExitStack() as stack:
        if options.child != "control":
            stack.enter_context(fairlead.gil.record(options.child))
            stack.enter_context(fairlead.gil.observe())
        soak(options.seconds, random.Random(options.seed), options.threads, options.interpreters)


def growth(found: list[Census], of: str) -> float:
    """From the third to the last quarter, median against median."""
    values = [one[of] for one in found]
    quarter = len(values) // 4
    return statistics.median(values[3 * quarter :]) - statistics.median(values[2 * quarter : 3 * quarter])


def judge(observed: list[Census], control: list[Census]) -> list[str]:
    """Prints what there was, and says what grew."""
    failures = []
    for name in observed[0]:
        values, rise = [one[name] for one in observed], growth(observed, name)
        told = f"first {values[0]}, least {min(values)}, most {max(values)}, last {values[-1]}; {rise:+g}"
        allowed: float = 0
        if name.endswith("_kib"):
            beside = growth(control, name)
            told += f", control {beside:+g}: {rise - beside:+g} more than it"
            rise, allowed = rise - beside, GROWTH_KIB
        elif name not in {"descriptors", "tasks"}:
            allowed = max(2, GROWTH_OF_OURS * statistics.median(values[len(values) // 2 :]))
        print(f"{name:12} {told}")
        if rise > allowed and name not in TOLD:
            failures.append(f"{name} grew by {rise:g} from the third to the last quarter")
    return failures


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--threads", type=int, default=40, help="how many there are at once, at most")
    parser.add_argument("--interpreters", type=float, default=0.01, help="made so often, in waves")
    parser.add_argument(
        "--python", default=sys.executable, help="that is soaked; fairlead is installed in it"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return 0
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as directory:
        path = Path(directory) / "soak.flrec"
        command = [options.python, __file__, *sys.argv[1:], "--seed", str(options.seed), "--child"]
        looks = [Path(directory) / name for name in ("observed", "control")]
        with ExitStack() as stack:
            processes = [
                subprocess.Popen([*command, which], stdout=stack.enter_context(look.open("w")))
                for which, look in zip((str(path), "control"), looks, strict=True)
            ]
            statuses = [process.wait() for process in processes]
        if any(statuses):
            print(f"FAILED: a process ended with an error (seed {options.seed})")
            return 1
        recording = Recording(path)
        kinds = [block.type for block in recording.blocks()]
        size = path.stat().st_size
        lines = [[json.loads(line) for line in look.read_text().splitlines()] for look in looks]
    common = min(len(each) for each in lines) - 1
    failures = list(recording.problems)
    if kinds[-1] != BlockType.END:
        failures.append("the recording has no end")
    started = [each[-1]["started"] for each in lines]
    print(
        f"seed {options.seed}, Python {recording.meta.python_version}: {options.seconds:g} s,"
        f" {started[0]} threads ({started[1]} in the control),\n"
        f"{size / 1e6:.0f} MB recorded, compared after each of {common} lots of {WAVES_A_LOOK} waves"
    )
    if common < 16:
        failures.append("too few waves to judge by: give it more seconds")
    else:
        failures += judge(lines[0][:common], lines[1][:common])
    for failure in failures:
        print(f"FAILED: {failure} (seed {options.seed})")
    if not failures:
        print("Nothing grew.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

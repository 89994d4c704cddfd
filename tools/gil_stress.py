"""Put the GIL's scheduler under stress, and look for processes that hang, crash or stand still.

    tools/gil_stress.py cycles [--cycles 10000] [--policy interactive] [--seed N]
    tools/gil_stress.py mix [--seconds 60] [--policy mixed] [--seed N]
    tools/gil_stress.py interrupt [--rounds 20] [--policy interactive]

cycles: beside threads that compute, poll, wait and talk, fork children that end in every way a process can,
most of them through the whole finalisation of their interpreter, some with daemon threads running.

mix: a process whose threads compute, poll, sleep, talk, lock and start others, in another mixture each
round, while policy, share, priorities and switch interval change; its parent looks every 20 ms whether
any thread gets on. It says for how long no thread got on at most, and for how long none did although no
thread was even on its way to a core: the second is a stall. ``--policy stock`` shows the interpreter's own.

interrupt: how long after a Ctrl-C its KeyboardInterrupt comes, beside threads that compute, to a main thread
that waits and to one that computes, stock and scheduled in turns. A fault: 100 ms later than stock.

Needs fairlead in the interpreter that runs it. Exit status 0: nothing found; 1: found, with the seed and the
round that show it (a schedule of real threads repeats its faults now and then, not always).
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

POLICIES = ("interactive", "stock")
HUNG_S = 30.0
"""A child that has not ended after this time, less that in which it had no core, hangs."""
LATE_S = 0.1
"""More than this between two looks at a child does not count: this process was kept from looking."""
STALL_S = 1.0
"""No thread got on for so long, and none was running or about to: a stall."""
SLOTS = 64


def schedule(policy: str, **share: float) -> None:
    import fairlead.gil

    fairlead.gil.schedule(policy=policy, **share)  # type: ignore[arg-type]


# ---- What threads do


def until(stop: threading.Event, body: Callable[[], object]) -> Callable[[], None]:
    def loop() -> None:
        while not stop.is_set():
            body()

    return loop


def echo() -> Callable[[], object]:
    ends = os.pipe()

    def once() -> None:
        os.write(ends[1], b"x")
        os.read(ends[0], 1)

    return once


def start(bodies: list[Callable[[], object]], *, daemon: bool = False) -> list[threading.Thread]:
    threads = [threading.Thread(target=body, daemon=daemon) for body in bodies]
    for thread in threads:
        thread.start()
    return threads


# ---- cycles

forever = threading.Event()
compute = until(forever, lambda: sum(range(200)))


def die_at_once() -> None:
    os._exit(7)


def end() -> None:
    raise SystemExit(7)


def work_then_end() -> None:
    for thread in start([lambda: sum(range(5000))] * 3):
        thread.join()
    raise SystemExit(7)


def end_beside_daemons() -> None:
    start([compute, compute, until(forever, lambda: time.sleep(0)), until(forever, echo())], daemon=True)
    raise SystemExit(7)


def switch_then_end() -> None:
    threads = start([lambda: sum(range(5000))] * 3)
    for policy in POLICIES:
        schedule(policy)
    for thread in threads:
        thread.join()
    raise SystemExit(7)


def fork_from_a_thread() -> None:
    def body() -> None:
        child = os.fork()
        if child == 0:
            os._exit(0 if sum(range(100)) else 1)
        os.waitpid(child, 0)

    start([compute], daemon=True)
    for thread in start([body]):
        thread.join()
    raise SystemExit(7)


def observe_then_end() -> None:
    import fairlead.gil

    with fairlead.gil.observe() as seen:
        for thread in start([lambda: sum(range(5000))] * 2):
            thread.join()
    raise SystemExit(7 if seen.threads else 1)


ENDINGS = (
    die_at_once,
    end,
    work_then_end,
    end_beside_daemons,
    switch_then_end,
    fork_from_a_thread,
    observe_then_end,
)
WEIGHTS = (6, 2, 1, 1, 1, 1, 1)


def no_core_s(child: int) -> float:
    """For how long its main thread was ready to run and had no core: that time is the machine's."""
    _, waited_ns, _ = Path(f"/proc/{child}/schedstat").read_text().split()
    return int(waited_ns) / 1e9


def ended(child: int) -> int | None:
    """Its exit status; None when it hangs, after it has been made to say where."""
    lived, looked = 0.0, time.monotonic()
    while lived - no_core_s(child) < HUNG_S:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
        now = time.monotonic()
        lived += min(now - looked, LATE_S)  # who looks late was stopped, and so was the child: SIGSTOP
        looked = now
    os.kill(child, signal.SIGABRT)
    os.waitpid(child, 0)
    return None


def cycles(options: argparse.Namespace) -> int:
    chance = random.Random(options.seed)
    schedule(options.policy)
    threads = start([compute, compute, until(forever, echo()), until(forever, lambda: time.sleep(0.0005))])
    began = time.monotonic()
    faults = 0
    for cycle in range(options.cycles):
        (ending,) = chance.choices(ENDINGS, WEIGHTS)
        child = os.fork()
        if child == 0:
            ending()
        status = ended(child)
        if status != 7:
            faults += 1
            what = "hangs" if status is None else f"ended with {status}"
            print(f"cycle {cycle} (seed {options.seed}): {ending.__name__} {what}", flush=True)
    forever.set()
    for thread in threads:
        thread.join()
    print(f"{options.cycles} cycles, {faults} faults, {time.monotonic() - began:.0f} s, seed {options.seed}")
    return 1 if faults else 0


# ---- mix


def kinds(chance: random.Random) -> dict[str, Callable[[], Callable[[], object]]]:
    """Name to a maker of one thread's step."""
    lock, condition, semaphore = threading.Lock(), threading.Condition(), threading.Semaphore(2)

    def locked() -> None:
        with lock:
            sum(range(chance.choice((1, 100, 1000))))

    def waiting() -> None:
        with condition:
            condition.notify(2)
            condition.wait(0.002)

    def admitted() -> None:
        with semaphore:
            sum(range(300))
            time.sleep(0)

    def starting() -> None:
        for thread in start([lambda: None] * 3):
            thread.join()

    return {
        "compute": lambda: lambda: sum(range(chance.choice((10, 1000, 30_000)))),
        "poll": lambda: lambda: time.sleep(0),
        "nap": lambda: lambda: time.sleep(chance.random() * 0.002),
        "echo": echo,
        "lock": lambda: locked,
        "wait": lambda: waiting,
        "admit": lambda: admitted,
        "start": lambda: starting,
    }


def mix_round(chance: random.Random, policy: str, counters: memoryview) -> None:
    import fairlead.gil

    made = kinds(chance)
    names = ["compute", *chance.choices(list(made), k=chance.choice((1, 2, 4, 8, 16, 40)))]
    stop = threading.Event()

    def counted(slot: int, step: Callable[[], object], level: str) -> Callable[[], None]:
        def loop() -> None:
            with fairlead.gil.priority(level):  # type: ignore[arg-type]
                while not stop.is_set():
                    step()
                    counters[slot] += 1

        return loop

    levels = chance.choices(("normal", "io", "background"), (8, 1, 1), k=len(names))
    descriptors = set(Path("/proc/self/fd").iterdir())
    threads = start(
        [
            counted(slot, made[name](), level)
            for slot, (name, level) in enumerate(zip(names, levels, strict=True))
        ]
    )
    over = time.monotonic() + 0.5 + chance.random()
    while time.monotonic() < over:
        time.sleep(0.02 + chance.random() * 0.2)
        sys.setswitchinterval(chance.choice((0.0001, 0.001, 0.005, 0.005, 0.02)))
        if policy == "mixed":
            schedule(chance.choice(POLICIES), cpu_share=chance.choice((0.05, 0.3, 0.8)))
    stop.set()
    for thread in threads:
        thread.join()
    for descriptor in set(Path("/proc/self/fd").iterdir()) - descriptors:
        with suppress(OSError):
            os.close(int(descriptor.name))


def mix_child(options: argparse.Namespace) -> int:
    """The process that is looked at: counters of steps, and last of all the round, in a shared file."""
    with Path(options.file).open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        counters = memoryview(shared).cast("Q")
        over = time.monotonic() + options.seconds
        number = options.round
        schedule("interactive" if options.policy == "mixed" else options.policy)
        while time.monotonic() < over:
            counters[SLOTS] = number
            mix_round(random.Random(f"{options.seed} {number}"), options.policy, counters)
            number += 1
        counters.release()
    import fairlead.gil

    state = fairlead.gil.scheduler()
    print(f"watchdog_tripped={state.watchdog_tripped} withdrawn={state.withdrawn}", flush=True)
    return 1 if state.watchdog_tripped else 0


def someone_runs(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                if (thread / "stat").read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
    return False


def mix(options: argparse.Namespace) -> int:
    longest = stalled = 0.0
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        command = [sys.executable, __file__, "mix", "--file", file.name, "--policy", options.policy]
        command += [
            "--seed",
            str(options.seed),
            "--seconds",
            str(options.seconds),
            "--round",
            str(options.round),
        ]
        with subprocess.Popen(command) as process, mmap.mmap(file.fileno(), 0) as shared:
            last, since, asleep_since = b"", time.monotonic(), time.monotonic()
            while process.poll() is None:
                time.sleep(0.02)
                now, seen = time.monotonic(), shared[:]
                if seen != last or not any(last):
                    last, since, asleep_since = seen, now, now
                    continue
                longest = max(longest, now - since)
                if someone_runs(process.pid):
                    asleep_since = now
                stalled = max(stalled, now - asleep_since)
                if stalled > 10 * STALL_S:
                    process.send_signal(signal.SIGABRT)
            rounds = int.from_bytes(shared[8 * SLOTS : 8 * SLOTS + 8], sys.byteorder) + 1 - options.round
    fault = process.returncode != 0 or stalled > STALL_S
    print(
        f"{rounds} rounds, {options.policy}, seed {options.seed}: none got on for {longest:.3f} s at most, "
        f"{stalled:.3f} s of them with no thread running; exit status {process.returncode}"
    )
    if fault:
        print(f"look at --round {options.round + rounds - 1}")
    return 1 if fault else 0


# ---- interrupt

INTERRUPTED = """
import json, os, sys, threading, time
if sys.argv[1] != "stock":
    import fairlead.gil
    fairlead.gil.schedule(policy=sys.argv[1])
stop = threading.Event()
def spin():
    while not stop.is_set():
        sum(range(200))
for _ in range(3):
    threading.Thread(target=spin).start()
try:
    print("ready", flush=True)
    while True:
        stop.wait() if sys.argv[2] == "waits" else sum(range(200))
except KeyboardInterrupt:
    came = time.monotonic()
    stop.set()
    print(came)
"""


def interrupted(policy: str, main_thread: str) -> float:
    """Seconds from the signal to the exception."""
    command = [sys.executable, "-c", INTERRUPTED, policy, main_thread]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        return float(process.stdout.read()) - sent


def interrupt(options: argparse.Namespace) -> int:
    faults = 0
    for main_thread in ("waits", "computes"):
        times: dict[str, list[float]] = {"stock": [], options.policy: []}
        for _ in range(options.rounds):
            for policy, seen in times.items():
                seen.append(interrupted(policy, main_thread))
        medians = {policy: statistics.median(seen) for policy, seen in times.items()}
        faults += medians[options.policy] > medians["stock"] + 0.1
        print(
            f"main thread {main_thread}: "
            + "; ".join(
                f"{policy} median {medians[policy] * 1e3:.1f} ms, longest {max(seen) * 1e3:.1f} ms"
                for policy, seen in times.items()
            )
        )
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("cycles", "mix", "interrupt"))
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--policy", choices=(*POLICIES, "mixed"), default="interactive")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--round", type=int, default=0, help="of mix: the first one")
    parser.add_argument("--rounds", type=int, default=20, help="of interrupt")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
    if options.what == "cycles":
        return cycles(options)
    if options.what == "interrupt":
        return interrupt(options)
    return mix_child(options) if options.file else mix(options)


if __name__ == "__main__":
    sys.exit(main())

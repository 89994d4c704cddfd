"""Kills processes with SIGKILL while they hold, are granted, or wait for what fairlead.sync.shared has, and
at any moment; a survivor must get it, and be told.

    tools/shared_stress.py [--rounds 1000] [--seed N] [--only owner|granted|queued|any] [--of lock|...]

Prints the seed first and a line of JSON for each at the end; exit status 1 and the reason if a promise was
broken.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead.errors import BrokenBarrierError, OwnerDiedError
from fairlead.sync import shared

PATIENCE_S = 20.0
"""Longer than any repair takes; a machine under load is slow."""


def check(true: object, what: str) -> None:
    if not true:
        raise SystemExit(f"broken: {what}")


def fork(body: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            body()
            status = 0
        except BaseException as error:  # noqa: BLE001 (nothing of the child may go on)
            print(f"process {os.getpid()}: {error!r}", file=sys.stderr, flush=True)
        os._exit(status)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)


def gone(child: int) -> None:
    status = os.waitpid(child, 0)[1]
    check(status == signal.SIGKILL, f"a process ended with {status} before it was killed")


def served(child: int) -> float:
    """Seconds until it ended, which it does once it was served."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE_S:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            check(status == 0, f"a process that lived ended with {status}")
            return time.monotonic() - begin
        time.sleep(0.0005)
    raise SystemExit(f"broken: process {child} was not served within {PATIENCE_S} s")


def until_asleep(*children: int) -> None:
    for child in children:
        stat = Path(f"/proc/{child}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Held:
    """Of a lock, and what is used like one."""

    def __init__(self, make: Callable[[], Any], tells: bool = True) -> None:
        self.subject = make()
        self.tells = tells
        self.ends = os.pipe()
        # who is inside, and how often one was, by the account of those who are
        self.inside = memoryview(mmap.mmap(-1, 64)).cast("q")

    def take(self) -> bool:
        """Whether a process had died with it."""
        try:
            check(self.subject.acquire(timeout=PATIENCE_S), "what a process waited for never came")
        except OwnerDiedError:
            inherited = self.subject.recover(timeout=PATIENCE_S)
        else:
            inherited = False
        before = self.inside[0]
        died = inherited if self.tells else not alive(before)
        check(before == 0 or died, f"process {before} is inside, or died there and no process was told")
        self.inside[0] = os.getpid()
        return bool(inherited)

    def give(self) -> None:
        check(self.inside[0] == os.getpid(), "two were inside")
        self.inside[1] += 1
        self.inside[0] = 0
        self.subject.release()

    def use(self) -> None:
        self.take()
        self.give()

    def hold(self) -> None:
        self.take()
        os.write(self.ends[1], b".")
        signal.pause()

    def hammer(self) -> None:
        while True:
            self.use()

    def owner(self, chance: random.Random) -> float:
        """An owner is killed, at times with others that wait."""
        holder = fork(self.hold)
        os.read(self.ends[0], 1)
        waiters = [fork(self.use) for _ in range(chance.randrange(3))]
        if chance.random() < 0.5:
            until_asleep(*waiters)
        kill(holder)
        if chance.random() < 0.5:  # a zombie, or nothing, is dead
            gone(holder)
            holder = 0
        begin = time.monotonic()
        told = self.take()
        took = time.monotonic() - begin
        self.give()
        for waiter in waiters:
            took = max(took, served(waiter))
        if holder:
            gone(holder)
        check(told or waiters or not self.tells, "the death of an owner was not told")
        return took

    def granted(self, chance: random.Random) -> float:
        """Two sleep; it is given, and the one that was woken is killed at about that moment."""
        self.take()
        first = fork(self.use_and_stay)
        until_asleep(first)
        second = fork(self.use)
        until_asleep(second)
        self.give()
        pause(chance, 120)
        kill(first)
        gone(first)
        return served(second)

    def use_and_stay(self) -> None:
        self.use()
        while True:
            signal.pause()

    def queued(self, chance: random.Random) -> float:
        """Two sleep, one is killed, and it is given."""
        self.take()
        children = [fork(self.use_and_stay), fork(self.use_and_stay)]
        until_asleep(*children)
        victim = children.pop(chance.randrange(2))
        last = fork(self.use)
        until_asleep(last)
        kill(victim)
        pause(chance, 60)
        self.give()
        took = served(last)
        gone(victim)
        for child in children:
            kill(child)
            gone(child)
        return took

    def any(self, chance: random.Random) -> float:
        """Three use it all the time, and two are killed at any moment."""
        children = [fork(self.hammer) for _ in range(2)]
        time.sleep(chance.random() * 0.006)
        for child in children:
            kill(child)
            pause(chance, 400)
        begin = time.monotonic()
        self.use()
        took = time.monotonic() - begin
        for child in children:
            gone(child)
        return took


class Lines:
    """Of a queue: `owner` and `any` kill who puts and who gets, large messages and small ones."""

    def __init__(self) -> None:
        self.most = 1 << 17
        self.figures = memoryview(mmap.mmap(-1, 8 * (self.most + 1))).cast("q")
        self.told = 0

    def renew(self, capacity: int, size: int) -> None:
        self.subject = shared.Queue(capacity_bytes=capacity)
        self.size = size
        self.figures[:] = memoryview(bytes(8 * (self.most + 1))).cast("q")

    def get(self, timeout: float) -> int:
        while True:
            try:
                message = self.subject.get(timeout=timeout)
            except OwnerDiedError:
                self.told += 1
            else:
                number = int.from_bytes(message[:8], "little")
                check(message == self.message(number), "a message was torn")
                return number

    def message(self, number: int) -> bytes:
        return number.to_bytes(8, "little") * (1 + self.size // 8)

    def put_all(self) -> None:
        for number in range(1, self.most):
            self.subject.put(self.message(number))
            self.figures[0] = number
        signal.pause()

    def get_all(self) -> None:
        while True:
            self.figures[self.get(PATIENCE_S)] += 1

    def any(self, chance: random.Random) -> float:
        return self.killed(chance, chance.choice([128, 1024, 65536]), 8)

    def owner(self, chance: random.Random) -> float:
        return self.killed(chance, 1 << 20, 200_000)

    def killed(self, chance: random.Random, capacity: int, size: int) -> float:
        """One puts, one gets, both are killed; what is missing is what the second of them died with."""
        self.renew(capacity, size)
        children = [fork(self.put_all), fork(self.get_all)]
        time.sleep(0.002 + chance.random() * 0.006)
        chance.shuffle(children)
        for child in children:
            kill(child)
            pause(chance, 300)
        for child in children:
            gone(child)
        begin = time.monotonic()
        took = 0.0
        while not self.subject.empty():
            self.figures[self.get(PATIENCE_S)] += 1
            took = took or time.monotonic() - begin
        while True:  # and it is whole, at both ends
            try:
                self.subject.put(self.message(self.most))
            except OwnerDiedError:
                self.told += 1
            else:
                break
        check(self.get(PATIENCE_S) == self.most, "what was put did not come out")
        done = self.figures[0]
        seen = self.figures[1 : done + 2].tolist()
        check(max(seen, default=0) <= 1, "a message came twice")
        check(seen[:done].count(0) <= 1, f"{seen[:done].count(0)} messages were lost by one death")
        return took

    def get_one(self) -> None:
        self.get(PATIENCE_S)

    def granted(self, chance: random.Random) -> float:
        """Two sleep; one message comes, and the one that was woken is killed at about that moment."""
        self.renew(256, 8)
        first = fork(self.get_and_stay)
        until_asleep(first)
        second = fork(self.get_one)
        until_asleep(second)
        self.subject.put(self.message(1))
        pause(chance, 120)
        kill(first)
        gone(first)
        self.put_one()  # the first may have had the other
        return served(second)

    def get_and_stay(self) -> None:
        self.get_one()
        signal.pause()

    def put_one(self) -> None:
        try:
            self.subject.put(self.message(2))
        except OwnerDiedError:
            self.told += 1
            self.subject.put(self.message(2))

    def queued(self, chance: random.Random) -> float:
        """Two sleep, one is killed, and a message comes."""
        self.renew(256, 8)
        children = [fork(self.get_one), fork(self.get_one)]
        until_asleep(*children)
        victim = children.pop(chance.randrange(2))
        kill(victim)
        pause(chance, 60)
        self.put_one()
        gone(victim)
        return served(children[0])


class Meeting:
    """Of a barrier: one who came is killed, and one who goes through."""

    def __init__(self) -> None:
        self.subject = shared.Barrier(3)

    def meet_or_break(self) -> None:
        try:
            self.subject.wait(timeout=PATIENCE_S)
        except BrokenBarrierError as error:
            check("died" in str(error) or "broken" in str(error), str(error))

    def meet_and_stay(self) -> None:
        self.meet_or_break()
        while True:
            signal.pause()

    def queued(self, chance: random.Random) -> float:
        """Two wait and one of them is killed; the third comes, or does not."""
        return self.meet(chance, chance.random() < 0.5, 60)

    def granted(self, chance: random.Random) -> float:
        """One of those that wait is killed just after, or before, the last has come."""
        return self.meet(chance, True, 120)

    def meet(self, chance: random.Random, third: bool, most_us: int) -> float:
        self.subject.reset()
        victim = fork(self.meet_and_stay)
        other = fork(self.meet_or_break)
        until_asleep(victim, other)
        last = fork(self.meet_or_break) if third else 0
        pause(chance, most_us)
        kill(victim)
        gone(victim)
        took = served(other)
        if last:
            took = max(took, served(last))
        check(not self.subject.broken or self.subject.n_waiting <= 3, "it is in disorder")
        return took


class Flag:
    """Of an event: `owner` kills who sets it, the others who waits for that, or both."""

    def __init__(self) -> None:
        self.subject = shared.Event()

    def wait(self) -> None:
        check(self.subject.wait(timeout=PATIENCE_S), "what was set woke no waiter")

    def wait_and_stay(self) -> None:
        self.wait()
        while True:
            signal.pause()

    def set_and_stay(self) -> None:
        self.subject.set()
        while True:
            signal.pause()

    def set_and_clear(self) -> None:
        while True:
            self.subject.set()
            self.subject.clear()

    def watch(self) -> None:
        while True:
            self.subject.wait(timeout=PATIENCE_S)

    def asleep(self, *bodies: Callable[[], None]) -> list[int]:
        self.subject.clear()
        children = [fork(body) for body in bodies]
        until_asleep(*children)
        return children

    def owner(self, chance: random.Random) -> float:
        """Two sleep; who sets it is killed at about that moment. Once it is set they are served."""
        waiters = self.asleep(self.wait, self.wait)
        setter = fork(self.set_and_stay)
        pause(chance, 1500)
        kill(setter)
        gone(setter)
        if not self.subject.is_set():
            self.subject.set()
        return max(served(waiter) for waiter in waiters)

    def granted(self, chance: random.Random) -> float:
        """Two sleep; it is set, and one of them is killed at about that moment."""
        victim, other = self.asleep(self.wait_and_stay, self.wait)
        self.subject.set()
        pause(chance, 120)
        kill(victim)
        gone(victim)
        return served(other)

    def queued(self, chance: random.Random) -> float:
        """Two sleep, one is killed, and it is set, and perhaps cleared at once."""
        victim, other = self.asleep(self.wait_and_stay, self.wait)
        kill(victim)
        pause(chance, 60)
        self.subject.set()
        if chance.random() < 0.5:
            self.subject.clear()
        took = served(other)
        gone(victim)
        return took

    def any(self, chance: random.Random) -> float:
        """One sets and clears it all the time, two wait for that, and all are killed at any moment."""
        children = [fork(self.set_and_clear), fork(self.watch), fork(self.watch)]
        time.sleep(chance.random() * 0.006)
        for child in children:
            kill(child)
            pause(chance, 400)
        for child in children:
            gone(child)
        [last] = self.asleep(self.wait)
        self.subject.set()
        return served(last)


def pause(chance: random.Random, most_us: int) -> None:
    """Up to so long, often less than any sleep takes."""
    until = time.perf_counter_ns() + int(chance.random() ** 2 * most_us * 1000)
    while time.perf_counter_ns() < until:
        pass


SUBJECTS: dict[str, Callable[[], Any]] = {
    "lock": lambda: Held(shared.Lock),
    "semaphore": lambda: Held(lambda: shared.Semaphore(1, owned=True), tells=False),
    "queue": Lines,
    "barrier": Meeting,
    "event": Flag,
}
ROUNDS = ("owner", "granted", "queued", "any")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", choices=ROUNDS)
    parser.add_argument("--of", choices=SUBJECTS)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    for name in [options.of] if options.of else SUBJECTS:
        for kind in [options.only] if options.only else ROUNDS:
            chance = random.Random(f"{options.seed} {name} {kind}")
            subject = SUBJECTS[name]()
            round_of = getattr(subject, kind, None)
            if round_of is None:
                continue
            took = sorted(round_of(chance) for _ in range(options.rounds))
            figures = {
                "of": name,
                "kill": kind,
                "rounds": options.rounds,
                "median ms": round(took[len(took) // 2] * 1000, 2),
                "longest ms": round(took[-1] * 1000, 2),
            }
            if hasattr(subject, "told"):
                figures["told"] = subject.told
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()

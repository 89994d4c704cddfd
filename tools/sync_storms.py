"""Signals whose handlers raise, against every call of fairlead.sync, and beside each its peer's.

    tools/sync_storms.py [--rounds 10000] [--signal INT|ALRM] [--only WORDS] [--alone] [--on 3.13 ...]

In each round the main thread repeats one statement on a fresh primitive, beside a thread or a task that uses
it too, until a real signal comes: SIGINT from another process, whose handler raises KeyboardInterrupt, or
SIGALRM of a timer, whose handler raises an exception of its own. Then both rest, and the round counts as

    kept    what the call took is held, or its result is lost: the exception came after the call had ended,
            before the next instruction of Python
    broken  anything else is not as it was: a waiter is left, a permit or an object is lost or came twice,
            the primitive cannot be used, the other thread or task waits for ever, an exception is swallowed

A `with` statement and the ends of a channel keep nothing. Nor does a call from C, or an awaited one: no
instruction is between it and what keeps its result. A statement of the other kinds may keep one.

Prints the seed first, then a line of JSON for each statement. Exit status 1 if one is broken, or keeps
something that it may not.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat
from types import FrameType
from typing import Any, NamedTuple

from sync_statements import (
    PATIENCE_S,
    SHORT_S,
    WINDOW_IN_WITH,
    Form,
    Trial,
    calling,
    chance,
    forms,
    late,
    method,
    nap,
    pause,
    peer_of,
    whole,
)

import fairlead.sync as fs
from fairlead.sync import extra, shared


class Alarm(BaseException):
    """What the handler of SIGALRM raises."""


class Storm:
    """Sends one signal at a time; its handler raises where the statement is running, and waits elsewhere."""

    def __init__(self, which: str) -> None:
        self.raises: type[BaseException] = KeyboardInterrupt if which == "INT" else Alarm
        self.statement = self.last = None
        self.pending = self.raised = False
        self.until, self.sender = math.inf, 0
        if which == "INT":
            delays, self.delays = os.pipe()
            parent, self.sender = os.getpid(), os.fork()
            if not self.sender:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                os.close(self.delays)
                while delay := os.read(delays, 8):
                    until = time.perf_counter() + struct.unpack("d", delay)[0]
                    while time.perf_counter() < until:
                        pass
                    os.kill(parent, signal.SIGINT)
                os._exit(0)
        signal.signal(signal.SIGINT if which == "INT" else signal.SIGALRM, self.handle)
        signal.signal(signal.SIGUSR2, self.give_up)
        threading.Thread(target=self.watch, daemon=True).start()
        sys.unraisablehook = self.dropped

    def send(self) -> None:
        self.pending = True
        delay = chance.uniform(2e-6, 120e-6)
        if self.sender:
            os.write(self.delays, struct.pack("d", delay))
        else:
            signal.setitimer(signal.ITIMER_REAL, delay)

    def handle(self, _: int, frame: FrameType | None) -> None:
        self.pending = False
        if self.statement is None:
            return
        dropping = Storm.again.__code__
        while frame is not None and frame.f_code not in (self.statement, dropping):
            frame = frame.f_back
        if frame is None or frame.f_code is dropping:  # not begun yet, or the event loop runs
            self.send()
            return
        self.statement, self.raised = None, True
        raise self.raises

    def dropped(self, what: Any) -> None:
        """Python drops what is raised in its own destructors, and in callbacks of weak references."""
        if what.exc_type is self.raises and not type(what.object).__module__.startswith("fairlead"):
            self.again()
        else:
            sys.__unraisablehook__(what)

    def again(self) -> None:
        self.statement, self.raised = self.last, False
        self.send()

    def watch(self) -> None:
        while True:
            time.sleep(1)
            if time.monotonic() > self.until:
                os.kill(os.getpid(), signal.SIGUSR2)

    def give_up(self, *_: object) -> None:
        if time.monotonic() > self.until:
            raise KeyboardInterrupt

    def hits(self, statement: Any, run: Callable[[], object]) -> str:
        """Runs it until the signal has come; what was wrong with that."""
        self.statement = self.last = statement.__code__
        self.raised, self.until = False, time.monotonic() + PATIENCE_S
        self.send()
        wrong = ""
        try:
            run()
            wrong = "swallows the exception" if self.raised else "ends by itself"
        except (self.raises, KeyboardInterrupt):
            wrong = "" if time.monotonic() < self.until else "the statement waits for ever"
        except Exception as error:  # noqa: BLE001 (reported)
            wrong = f"raises {error!r}"
        self.statement, self.until = None, math.inf
        while self.pending:
            time.sleep(1e-5)
        return wrong

    def in_time(self, run: Callable[[], str]) -> str:
        self.until = time.monotonic() + 2 * PATIENCE_S
        try:
            return run()
        except KeyboardInterrupt:
            return "a later call waits for ever"
        finally:
            self.until = math.inf


# What is held


class Held(NamedTuple):
    make: Callable[[], Any]
    taken: Callable[[Any], int]
    """How much is held, by whichever thread."""
    peer: str = ""
    mine: str = ""
    """The attribute that the statement uses, and the one that the other uses."""
    others: str = ""
    styles: str = "with call C async await"


def locked(one: Any) -> int:
    return int(one.locked())


def permits(one: Any) -> int:
    return 1 - int(one._value if hasattr(one, "_value") else one.statistics().value)


def inside(one: Any) -> int:
    return int(sum(one.statistics()[:-1]))


THREADS, TASKS = "with call C", "async await"
HELD = {
    "Lock": Held(fs.Lock, locked, "threading.Lock asyncio.Lock"),
    "fair Lock": Held(partial(fs.Lock, fair=True), locked, "threading.Lock asyncio.Lock"),
    "RLock": Held(fs.RLock, lambda one: one.statistics().depth, "threading.RLock"),
    "Semaphore": Held(partial(fs.Semaphore, 1), permits, "threading.Semaphore asyncio.Semaphore"),
    "BoundedSemaphore": Held(partial(fs.BoundedSemaphore, 1), permits),
    "Condition": Held(fs.Condition, locked),
    "RWLock.reading": Held(fs.RWLock, inside, "", "reading", "writing"),
    "RWLock.upgradable": Held(fs.RWLock, inside, "", "upgradable", "writing"),
    "RWLock.writing": Held(fs.RWLock, inside, "", "writing", "reading"),
    "CapacityLimiter": Held(partial(fs.CapacityLimiter, 1), lambda one: one.borrowed_tokens),
    "StampedLock.reading": Held(extra.StampedLock, inside, "", "reading", "writing", "with async"),
    "StampedLock.writing": Held(extra.StampedLock, inside, "", "writing", "reading", "with async"),
    "ResourceGuard": Held(extra.ResourceGuard, lambda one: one.statistics().busy, styles="with"),
    "shared.Lock": Held(shared.Lock, locked),
    "shared.Semaphore": Held(partial(shared.Semaphore, 1), permits),
    "threading.Lock": Held(threading.Lock, locked, styles=THREADS),
    "threading.RLock": Held(threading.RLock, lambda one: one._is_owned(), styles=THREADS),
    "threading.Semaphore": Held(threading.Semaphore, permits, styles=THREADS),
    "asyncio.Lock": Held(asyncio.Lock, locked, styles=TASKS),
    "asyncio.Semaphore": Held(asyncio.Semaphore, permits, styles=TASKS),
}


def holding(held: Held, style: str) -> Trial:
    one = held.make()

    def view(name: str = held.mine) -> Any:
        return getattr(one, name) if name else one

    def use_with() -> None:
        with view():
            pass

    def use_call() -> None:
        mine = view()
        mine.acquire()
        try:
            pass
        finally:
            mine.release()

    async def use_async(name: str = held.mine) -> None:
        async with view(name):
            await asyncio.sleep(0)

    async def use_await() -> None:
        mine = view()
        await method(mine, "acquire", "await")()
        try:
            await asyncio.sleep(0)
        finally:
            mine.release()

    def contend() -> None:
        others = view(held.others)
        if not hasattr(others, "acquire"):
            with others:
                pause()
        elif others.acquire(timeout=SHORT_S):
            pause()
            others.release()

    def check(results: list[Any]) -> str:
        kept, mine = held.taken(one) - (style == "C" and len(results) % 3 > 0), view()
        if wrong := whole(one):
            return wrong
        try:
            for _ in range(held.taken(one) if hasattr(mine, "release") else 0):
                mine.release()
            if hasattr(mine, "acquire") and style[0] != "a" and not mine.acquire(timeout=PATIENCE_S):
                return "cannot be acquired"
        except RuntimeError as error:
            if kept == 1 and style[0] == "a":  # by a task that has ended
                return "kept"
            return f"cannot be acquired or released: {type(error).__name__}"
        return late(kept, "times held")

    if style == "C":
        steps = chain.from_iterable(repeat((view().acquire, nap, view().release)))
        return calling("C", steps, contend, check)
    if style[0] == "a":
        step = use_async if style == "async" else use_await
        return calling("await", repeat(step), partial(use_async, held.others), check)
    other = pause if isinstance(one, extra.ResourceGuard) else contend
    return calling("statement", repeat(use_with if style == "with" else use_call), other, check)


def forms_of_holding() -> Iterator[tuple[str, Form]]:
    for name, held in HELD.items():
        for style in held.styles.split():
            may = style == "call" or (style in ("with", "async") and WINDOW_IN_WITH)
            other = peer_of(held.peer, style)
            yield f"{style} {name}", Form(partial(holding, held, style), may, style[0] == "a", other)


# Rounds


class Other:
    """A thread that repeats a function between begin() and end()."""

    def __init__(self) -> None:
        self.go, self.rests = threading.Semaphore(0), threading.Semaphore(0)
        self.step: Callable[[], Any] | None = None
        self.wrong: Exception | None = None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            self.go.acquire()
            try:
                while (step := self.step) is not None:
                    step()
            except Exception as error:  # noqa: BLE001 (reported)
                self.wrong = error
            self.rests.release()

    def begin(self, step: Callable[[], Any]) -> None:
        self.step, self.wrong = step, None
        self.go.release()

    def end(self) -> str:
        self.step = None
        if not self.rests.acquire(timeout=PATIENCE_S):
            return "another thread waits for ever"
        return f"another thread gets {self.wrong!r}" if self.wrong else ""


def round_of_threads(storm: Storm, trial: Trial, other: Other) -> str:
    other.begin(trial.other)
    wrong = storm.hits(trial.statement, trial.statement)
    return other.end() or wrong or storm.in_time(trial.check)


def round_of_tasks(storm: Storm, trial: Trial, loop: asyncio.AbstractEventLoop) -> str:
    async def repeat_it() -> None:
        while True:
            await trial.other()

    task, other = loop.create_task(trial.statement()), loop.create_task(repeat_it())
    wrong = storm.hits(trial.statement, lambda: loop.run_until_complete(task))
    if wrong:
        return wrong
    task.exception()  # it was raised

    def ends() -> str:
        for _ in range(3):
            loop.run_until_complete(asyncio.sleep(0))
        other.cancel()
        if not loop.run_until_complete(asyncio.wait({other}, timeout=PATIENCE_S))[0]:
            return "another task waits for ever"
        if not other.cancelled() and (error := other.exception()):
            return f"another task gets {error!r}"
        return trial.check()

    return storm.in_time(ends)


def storms(options: argparse.Namespace) -> bool:
    table, peers, failed = dict(chain(forms_of_holding(), forms())), dict[str, dict[str, Any]](), False
    storm, other, loop = Storm(options.signal), Other(), asyncio.new_event_loop()
    gc.disable()  # else a task that a peer has left would be collected, and reported, within a statement
    warnings.simplefilter("ignore")

    def figures(name: str) -> dict[str, Any]:
        nonlocal other, loop
        found, begin, rounds = Counter[str](), time.monotonic(), 0
        while rounds < options.rounds and time.monotonic() - begin < options.seconds:
            faulthandler.dump_traceback_later(5 * PATIENCE_S, exit=True)
            trial = table[name].make()
            by_task = table[name].tasks
            wrong = round_of_tasks(storm, trial, loop) if by_task else round_of_threads(storm, trial, other)
            found[wrong] += 1
            rounds += 1
            if rounds % 1000 == 0:
                gc.collect()
            if "waits for ever" in wrong:
                other, loop = Other(), asyncio.new_event_loop()
                break
        faulthandler.cancel_dump_traceback_later()
        gc.collect()
        clean, kept = found.pop("", 0), found.pop("kept", 0)
        return {"rounds": rounds, "kept": kept, "broken": rounds - clean - kept, "how": dict(found)}

    for name, form in table.items():
        if any(mark in name for mark in ("threading.", " queue.", "asyncio.")):
            continue
        if not all(word in name for word in options.only.split()):
            continue
        row = {"form": name, **figures(name)}
        wrong = bool(row["broken"] or (row["kept"] and not form.may_keep))
        if form.peer and not options.alone:
            beside = f"{name.split()[0]} {form.peer}"
            peers[beside] = peers.get(beside) or figures(beside)
            row["peer"] = {"form": beside, **peers[beside]}
        failed |= wrong
        print(json.dumps({**row, "ok": not wrong}), flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most so long for each statement")
    parser.add_argument("--signal", choices=["INT", "ALRM"], default="ALRM")
    parser.add_argument("--only", default="", help="the statements in whose name all of these words are")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument(
        "--on", nargs="+", default=[], help="by these interpreters, in environments of theirs"
    )
    options = parser.parse_args()
    if options.on:
        import test_all

        found = [one for one in test_all.discover().interpreters if one.name in options.on]
        arguments = sys.argv[1 : sys.argv.index("--on")]
        return max(subprocess.call([test_all.prepare(one, False), __file__, *arguments]) for one in found)
    chance.seed(options.seed)
    print(json.dumps({"python": sys.version, "signal": options.signal, "seed": options.seed}), flush=True)
    return int(storms(options))


if __name__ == "__main__":
    sys.exit(main())

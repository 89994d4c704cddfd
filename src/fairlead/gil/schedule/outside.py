"""Orders to a process that is scheduled, from outside: the other side of native/gil/hooks/control.h.

The process need not run for it: an order is written into a page of memory that it looks at whenever a thread
takes the GIL or waits for it. So a switch reaches a process whose Python is stuck, too.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from fairlead import machine
from fairlead.errors import FairleadError, InterpreterFailedError, UsageError
from fairlead.gil.observe.programs.target import asked, ended, executable, kept_out
from fairlead.record.policies import CANARY_STATES, CanaryState, policy_name

Order = Literal["status", "stock", "interactive", "off"]
ORDERS: tuple[Order, ...] = get_args(Order)
Hooks = Literal["awake", "resting", "out", "bypassed"]
HOOKS: tuple[Hooks, ...] = get_args(Hooks)

_MAGIC, _VERSION = 0x4C544346, 2
_HEADER = struct.Struct("<III")
_CANARY, _REQUEST, _ANSWERED, _HOOKS = 3, 4, 5, 14
"""Places in the page, counted in words of 32 bits."""
_ANSWER = struct.Struct("<IIIIQQ")
_ANSWER_AT = 24
_SIZE = 64
_LOOK_S, _LOOK_AT_MOST_S = 0.001, 0.01
"""Between two looks for an answer, and what of that counts: for the rest this process had no core."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the process says of its scheduler, as it was when a thread last looked."""

    fresh: bool
    """A thread has looked since the order was given; else the first to take the GIL will obey it."""
    hooks: Hooks
    """Resting: no thread has waited for the GIL yet, so that there is nothing to schedule. Out: one has, and
    they could not be put in. Bypassed: they are in, and do not see the threads that wait."""
    order: Order
    """What the first thread to look will obey, or the last has; status: what the program asks for."""
    policy: str
    off: bool
    canary: CanaryState
    trips: int
    waiting: int
    acquisitions: int
    waits: int


def send(pid: int, order: Order, *, wait_s: float = 1.0) -> Answer:
    """Give an order, and wait for the answer, or until no thread has taken the GIL for so long. Time in which
    this process had no core is left out: the other may have had none either.

    Raises:
        UsageError: there is no such process, it belongs to another user, or it was never scheduled.
        InterpreterFailedError: it ended.
    """
    outcome = send_all([pid], order, wait_s=wait_s)[pid]
    if isinstance(outcome, FairleadError):
        raise outcome
    return outcome


def send_all(
    pids: Sequence[int], order: Order, *, wait_s: float = 1.0
) -> dict[int, Answer | UsageError | InterpreterFailedError]:
    """The same for many; all have the order before the first answer is waited for, and for no longer."""
    outcome: dict[int, Answer | UsageError | InterpreterFailedError] = {}
    waiting: list[_Asked] = []
    with ExitStack() as stack:
        for pid in pids:
            try:
                page = stack.enter_context(_page(pid))
            except UsageError as error:
                outcome[pid] = error
            else:
                words = stack.enter_context(memoryview(page).cast("I"))
                waiting.append(_ask(pid, order, page, words))
        left = wait_s
        while True:
            for one in waiting:
                answer = _answer(one)
                if answer.fresh or answer.hooks != "awake" or left <= 0:
                    outcome[one.pid] = answer
                elif ended(one.pid):
                    outcome[one.pid] = InterpreterFailedError(f"process {one.pid} ended")
            waiting = [one for one in waiting if one.pid not in outcome]
            if not waiting:
                return {pid: outcome[pid] for pid in pids}
            looked = time.monotonic()
            time.sleep(_LOOK_S)
            left -= min(time.monotonic() - looked, _LOOK_AT_MOST_S)


@dataclass(frozen=True, slots=True)
class _Asked:
    pid: int
    page: mmap.mmap
    words: memoryview[int]
    request: int


def _ask(pid: int, order: Order, page: mmap.mmap, words: memoryview[int]) -> _Asked:
    before = words[_REQUEST]
    # a look does not take the place of an order that no thread has obeyed yet: it is given again
    pending = order == "status" and words[_ANSWERED] != before
    code = before & 0xFF if pending else ORDERS.index(order)
    words[_REQUEST] = request = ((before >> 8) + 1 & 0xFFFFFF) << 8 | code
    return _Asked(pid, page, words, request)


def _answer(asked: _Asked) -> Answer:
    words = asked.words
    fresh, hooks = words[_ANSWERED] == asked.request, HOOKS[words[_HOOKS]]
    mode, off, *counts = _ANSWER.unpack_from(asked.page, _ANSWER_AT)
    code, canary = asked.request & 0xFF, CANARY_STATES[words[_CANARY]]
    return Answer(fresh, hooks, ORDERS[code], policy_name(mode), bool(off), canary, *counts)


def scheduled_family(pid: int) -> list[int]:
    """The processes that take orders: of this one, those that it started, and those that these started."""
    return [one for one in machine.family(pid) if _takes_orders(one)]


def _takes_orders(pid: int) -> bool:
    try:
        path = _path(pid)
        return os.path.exists(path) and _mapped(pid, path)  # noqa: PTH110 - or it is another program by now
    except UsageError:
        return False


def _path(pid: int) -> str:
    space = asked(pid, lambda: os.stat(f"/proc/{pid}/ns/pid").st_ino)  # noqa: PTH116
    inner = asked(pid, lambda: _inner_pid(pid))
    return f"/proc/{pid}/root/dev/shm/fairlead-control.{space}.{inner}"


@contextmanager
def _page(pid: int) -> Iterator[mmap.mmap]:
    path = _path(pid)
    inner = int(path.rpartition(".")[2])
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        executable(pid)  # or else it has none, which is the reason
        raise UsageError(
            f"process {pid} takes no orders: it was never scheduled, or has no /dev/shm; start it with"
            f" fairlead run -- COMMAND, or (Python 3.14 and later) schedule it now: fairlead run --pid {pid}"
        ) from None
    except PermissionError:
        raise kept_out(pid) from None
    try:
        if os.fstat(file).st_uid not in {0, asked(pid, lambda: os.stat(f"/proc/{pid}").st_uid)}:  # noqa: PTH116
            raise UsageError(f"{path} was put there by another user: it is not process {pid}'s")
        with mmap.mmap(file, _SIZE) as page:
            magic, version, said = _HEADER.unpack_from(page, 0)
            if (magic, version, said) != (_MAGIC, _VERSION, inner):
                raise UsageError(
                    f"process {pid} takes orders of another version of fairlead: use that one's ctl"
                )
            if not _mapped(pid, path):
                raise UsageError(
                    f"process {pid} takes no orders: it was scheduled and became another program since"
                    " (exec), or has the number of one that was killed; schedule it with fairlead run"
                )
            yield page
    finally:
        os.close(file)


def _mapped(pid: int, path: str) -> bool:
    """Whether the page is this program's own, and not left by an earlier one."""
    name = os.path.basename(path)  # noqa: PTH119
    with asked(pid, lambda: open(f"/proc/{pid}/maps")) as maps:  # noqa: PTH123
        return any(name in line for line in maps)


def _inner_pid(pid: int) -> int:
    """Its number as it knows itself: another one in a container."""
    with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        return next((int(line.split()[-1]) for line in file if line.startswith("NSpid:")), pid)

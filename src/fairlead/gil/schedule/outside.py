"""Orders to a process that is scheduled, from outside: the other side of native/gil/hooks/control.h.

The process need not run for it: an order is written into a page of memory that it looks at whenever a thread
takes the GIL or waits for it. So a switch reaches a process whose Python is stuck, too.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from fairlead import machine
from fairlead.errors import FairleadError, InterpreterFailedError, UsageError
from fairlead.gil.observe.programs.target import asked, ended, executable, kept_out
from fairlead.record.policies import CANARY_STATES, policy_name

if TYPE_CHECKING:
    from fairlead.record.policies import CanaryState

Order = Literal["status", "stock", "interactive", "off"]
ORDERS: tuple[Order, ...] = get_args(Order)
Hooks = Literal["awake", "resting", "out", "bypassed"]
HOOKS: tuple[Hooks, ...] = get_args(Hooks)

_MAGIC, _VERSION = 0x4C544346, 3
_FILE = re.compile(r"/(fairlead-orders\.\d+\.\d+\.\w{6})$", re.MULTILINE)
_LAYOUT = struct.Struct("<10I2Q2I")
_HEAD, _PAGES = 64, 255
_REQUEST = 16
"""Bytes into a page."""
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
                waiting.append(_ask(pid, order, *stack.enter_context(_page(pid))))
            except UsageError as error:
                outcome[pid] = error
        left = wait_s
        while True:
            for one in waiting:
                try:
                    answer = _answer(one)
                except UsageError as error:
                    outcome[one.pid] = error
                    continue
                if answer is None or (not answer.fresh and ended(one.pid)):
                    outcome[one.pid] = InterpreterFailedError(f"process {one.pid} ended")
                elif answer.fresh or answer.hooks != "awake" or left <= 0:
                    outcome[one.pid] = answer
            waiting = [one for one in waiting if one.pid not in outcome]
            if not waiting:
                return {pid: outcome[pid] for pid in pids}
            looked = time.monotonic()
            time.sleep(_LOOK_S)
            left -= min(time.monotonic() - looked, _LOOK_AT_MOST_S)


class _Page(NamedTuple):
    """What stands in it: the process's own words, which may be anything."""

    magic: int
    version: int
    pid: int
    canary: int
    request: int
    answered: int
    mode: int
    off: int
    trips: int
    waiting: int
    acquired: int
    waited: int
    hooks: int
    reserved: int


@dataclass(frozen=True, slots=True)
class _Asked:
    pid: int
    inner: int
    file: int
    place: int
    request: int


def _ask(pid: int, order: Order, file: int, place: int, page: _Page) -> _Asked:
    # a look does not take the place of an order that no thread has obeyed yet: it is given again
    pending = order == "status" and page.answered != page.request
    code = page.request & 0xFF if pending else ORDERS.index(order)
    request = ((page.request >> 8) + 1 & 0xFFFFFF) << 8 | code
    os.pwrite(file, struct.pack("<I", request), place + _REQUEST)
    return _Asked(pid, page.pid, file, place, request)


def _answer(asked: _Asked) -> Answer | None:
    """None: the page is another's by now, or no one's."""
    page = _read(asked.file, asked.place)
    if page is None:
        raise _damaged(asked.pid)
    if page.pid != asked.inner:
        return None
    try:
        hooks, order, canary = HOOKS[page.hooks], ORDERS[asked.request & 0xFF], CANARY_STATES[page.canary]
    except IndexError:
        raise _damaged(asked.pid) from None
    return Answer(
        page.answered == asked.request,
        hooks,
        order,
        policy_name(page.mode),
        bool(page.off),
        canary,
        page.trips,
        page.waiting,
        page.acquired,
        page.waited,
    )


def _read(file: int, place: int) -> _Page | None:
    """Not by a mapping: the process may cut its file short at any moment."""
    content = os.pread(file, _LAYOUT.size, place)
    return _Page(*_LAYOUT.unpack(content)) if len(content) == _LAYOUT.size else None


def _damaged(pid: int) -> _BadPage:
    return _BadPage(f"the page on which process {pid} takes orders is damaged: another program wrote to it")


def scheduled_family(pid: int) -> list[int]:
    """The processes that take orders: of this one, those that it started, and those that these started."""
    return [one for one in machine.family(pid) if _takes_orders(one)]


def _takes_orders(pid: int) -> bool:
    """Also if what stands in its page is no use: that is then said."""
    try:
        if _path(pid) is None:
            return False
        with suppress(_BadPage), _page(pid):
            pass
    except UsageError:
        return False
    return True


class _BadPage(UsageError):
    """The process has a page, and no order can be written into it."""


def _path(pid: int) -> str | None:
    """Of the file that this program has mapped: an earlier one of the process may have left another."""
    with asked(pid, lambda: open(f"/proc/{pid}/maps")) as maps:  # noqa: PTH123
        found = _FILE.search(maps.read())
    return f"/proc/{pid}/root/dev/shm/{found[1]}" if found else None


@contextmanager
def _page(pid: int) -> Iterator[tuple[int, int, _Page]]:
    """The file, the place in it, and what stands there."""
    path = _path(pid)
    if path is None:
        executable(pid)  # or else it has none, which is the reason
        raise _none(pid)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise _none(pid) from None
    except PermissionError:
        raise kept_out(pid) from None
    try:
        status = os.fstat(file)
        if status.st_uid not in {0, asked(pid, lambda: os.stat(f"/proc/{pid}").st_uid)}:  # noqa: PTH116
            raise _BadPage(f"{path} was put there by another user: it is not process {pid}'s")
        if not stat.S_ISREG(status.st_mode):
            raise _damaged(pid)
        yield file, *_own(pid, file)
    finally:
        os.close(file)


def _own(pid: int, file: int) -> tuple[int, _Page]:
    inner = asked(pid, lambda: _inner_pid(pid))
    pages = os.pread(file, _HEAD + _PAGES * _LAYOUT.size, 0)[_HEAD:]
    if len(pages) != _PAGES * _LAYOUT.size:
        raise _damaged(pid)
    for number, words in enumerate(_LAYOUT.iter_unpack(pages)):
        page = _Page(*words)
        if page.pid == inner and page.magic != _MAGIC:
            raise _damaged(pid)
        if page.pid == inner and page.version != _VERSION:
            raise _BadPage(f"process {pid} takes orders of another version of fairlead: use that one's ctl")
        if page.pid == inner:
            return _HEAD + number * _LAYOUT.size, page
    raise _none(pid)


def _none(pid: int) -> UsageError:
    return UsageError(
        f"process {pid} takes no orders: it was never scheduled, or became another program since (exec), or"
        " has no /dev/shm; start it with fairlead run -- COMMAND, or (Python 3.14 and later) schedule it now:"
        f" fairlead run --pid {pid}"
    )


def _inner_pid(pid: int) -> int:
    """Its number as it knows itself: another one in a container."""
    with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        return next((int(line.split()[-1]) for line in file if line.startswith("NSpid:")), pid)

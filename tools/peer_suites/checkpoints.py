"""fairlead.sync with the names of anyio and trio, which are almost the same, and with their checkpoints: a
call that need not wait lets others run once, and raises before that if its scope is cancelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

from fairlead import errors, sync

peer: Any = SimpleNamespace()
"""What the suite's plugin puts there: the library, and what anyio and trio have under different names."""


async def _wait(
    fast: bool, at_once: Callable[[], Any], in_time: Callable[[], Any], undo: Callable[[], Any]
) -> Any:
    await peer.checkpoint_if_cancelled()
    try:
        result = at_once()
    except peer.library.WouldBlock:
        return await in_time()
    if not fast:
        try:
            await peer.cancel_shielded_checkpoint()
        except BaseException:
            undo()
            raise
    return result


@contextmanager
def _worded(message: str) -> Iterator[None]:
    """Errors of arguments in the words of the peer's, for which its tests look."""
    try:
        yield
    except ValueError:
        raise ValueError(message) from None


class Face:
    inner: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inner!r}>"


class Taken(Face):
    fast = False

    def acquire_nowait(self) -> None:
        if not self.inner.acquire(False):
            raise peer.library.WouldBlock

    async def acquire(self) -> None:
        await _wait(self.fast, self.acquire_nowait, self.inner.acquire_async, self.release)

    def release(self) -> None:
        self.inner.release()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()


class Lock(Taken):
    def __init__(self, *, fast_acquire: bool = False) -> None:
        self.inner, self.fast = sync.Lock(fair=True), fast_acquire

    def locked(self) -> bool:
        return self.inner.locked()  # type: ignore[no-any-return]

    def statistics(self) -> Any:
        locked, waiting, _ = self.inner.statistics()
        return SimpleNamespace(locked=locked, tasks_waiting=waiting)


class StrictFIFOLock(Lock): ...


class Condition(Taken):
    def __init__(self, lock: Any = None) -> None:
        self.lock = Lock() if lock is None else lock
        self.inner = sync.Condition(getattr(self.lock, "inner", lock))

    def locked(self) -> bool:
        return self.inner.locked()  # type: ignore[no-any-return]

    async def wait(self) -> None:
        await peer.checkpoint_if_cancelled()
        await self.inner.wait_async()

    async def wait_for(self, predicate: Callable[[], Any]) -> Any:
        return await self.inner.wait_for_async(predicate)

    def notify(self, n: int = 1) -> None:
        self.inner.notify(n)

    def notify_all(self) -> None:
        self.inner.notify_all()

    def statistics(self) -> Any:
        waiting, _ = self.inner.statistics()
        return SimpleNamespace(tasks_waiting=waiting, lock_statistics=self.lock.statistics())


class Semaphore(Taken):
    def __init__(
        self, initial_value: int, *, max_value: int | None = None, fast_acquire: bool = False
    ) -> None:
        self.max_value, self.fast = max_value, fast_acquire
        if max_value is None:
            with _worded("initial value must be >= 0"):
                self.inner = sync.Semaphore(initial_value, fair=True)
            return
        self.inner = sync.BoundedSemaphore(max_value, fair=True)
        if initial_value < max_value:
            self.inner.acquire(n=max_value - initial_value)
        elif initial_value > max_value:
            raise ValueError("max_values must be >= initial_value")

    def release(self) -> None:
        with _worded("semaphore released too many times"):
            self.inner.release()

    @property
    def value(self) -> int:
        return self.inner.statistics().value  # type: ignore[no-any-return]

    def statistics(self) -> Any:
        return SimpleNamespace(tasks_waiting=self.inner.statistics().waiting)


class Event(Face):
    def __init__(self) -> None:
        self.inner = sync.Event()
        self.set, self.is_set = self.inner.set, self.inner.is_set

    async def wait(self) -> None:
        if self.inner.is_set():
            await peer.checkpoint_if_cancelled()
            await peer.cancel_shielded_checkpoint()
        else:
            await self.inner.wait_async()

    def __bool__(self) -> bool:
        raise NotImplementedError

    def statistics(self) -> Any:
        return SimpleNamespace(tasks_waiting=self.inner.statistics().waiting)


class CapacityLimiter(Taken):
    def __init__(self, total_tokens: float) -> None:
        with _worded("total_tokens must be >= 0"):
            self.inner = sync.CapacityLimiter(total_tokens, fair=True)

    @property
    def total_tokens(self) -> float:
        return self.inner.total_tokens  # type: ignore[no-any-return]

    @total_tokens.setter
    def total_tokens(self, value: float) -> None:
        with _worded("total_tokens must be >= 0"):
            self.inner.total_tokens = value

    borrowed_tokens = property(lambda self: self.inner.borrowed_tokens)
    available_tokens = property(lambda self: self.inner.available_tokens)

    def acquire_on_behalf_of_nowait(self, borrower: object) -> None:
        if not self.inner.acquire_on_behalf_of(borrower, False):
            raise peer.library.WouldBlock

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await _wait(
            False,
            lambda: self.acquire_on_behalf_of_nowait(borrower),
            lambda: self.inner.acquire_on_behalf_of_async(borrower),
            lambda: self.release_on_behalf_of(borrower),
        )

    def release_on_behalf_of(self, borrower: object) -> None:
        self.inner.release_on_behalf_of(borrower)

    def statistics(self) -> Any:
        borrowed, total, waiting, _ = self.inner.statistics()
        borrowers = [who for who, loan in self.inner._lent.items() if loan[0] is not None]
        return SimpleNamespace(
            borrowed_tokens=borrowed, total_tokens=total, tasks_waiting=waiting,
            borrowers=peer.borrowers_as(borrowers),
        )  # fmt: skip


class End(Face):
    """One end of a channel."""

    def __init__(self, inner: Any, most: float) -> None:
        self.inner, self.most = inner, most

    def clone(self) -> Self:
        try:
            return type(self)(self.inner.clone(), self.most)
        except errors.EndClosedError:
            raise peer.library.ClosedResourceError from None

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        self.close()
        await peer.checkpoint_if_cancelled()
        await peer.cancel_shielded_checkpoint()

    def _closed(self, error: errors.ChannelClosedError) -> Exception:
        mine = isinstance(error, errors.EndClosedError)
        kind = peer.library.ClosedResourceError if mine else self.other_end_closed
        return kind()  # type: ignore[no-any-return]

    @property
    def other_end_closed(self) -> type[Exception]:
        raise NotImplementedError

    def _now(self, way: Callable[..., Any], *given: Any) -> Any:
        try:
            return way(*given)
        except (errors.QueueFull, errors.QueueEmpty):
            raise peer.library.WouldBlock from None
        except errors.ChannelClosedError as error:
            raise self._closed(error) from None

    async def _later(self, way: Callable[..., Any], *given: Any) -> Any:
        try:
            return await way(*given)
        except errors.ChannelClosedError as error:
            raise self._closed(error) from None

    def statistics(self) -> Any:
        now = self.inner.statistics()
        ends = "streams" if peer.library.__name__ == "anyio" else "channels"
        return SimpleNamespace(
            current_buffer_used=now.pending, max_buffer_size=self.most,
            tasks_waiting_send=now.sending, tasks_waiting_receive=now.receiving,
            **{f"open_send_{ends}": now.senders, f"open_receive_{ends}": now.receivers},
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SendEnd(End):
    other_end_closed = property(lambda _: peer.library.BrokenResourceError)

    def send_nowait(self, item: Any) -> None:
        self._now(self.inner.send_nowait, item)

    async def send(self, item: Any) -> None:
        await _wait(
            False,
            lambda: self.send_nowait(item),
            lambda: self._later(self.inner.send_async, item),
            lambda: None,
        )


class ReceiveEnd(End):
    other_end_closed = property(lambda _: peer.EndOfStream)

    def receive_nowait(self) -> Any:
        return self._now(self.inner.receive_nowait)

    async def receive(self) -> Any:
        return await _wait(
            False, self.receive_nowait, lambda: self._later(self.inner.receive_async), lambda: None
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except peer.EndOfStream:
            raise StopAsyncIteration from None


class Opener:
    """open[type](capacity): the two ends of a new channel."""

    def __getitem__(self, _: Any) -> Self:
        return self

    def __call__(self, most: float = 0) -> tuple[SendEnd, ReceiveEnd]:
        with _worded("max_buffer_size must be >= 0"):
            send, receive = sync.channel(None if most == math.inf else most)  # type: ignore[arg-type]
        return SendEnd(send, most), ReceiveEnd(receive, most)

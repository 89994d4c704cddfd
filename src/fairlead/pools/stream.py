"""Many calls of one function: in chunks, in a window, in order or as they come, for threads and for tasks.

A chunk is one task that calls the function for several items and returns what each call came to. How many
items go into one follows from the time that calls have taken: a chunk should last some ten times what a task
costs by itself, and there should be several chunks for each worker.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairlead.errors import BrokenPool, PoolClosed, UsageError
from fairlead.pools import progress as bars
from fairlead.pools.chunks import call_chunk
from fairlead.pools.failure import Failure
from fairlead.sync import Event, SimpleQueue

if TYPE_CHECKING:
    from fairlead.pools.base import Pool
    from fairlead.pools.future import Future

T = TypeVar("T")

WORTH = 10
"""A chunk should last so many times what a task costs."""


def _ended(future: Future[Any]) -> Event:
    event = Event()
    future.add_done_callback(lambda _: event.set())
    return event


class Chunk:
    """A task under way: the items' number, and the future of their outcomes."""

    __slots__ = ("future", "length")

    def __init__(self, future: Future[Any], length: int) -> None:
        self.future = future
        self.length = length


class Stream(Generic[T]):
    """The results of many calls: an iterator for threads and, by ``async for``, for tasks. One consumer at a
    time.

    Made by ``pool.stream``, ``pool.map`` and ``pool.imap``, whose docstrings say what it promises.
    """

    def __init__(
        self,
        pool: Pool,
        function: Callable[..., T],
        source: Iterable[Any] | AsyncIterable[Any],
        *,
        star: bool,
        ordered: bool = True,
        window: int | None = None,
        chunksize: int | None = None,
        eager: bool = False,
        progress: bars.Progress = False,
        timeout: float | None = None,
        at_end: Callable[[Stream[T]], object] | None = None,
    ) -> None:
        if chunksize is not None and chunksize < 1:
            raise UsageError(f"chunksize must be at least 1, not {chunksize}")
        if window is not None and window < 1:
            raise UsageError(f"window must be at least 1, not {window}")
        self._pool = pool
        self._function = pool._engine.portable(function)
        self._star = star
        self._ordered = ordered
        self._window = window
        options = pool._options
        self._fixed = (
            1 if chunksize is None and (options.timeout is not None or options.retries) else chunksize
        )
        self._size = self._fixed or 1
        self._eager = eager
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._async_source = aiter(source) if isinstance(source, AsyncIterable) else None
        self._source: Iterator[Any] = iter(()) if isinstance(source, AsyncIterable) else iter(source)
        self._total = len(source) if isinstance(source, Sequence) else None
        self._exhausted = False
        self._error: BaseException | None = None
        self._lock = threading.RLock()
        self._sent = 0
        self._taken = 0
        """Items, each counted on its own side: what is under way or waits to be taken is the difference."""
        self._chunks: deque[Chunk] = deque()
        """In the order of their items; those that are not in order leave it as they come."""
        self._ready: SimpleQueue[Chunk] = SimpleQueue()
        self._outcomes: deque[Any] = deque()
        self._under_way: set[Chunk] = set()
        self._at_end = at_end
        self._filling = False
        self._bar = bars.bar(progress, self._total)
        if eager:
            pool._mappings.add(self)
            self._fill()
            self._perhaps_at_end()

    # the source's side

    def _room(self) -> int:
        """Items that may be taken from the source now."""
        if self._exhausted:
            return 0
        several = 4 * self._pool.workers
        if self._eager:
            if self._fixed:
                return self._fixed
            return self._size if len(self._under_way) < several else 0
        window = self._window if self._window is not None else several * self._size
        return min(self._size, max(window - (self._sent - self._taken), 0))

    def _fill(self) -> None:
        """Takes items from the source and submits them, as far as there is room."""
        if not self._eager:  # only the consumer is here; its source may take its time, so no lock is held
            while room := self._room():
                self._send(self._pull(room))
            return
        with self._lock:
            if not self._filling:  # as by a task that has ended within its submission
                self._filling = True
                try:
                    while room := self._room():
                        self._send(self._pull(room))
                finally:
                    self._filling = False

    def _pull(self, most: int) -> list[Any]:
        items: list[Any] = []
        try:
            for item in itertools.islice(self._source, most):
                items.append(item)  # noqa: PERF402 - what came before an exception counts
        except Exception as error:  # noqa: BLE001 - raised behind the results of the items before
            self._error = error
            self._exhausted = True
        if len(items) < most:
            self._exhausted = True
        return items

    async def _fill_async(self) -> None:
        if self._async_source is None:
            self._fill()
            return
        while room := self._room():
            items: list[Any] = []
            try:
                while len(items) < room:
                    items.append(await anext(self._async_source))
            except StopAsyncIteration:
                self._exhausted = True
            except Exception as error:  # noqa: BLE001 - raised behind the results of the items before
                self._error = error
                self._exhausted = True
            self._send(items)

    def _send(self, items: list[Any]) -> None:
        if not items:
            return
        try:
            future = self._pool._submit(call_chunk, (self._function, items, self._star), {})
        except BaseException:
            self._exhausted = True
            raise
        chunk = Chunk(future, len(items))
        with self._lock:
            self._sent += len(items)
            self._under_way.add(chunk)
            if self._ordered:
                self._chunks.append(chunk)
        if self._eager:  # goes on by itself, whether somebody takes the results or not
            future.add_done_callback(lambda _: self._landed(chunk))
        else:
            stream = weakref.ref(self)

            def landed(_: object) -> None:
                if (alive := stream()) is not None:
                    alive._landed(chunk)

            future.add_done_callback(landed)

    def submit_rest(self) -> None:
        """Submits all that is left: the pool is about to take no more."""
        with self._lock:
            while not self._exhausted:
                self._send(self._pull(self._size))

    def _landed(self, chunk: Chunk) -> None:
        with self._lock:
            self._under_way.discard(chunk)
            if self._fixed is None and not chunk.future.cancelled() and chunk.future.exception() is None:
                self._choose(chunk.length, chunk.future.result()[1])
        if not self._ordered:
            self._ready.put(chunk)
        if self._eager:
            try:
                self._fill()
            except (PoolClosed, BrokenPool) as error:
                self._error = error
            self._perhaps_at_end()

    def _perhaps_at_end(self) -> None:
        with self._lock:
            if self._under_way or not self._exhausted:
                return
            at_end, self._at_end = self._at_end, None
        if at_end is not None:
            at_end(self)

    def _choose(self, length: int, spent_ns: int) -> None:
        """The size of the next chunks, from what one has taken; at most doubled or so at a time."""
        each_s = max(spent_ns / length, 50) / 1e9
        wanted = int(WORTH * self._pool._engine.call_cost_s / each_s) + 1
        if self._eager and self._total is not None:
            wanted = min(wanted, max(1, self._total // (4 * self._pool.workers)))
        self._size = max(1, min(wanted, 4 * self._size))

    # the consumer's side

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        if self._outcomes:  # as _hand_over: this is what each item of a large chunk costs
            outcome: Any = self._outcomes.popleft()
            self._taken += 1
            if type(outcome) is not Failure:
                return outcome  # type: ignore[no-any-return]
            raise outcome.error
        return self.next()

    def next(self, timeout: float | None = None) -> T:
        """The next result; TimeoutError after so many seconds, and the result is not lost then."""
        if self._async_source is not None:
            raise UsageError("the input is an asynchronous iterable: use `async for`")
        while not self._outcomes:
            self._fill()
            if self._sent == self._taken:
                self._end()
            if timeout is None and self._deadline is not None:
                left: float | None = max(0.0, self._deadline - time.monotonic())
            else:
                left = timeout
            self._unpack(self._wait(left))
        return self._hand_over()

    def _wait(self, timeout: float | None) -> Chunk:
        if not self._ordered:
            try:
                return self._ready.get(timeout=timeout)
            except Exception as empty:
                raise TimeoutError("no result within the time") from empty
        chunk = self._chunks[0]
        if timeout is not None and not _ended(chunk.future).wait(timeout):
            raise TimeoutError("no result within the time")
        return self._chunks.popleft()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._outcomes:
            await self._fill_async()
            if self._sent == self._taken:
                self._end(StopAsyncIteration)
            if self._ordered:
                await _ended(self._chunks[0].future).wait_async()
                chunk = self._chunks.popleft()
            else:
                chunk = await self._ready.get_async()
            self._unpack(chunk)
        return self._hand_over()

    def _end(self, kind: type[Exception] = StopIteration) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        error, self._error = self._error, None
        if error is not None:
            raise error
        raise kind

    def _unpack(self, chunk: Chunk) -> None:
        """Waits for the chunk's outcomes; a task that did not come to its end is the outcome of all its
        items."""
        try:
            outcomes, _ = chunk.future.result()
        except Exception as error:  # noqa: BLE001 - the items' outcome
            outcomes = [Failure(error)] * chunk.length
        self._outcomes.extend(outcomes)
        outcomes.clear()  # the future holds on to no result that the consumer lets go of
        if self._bar is not None:
            self._bar.update(chunk.length)

    def _hand_over(self) -> T:
        outcome = self._outcomes.popleft()
        self._taken += 1
        if type(outcome) is Failure:
            raise outcome.error
        result: T = outcome
        return result

    def close(self) -> None:
        """Cancels what is under way; the stream is at its end then."""
        with self._lock:
            self._exhausted = True
            chunks = list(self._under_way)
            self._chunks.clear()
            self._outcomes.clear()
            self._taken = self._sent
        for chunk in chunks:
            chunk.future.cancel()
        if self._bar is not None:
            self._bar.close()

    def __del__(self) -> None:
        if not getattr(self, "_eager", True):
            self.close()

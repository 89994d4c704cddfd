"""Many calls of one function: in chunks, in a window, in order or as they come, for threads and for tasks.

A chunk is one task that calls the function for several items and returns what each call came to
(chunking.py).

An item is always in one place that outlives an interrupted or cancelled ``next``: the source, ``_pulled``, a
chunk under way, a chunk in ``_chunks``, or the outcomes of the first of these. What moves it on is written so
that an exception between two steps (Ctrl-C, a cancellation) leaves it in the place where it was.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import sys
import time
import weakref
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairlead._native import Taker
from fairlead.errors import BrokenPoolError, PoolClosedError, UsageError
from fairlead.pools.engine import forks
from fairlead.pools.engine.contract import Lending
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.executor import progress as bars
from fairlead.pools.executor.chunking import FOR_EACH_WORKER, ChunkSizes, StreamChunk
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure
from fairlead.sync import Event

if TYPE_CHECKING:
    import asyncio

    from fairlead.pools.executor.base import Pool

T = TypeVar("T")

QUICK_NS = 100_000
"""A source that took no longer for its last item is asked for more also while results are ready."""


class NotYet(TimeoutError):
    """No result within the time; never a call's own TimeoutError."""


class Stream(Taker, Generic[T]):
    """The results of many calls: an iterator for threads and, by ``async for``, for tasks. One consumer at a
    time.

    Made by ``pool.stream`` and ``pool.map``, whose docstrings say what it promises.
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
        for name, number in (("chunksize", chunksize), ("window", window)):
            if number is not None and number < 1:
                raise UsageError(f"{name} must be at least 1, not {number}")
        self._pool = pool
        self._engine = pool._engine
        self._function = pool._engine.portable(function)
        self._star = star
        self._ordered = ordered
        options = pool._options
        alone = options.timeout is not None or options.retries
        self._context = contextvars.copy_context() if eager and options.context else None
        """Of the caller, as others submit most of the chunks."""
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._async_source = aiter(source) if isinstance(source, AsyncIterable) else None
        self._source: Iterator[Any] = iter(()) if isinstance(source, AsyncIterable) else iter(source)
        self._reading: asyncio.Future[tuple[Any] | None] | None = None
        """The next item of an asynchronous source, in asyncio."""
        self._total = len(source) if isinstance(source, Sequence) else None
        self._sizes = ChunkSizes(
            pool, function, fixed=1 if chunksize is None and alone else chunksize, window=window,
            total=self._total if eager else None,
        )  # fmt: skip
        self._quick = self._total is not None
        """The source does not keep its reader waiting."""
        self._exhausted = False
        self._error: BaseException | None = None
        self._lock = EngineLock()
        self._pulled: list[Any] = []
        self._sent = 0
        self._taken = 0
        """Items of chunks that have been taken as a whole."""
        self._chunks: deque[StreamChunk] = deque()
        """In the order of their items; otherwise those that have ended, as they came."""
        self._outcomes = deque()  # of the first of these
        self._failure = Failure
        self._under_way: dict[StreamChunk, None] = {}
        """In the order in which a worker would take them: cancelled in that order, no later one is begun."""
        self._landed_one = Event()
        self._raised: tuple[deque[Any] | None, int] = (None, 0)
        """Where the last exception was taken from, and what was left there."""
        self._at_end = at_end
        self._filling = False
        self._bar = bars.bar(progress, self._total)
        self._eager = eager  # the last one: __del__ closes what has it
        forks.remember(self)
        if eager:
            pool._intake.add(self)
            self._fill()
            self._perhaps_at_end()

    # the source's side

    def _room(self) -> int:
        """Items that may be taken from the source now."""
        if self._exhausted:
            return 0
        if not self._eager:
            return self._sizes.room(self._ahead())
        few = self._sizes.fixed or len(self._under_way) < FOR_EACH_WORKER * self._pool.workers
        return self._sizes.now if few else 0

    def _ahead(self) -> int:
        """Items that were submitted and are not taken."""
        ahead = self._sent - self._taken
        if self._chunks and (first := self._chunks[0]).outcomes is not None:
            ahead -= first.length - len(first.outcomes)
        return ahead

    def _ready(self) -> bool:
        """Whether a result can be had without waiting."""
        return bool(self._chunks) and (not self._ordered or self._chunks[0].future.done())

    def _fill(self) -> None:
        """Takes items from the source and submits them, as far as there is room, and as no result is ready
        that would have to wait for them."""
        if not self._eager:  # only the consumer is here; its source may take its time, so no lock is held
            while (room := self._room()) and (self._quick or not self._ready()):
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
        items = self._pulled
        try:
            if self._quick:
                begin = time.monotonic_ns()
                items += itertools.islice(self._source, max(most - len(items), 0))
                self._exhausted = len(items) < most
                if self._total is None:
                    self._quick = time.monotonic_ns() - begin < QUICK_NS * most
            else:
                self._pull_slowly(items, most)
        except Exception as error:  # noqa: BLE001 - raised behind the results of the items before
            self._error = error
            self._exhausted = True
        return items

    def _pull_slowly(self, items: list[Any], most: int) -> None:
        end = object()
        while len(items) < most and not (items and self._ready()):
            begin = time.monotonic_ns()
            item = next(self._source, end)
            if item is end:
                self._exhausted = True
                return
            items.append(item)
            self._quick = time.monotonic_ns() - begin < QUICK_NS

    async def _fill_async(self) -> None:
        if self._async_source is None:
            self._fill()
            return
        while (room := self._room()) and not self._ready():
            try:
                while len(self._pulled) < room:
                    if not await self._pull_async(self._async_source):
                        break
            except StopAsyncIteration:
                self._exhausted = True
            except Exception as error:  # noqa: BLE001 - raised behind the results of the items before
                self._error = error
                self._exhausted = True
            self._send(self._pulled)

    async def _pull_async(self, source: AsyncIterator[Any]) -> bool:
        """Takes an item; False: a result has become ready sooner.

        In asyncio a task of its own reads it, which a cancellation of the consumer does not reach; elsewhere
        it does, and what becomes of the item is the source's affair.
        """
        asyncio = sys.modules.get("asyncio")
        if asyncio is None or asyncio._get_running_loop() is None:
            self._pulled.append(await anext(source))
            return True
        if self._reading is None:
            self._reading = asyncio.ensure_future(_next_of(source))
        while not self._reading.done():
            self._landed_one.clear()
            if self._ready():
                return False
            bell = asyncio.ensure_future(self._landed_one.wait_async())
            try:
                await asyncio.wait((self._reading, bell), return_when=asyncio.FIRST_COMPLETED)
            finally:
                bell.cancel()
        reading, self._reading = self._reading, None
        found = reading.result()
        if found is None:
            raise StopAsyncIteration
        self._pulled.append(found[0])
        return True

    def _send(self, items: list[Any]) -> None:
        """Submits them; they are not in ``_pulled`` any more then."""
        if not items:
            return
        self._sizes.sent(items[-1], star=self._star)
        chunk = StreamChunk(items)
        future = chunk.future
        try:
            with self._lock:
                self._sent += len(items)
                self._under_way[chunk] = None
                if self._ordered:
                    self._chunks.append(chunk)
            submit: Any = self._pool._submit
            if self._context is not None:
                submit = functools.partial(self._context.copy().run, submit)
            submit(call_chunk, (self._function, chunk.calls, self._star), {}, future)
            self._pulled = []
            self._listen(chunk)
        except BaseException as error:
            if future.retract():
                with self._lock:
                    self._sent -= len(items)
                    self._under_way.pop(chunk, None)
                    if chunk in self._chunks:
                        self._chunks.remove(chunk)
                self._exhausted = self._exhausted or isinstance(error, Exception)
            else:
                self._pulled = []
                self._listen(chunk)
            raise

    def _listen(self, chunk: StreamChunk) -> None:
        if self._eager:  # goes on by itself, whether the results are taken or not
            chunk.future.listen(lambda _: self._landed(chunk))
            return
        stream = weakref.ref(self)

        def landed(_: object) -> None:
            if (alive := stream()) is not None:
                alive._landed(chunk)

        chunk.future.listen(landed)

    def submit_rest(self) -> None:
        """Submits all that is left: the pool is about to take no more."""
        with self._lock:
            while not self._exhausted:
                self._send(self._pull(self._sizes.now))

    def _landed(self, chunk: StreamChunk) -> None:
        chunk.calls.forget()
        with self._lock:
            if chunk not in self._under_way:
                return
            self._sizes.landed(chunk)
            if not self._ordered:
                self._chunks.append(chunk)
            self._under_way.pop(chunk, None)
        if self._eager:
            try:
                self._fill()
            except (PoolClosedError, BrokenPoolError) as error:
                self._error = error
        self._landed_one.set()  # now there is another chunk, or none will come
        if self._eager:
            self._perhaps_at_end()

    def _perhaps_at_end(self) -> None:
        with self._lock:
            if self._under_way or not self._exhausted:
                return
            at_end, self._at_end = self._at_end, None
        if at_end is not None:
            at_end(self)

    # the consumer's side

    def next(self, timeout: float | None = None) -> T:
        """The next result; TimeoutError after so many seconds, and the result is not lost then."""
        if self._async_source is not None:
            raise UsageError("the input is an asynchronous iterable: use `async for`")
        until = self._deadline if timeout is None else time.monotonic() + timeout
        while not self._outcomes:
            self._let_go()
            self._fill()
            if self._is_over():
                self._end(StopIteration)
            left = None if until is None else max(0.0, until - time.monotonic())
            if not self._wait(left):
                raise NotYet("no result within the time")
            self._unpack()
        return self.__next__()  # type: ignore[no-any-return]

    def _raise(self, failure: Failure) -> T:
        """A consumer that is left by it may never come back."""
        self._raised = self._outcomes, len(self._outcomes)
        bars.pause(self._bar)
        raise failure.error

    def _is_over(self) -> bool:
        with self._lock:
            return self._exhausted and not self._chunks and (self._ordered or not self._under_way)

    def _wait(self, timeout: float | None) -> bool:
        """Until there is an ended chunk, or something else to do; False: it has taken too long."""
        with self._lock:  # a chunk that another thread submits is there before its task is
            first = self._chunks[0] if self._ordered and self._chunks else None
        if first is not None:
            return first.future.ended(timeout)
        self._landed_one.clear()
        if self._chunks or self._is_over():
            return True
        with Lending(self._engine):
            return self._landed_one.wait(timeout)

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._outcomes:
            self._let_go()
            await self._fill_async()
            if self._is_over():
                self._end(StopAsyncIteration)
            if not self._ready():
                self._landed_one.clear()
                if not self._ready() and not self._is_over():
                    with Lending(self._engine, blocking=False):
                        await self._landed_one.wait_async()
            self._unpack()
        return self.__next__()  # type: ignore[no-any-return]

    def results(self) -> list[T]:
        """All that has not been taken yet, as a list; waits for it, and raises what the first call raised."""
        return list(self)

    def _let_go(self) -> None:
        """Of a chunk whose outcomes have been taken."""
        if self._chunks and self._chunks[0].outcomes is not None and not self._chunks[0].outcomes:
            self._taken += self._chunks[0].length
            self._chunks.popleft()

    def _end(self, kind: type[Exception]) -> None:
        self._close_bar()
        error, self._error = self._error, None
        raise kind if error is None else error

    def _unpack(self) -> None:
        if not self._ready():
            return
        chunk = self._chunks[0]
        self._outcomes = chunk.load()
        if self._bar is not None:
            self._bar.update(chunk.length)

    # the end

    def abandon(self) -> None:
        """At the end of a ``with`` block: if the consumer was left by a call's exception, cancels what has
        not begun."""
        self._close_bar()
        raised_by, left = self._raised
        if raised_by is self._outcomes and left == len(self._outcomes):
            self._cease()

    def close(self) -> None:
        """Cancels what is under way; the stream is at its end then."""
        self._engine.uninterrupted(self._cancel)
        self._close_bar()

    def _cancel(self) -> None:
        for chunk in self._cease():
            chunk.future.cancel_here()

    def _cease(self) -> list[StreamChunk]:
        """Cancels what has not begun; first, as a worker whose task is stopped would begin the next."""
        with self._lock:
            self._exhausted = True
            self._pulled = []
            chunks = list(self._under_way)
            self._chunks.clear()
            self._outcomes.clear()
            self._taken = self._sent
            self._under_way.clear()
        if (reading := self._reading) is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                reading.get_loop().call_soon_threadsafe(reading.cancel)
        for chunk in chunks:
            chunk.future.cancel_queued()
        return chunks

    def forget_after_fork(self) -> None:
        """What has been handed over may still be taken."""
        self._lock = EngineLock()
        self._landed_one = Event()
        self._exhausted = True
        self._error = PoolClosedError("this process was forked from the stream's: no more results come here")
        self._chunks.clear()
        self._under_way.clear()
        self._bar = None

    def _close_bar(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    def __del__(self) -> None:
        if not getattr(self, "_eager", True):
            self._cancel()
        if getattr(self, "_bar", None) is not None:
            self._close_bar()


async def _next_of(source: AsyncIterator[Any]) -> tuple[Any] | None:
    """None at its end: a future cannot have StopAsyncIteration."""
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None

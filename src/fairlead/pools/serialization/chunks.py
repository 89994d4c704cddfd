"""A chunk: one task that calls a function for several items. Imported by workers; keep its imports few."""

from __future__ import annotations

import time

from fairlead.pools.engine.stopped import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from fairlead.pools.engine.contract import Task
    from fairlead.pools.serialization.messages import Parts


def _failure(error: BaseException) -> Any:
    from fairlead.pools.serialization.failure import Failure

    return Failure(error)


def call_chunk(
    function: Callable[..., Any],
    items: Iterable[Any],
    star: bool,
    failed: Callable[[BaseException], Any] = _failure,
    goes_on: Callable[[list[Any]], bool] | None = None,
) -> tuple[list[Any], int]:
    """What each call came to, a Failure where it raised, and the nanoseconds that all took.

    Args:
        failed: makes the Failure.
        goes_on: where the items are an iterator that may pause: asked once no more come, with the outcomes,
            of which it keeps what it takes out.
    """
    begin = time.monotonic_ns()
    outcomes: list[Any] = []
    append = outcomes.append
    left = iter(items)
    while True:
        try:
            # the loops of each small call: nothing else is done in them
            if star:
                for item in left:
                    append(function(*item))
            else:
                for item in left:
                    append(function(item))
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001 - the item's outcome, sys.exit() too
            append(failed(error))
        else:
            if goes_on is None or not goes_on(outcomes):
                return outcomes, time.monotonic_ns() - begin


class ChunkCalls:
    """The calls of a chunk that are left to be made, and what came of the others.

    What cannot be sent, what a lost worker has taken along and what has arrived of its results is taken out,
    so that a further attempt goes on with the rest. One thread at a time: the one that has the task.
    """

    __slots__ = ("apart", "bytes_in", "bytes_out", "ended", "left", "length", "lost", "suspects")

    def __init__(self, items: list[Any]) -> None:
        self.length = len(items)
        self.left: tuple[list[Any], Sequence[int]] = items, range(len(items))
        """Items and their places in the chunk, in the order in which they are sent."""
        self.ended: dict[int, Any] = {}
        """Outcomes, by place."""
        self.lost: dict[int, int] = {}
        """How many workers were lost at a call, or after it and before its result had come; by place."""
        self.suspects: set[int] = set()
        """Calls that a lost worker had begun, by place: they come last, each when all results before it have
        been sent."""
        self.apart = False
        """Items are to be pickled each by itself."""
        self.bytes_out = self.bytes_in = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.left[0])

    def __len__(self) -> int:
        return len(self.left[0])

    def __reduce__(self) -> Any:
        return list, (self.left[0],)

    def forget(self) -> None:
        """Lets go of the items."""
        self.left = [], self.left[1]

    def end(self, outcomes: dict[int, Any]) -> None:
        """Takes out what has an outcome now, by place."""
        self.ended.update(outcomes)
        self.suspects.difference_update(outcomes)
        left = [(place, item) for item, place in zip(*self.left, strict=True) if place not in outcomes]
        left.sort(key=lambda one: one[0] in self.suspects)
        self.left = [item for _, item in left], [place for place, _ in left]

    def merged(self, outcomes: list[Any]) -> list[Any]:
        """Of all calls, in their order, now that those that were left have come to these."""
        if isinstance(self.left[1], range):  # as from the beginning
            return outcomes
        whole = {**self.ended, **dict(zip(self.left[1], outcomes, strict=True))}
        return [whole[place] for place in range(self.length)]


def chunk_of(task: Task) -> ChunkCalls | None:
    """None: it is no chunk."""
    return task.args[1] if task.function is call_chunk else None


def called(task: Task) -> Callable[..., Any]:
    """The user's function."""
    function: Callable[..., Any] = task.args[0] if task.function is call_chunk else task.function
    return function


class Apart:
    """Values that are pickled each by itself, so that one that cannot be read costs no other.

    Iterating gives a function for each that unpickles it.
    """

    __slots__ = ("buffers", "said", "streams")

    def __init__(self, streams: list[bytes], buffers: dict[int, list[Any]], said: str) -> None:
        """``buffers``: of those that have some, by number. ``said``: of one that cannot be read."""
        self.streams = streams
        self.buffers = buffers
        self.said = said

    @classmethod
    def of(cls, parts: list[Parts], said: str) -> Apart:
        buffers = {number: part.buffers for number, part in enumerate(parts) if part.buffers}
        return cls([b"".join(part.stream) for part in parts], buffers, said)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from pickle import PickleBuffer

        buffers = {number: [*map(PickleBuffer, some)] for number, some in self.buffers.items()}
        return Apart, (self.streams, buffers, self.said)

    def __len__(self) -> int:
        return len(self.streams)

    def __iter__(self) -> Iterator[Callable[[], Any]]:
        from functools import partial

        for number in range(len(self.streams)):
            yield partial(self._load, number)

    def _load(self, number: int) -> Any:
        import pickle

        try:
            return pickle.loads(self.streams[number], buffers=self.buffers.get(number, ()))
        except Stopped:
            raise
        except BaseException as error:
            from fairlead.errors import SerializationError

            raise SerializationError(f"{self.said}: {error!r}") from error

    def read(self) -> list[Any]:
        """All, with a Failure for each that cannot be read."""
        return call_chunk(lambda load: load(), self, False)[0]


class ReadFirst:
    """A function that reads its item first (of an Apart), so that this is a part of the call."""

    __slots__ = ("function", "star")

    def __init__(self, function: Callable[..., Any], star: bool) -> None:
        self.function = function
        self.star = star

    def __call__(self, load: Callable[[], Any]) -> Any:
        item = load()
        return self.function(*item) if self.star else self.function(item)

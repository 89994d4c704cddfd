"""What is lost of a chunk together with its worker, and what is not."""

from __future__ import annotations

from typing import Any

from fairlead.errors import WorkerDiedError
from fairlead.pools.engine.contract import Lost, Task
from fairlead.pools.serialization.calls import name_of
from fairlead.pools.serialization.chunks import ChunkCalls, called, chunk_of
from fairlead.pools.serialization.failure import Failure


def lost(task: Task, said: str, begun: int | None = None, arrived: list[Any] | None = None) -> Lost:
    """What a worker raises that is gone with this task; see ChunkLost."""
    chunk = chunk_of(task)
    if chunk is None or chunk.length == 1:
        return Lost(said)
    return ChunkLost(said, chunk, begun, arrived or [])


class ChunkLost(Lost):
    """The worker was gone while it had a chunk.

    The call that had begun last is lost. Those before it had been done: the results that have not arrived are
    lost, too. Both are called again if they have a retry left. All others had not begun, and the chunk goes
    on with them in any case.

    Args:
        begun: the number of the last call that had begun, 0 for none, one more than there are if all were
            done; None: it is not known.
        arrived: outcomes of the first calls.
    """

    def __init__(self, said: str, chunk: ChunkCalls, begun: int | None, arrived: list[Any]) -> None:
        super().__init__(said)
        self._chunk = chunk
        self._begun = begun
        self._arrived = arrived

    def begins_anew(self, task: Task) -> bool:
        chunk, begun = self._chunk, self._begun
        if begun is None or (begun == 0 and chunk.apart):
            return False
        if begun == 0:  # reading them has ended the worker: from now on that is a part of each call
            chunk.apart = True
        else:
            self._end(task, chunk.left[1], begun)
        if not chunk:
            return False
        task.attempts -= task.unread  # the chunk has become shorter: this does not go on for ever
        task.unread = 0
        return True

    def _end(self, task: Task, places: Any, begun: int) -> None:
        chunk = self._chunk
        ended = dict(zip(places, self._arrived, strict=False))
        done = places[len(self._arrived) : begun - 1]
        last = places[begun - 1 : begun]
        attempts = task.options.retries - (task.attempts - task.unread - 1)  # its time was up in the others
        for place in (*done, *last):
            chunk.lost[place] = chunk.lost.get(place, 0) + 1
        over = [place for place in (*done, *last) if chunk.lost[place] > attempts]
        known = f"{self}, calling {name_of(called(task))} for a chunk of {chunk.length} calls"
        also = sum(place in over for place in done)
        for place in over:
            if place in done:
                text = f"{known}; {also} of them had been done, this one too, and their results are lost"
            elif also:
                text = f"{known}, in this call; {also} others had been done, and their results are lost"
            else:
                text = f"{known}; only this call is lost"
            ended[place] = Failure(WorkerDiedError(text))
        chunk.suspects.update(done, last)
        chunk.end(ended)

    def error(self, task: Task) -> WorkerDiedError:
        chunk = f"calling {name_of(called(task))} for a chunk of {self._chunk.length} calls"
        return WorkerDiedError(f"{self}, {chunk}; it is not known which of them had been done or begun")

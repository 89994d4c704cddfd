"""What a worker process does: one call after another, until its parent says so or is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from fairlead import _native
from fairlead.pools.engine.worker_state import finalize, initialize
from fairlead.pools.process.channel import Channel
from fairlead.pools.process.progress import ChunkProgress, SharedWord
from fairlead.pools.process.surroundings import Surroundings
from fairlead.pools.serialization import calls, contexts, of_main, pickling
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Message, pickled

SendMessage = Callable[[int, Any], None]


def main(
    end: socket.socket,
    word: SharedWord,
    initializer: bytes | None,
    initargs: tuple[Any, ...],
    finalizer: bytes | None,
    levels: dict[str, int] | None,
    surroundings: Surroundings,
) -> None:
    """``levels``: those of the parent's loggers, if log records are to go there."""
    of_main.in_worker = True
    signal.signal(signal.SIGINT, _leave_it_to_the_parent)
    _end_with_the_parent()
    channel = Channel(end)
    send = channel.send if levels is None else _forward_logging(channel, levels)
    try:
        try:
            surroundings.take_over()
            last = None if finalizer is None else pickling.loads(finalizer)
            if initializer is not None:
                initialize(pickling.loads(initializer), initargs)
        except BaseException as error:  # noqa: BLE001 - shown where the pool is
            send(calls.FAILED, pickled(Failure(error)))
            return
        send(calls.READY, pickled(None))
        kept: tuple[Any, Any] | None = None
        while (message := channel.receive()).kind != calls.END:
            if message.kind == calls.CALL:
                kept = None
                kept = _serve(send, word, message)
            elif kept is not None:
                send(calls.RESULT, calls.pack_each(*kept))
            del message
        finalize(last)
    except (EOFError, ConnectionError):
        pass  # the parent is gone
    finally:
        channel.close()  # what this process does at its end may take long


NO_GUARD = 119
"""The exit status of a worker whose main module, on being imported, was about to start workers."""


def end_if_imported_by_a_worker() -> None:
    """Ends this process, if it is a worker that imports the program's main module: multiprocessing would
    refuse to start another from there, by a traceback from each worker."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.stdout.flush()
        os._exit(NO_GUARD)


def _leave_it_to_the_parent(*_: object) -> None:
    """Ctrl-C reaches all processes of a terminal; the parent's pool decides what becomes of its workers.

    A handler, and not SIG_IGN, because programs that tasks start would inherit that.
    """


def _end_with_the_parent() -> None:
    """Has the kernel end this process and what it has started when its parent ends, whatever runs here: when
    the pipe that multiprocessing keeps between them is closed at the parent's side."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        _native.end_with(parent.sentinel)


def _forward_logging(channel: Channel, levels: dict[str, int]) -> SendMessage:
    """What sends from now on, which threads of tasks do, too."""
    from fairlead.pools.serialization import records

    send = records.MessageSender(channel.send)
    records.Forwarding(levels, lambda record: send(calls.RECORD, pickled(record)))
    return send


def _serve(send: SendMessage, word: SharedWord, message: Message) -> tuple[Any, Any] | None:
    """The function of a chunk and what it came to, if that may be asked for again."""
    kept = None
    try:
        function, args, kwargs, named = message.load()
        context = None if named is None else contexts.in_context(named)
    except BaseException as error:  # noqa: BLE001 - whatever unpickling runs
        send(calls.UNREADABLE, pickled(Failure(error)))
        return None
    if function is call_chunk:
        args, kwargs = _with_progress(send, word, *args)
    try:
        value = function(*args, **kwargs) if context is None else context.run(function, *args, **kwargs)
        kind, parts = calls.pack_outcome(function, args, value, together=True)
        if function is call_chunk and parts.nbytes <= calls.KEPT_BYTES:
            kept = args[0], value
        del value
    except BaseException as error:  # noqa: BLE001 - the task's
        kind, parts = calls.FAILED, pickled(Failure(error))
    del function, args, kwargs  # what they hold may live in a block, which this message gives back
    send(kind, parts)
    return kept


def _with_progress(
    send: SendMessage,
    word: SharedWord,
    function: Callable[..., Any],
    items: Any,
    star: bool,
    suspects: int = 0,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What call_chunk is called with."""

    def send_part(outcomes: list[Any]) -> None:
        send(calls.PART, calls.pack_outcomes(function, (outcomes, 0)))

    progress = ChunkProgress(word, items, suspects, send_part)
    return (function, progress.items, star), {"goes_on": progress.goes_on}

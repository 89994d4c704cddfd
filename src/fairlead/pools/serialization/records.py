"""Log records on their way from a worker to the handlers of the program that has started it.

The worker's loggers lose their handlers, and get the levels that the program's have. What they let through
goes the way of the results, in order, and the program's logger of the same name handles it.
"""

from __future__ import annotations

import logging
import os
import traceback
from collections import deque
from collections.abc import Callable
from logging.handlers import QueueHandler
from typing import Any

from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.serialization import pickling

Levels = dict[str, int]
"""Of loggers that have one, by name; "" is the root's."""


def levels() -> Levels:
    """This program's."""
    found = {
        name: logger.level
        for name, logger in list(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and logger.level
    }
    return {"": logging.root.level, **found}


def handle(pickled: bytes) -> None:
    """Has a record handled here. What that raises is printed, as by logging's own handlers."""
    try:
        record = logging.makeLogRecord(pickling.loads(pickled))
        logger = logging.getLogger(record.name)
        if logger.isEnabledFor(record.levelno):
            logger.handle(record)
    except BaseException:  # noqa: BLE001 - filters, handlers and attributes are a user's
        traceback.print_exc()


class Forwarding(QueueHandler):
    """A worker's only handler, from when it is made until it is closed.

    Args:
        send: takes a pickled record, in any thread of the worker, one at a time.
    """

    def __init__(self, levels: Levels, send: Callable[[bytes], object]) -> None:
        super().__init__(None)  # type: ignore[arg-type] # enqueue() needs none
        self._send: Callable[[bytes], object] | None = send
        self._pid = os.getpid()
        for logger in list(logging.root.manager.loggerDict.values()):
            if isinstance(logger, logging.Logger):
                logger.handlers.clear()  # a forked worker's, or its main module's
                logger.propagate = True
        logging.root.handlers[:] = [self]
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

    def enqueue(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._pid and logging.lastResort is not None:
            # in a child that a task has forked, which must not write between the worker's messages
            logging.lastResort.handle(record)
        elif self._send is not None:
            self._send(pickling.dumps(record.__dict__))

    def close(self) -> None:
        """When it returns, nothing is being sent, and nothing will be."""
        with self.lock:  # type: ignore[union-attr] # handle() has it while it sends
            self._send = None
        super().close()


class MessageSender:
    """Messages that several threads send, one after the other.

    A record of the very thread that is sending comes from a signal's handler or an object's end: it is sent
    behind the message that it has interrupted.
    """

    def __init__(self, send: Callable[[int, Any], None]) -> None:
        self._send = send
        self._lock = EngineLock()
        self._waiting: deque[tuple[int, Any]] = deque()
        self._sending = False

    def __call__(self, kind: int, parts: Any) -> None:
        with self._lock:
            self._waiting.append((kind, parts))
            if self._sending:
                return
            self._sending = True
            try:
                while self._waiting:
                    self._send(*self._waiting.popleft())
            finally:
                self._sending = False

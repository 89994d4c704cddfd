"""What keeps a process from being started now, and may not later."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from fairlead.pools.engine.contract import Lost

EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS}


@contextlib.contextmanager
def lost_without(*, server: bool) -> Iterator[None]:
    """Raises Lost where descriptors, memory or processes are exhausted, or the server of "forkserver" is gone
    that was there before."""
    try:
        yield
    except (OSError, EOFError, MemoryError) as error:
        gone = server and isinstance(error, EOFError | BrokenPipeError)
        if gone or isinstance(error, MemoryError) or getattr(error, "errno", None) in EXHAUSTED:
            raise Lost(f"a worker process cannot be started: {error!r}") from error
        raise

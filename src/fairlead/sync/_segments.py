"""Segments of memory that processes share: found by name or by pickle, and freed.

Without a name a segment is a memory file (``memfd_create``): it has no place in the file system, and the
kernel frees it when the last process that has it open or mapped ends, however that ends. A pickle names a
process that has it, and the number of its descriptor there, which ``/proc`` opens for others.

With a name it is a file in ``/dev/shm``. Every process that uses it holds a shared ``flock`` on it, which the
kernel takes back when it ends. So the process that gets the exclusive one is alone with it: the last user at
its end, which removes the file; ``sweep``; or the next that opens the name, and takes what killed processes
left for a blank one. A process that waited for the lock meanwhile checks whether its file still is the one of
that name.

A ``flock`` belongs to what ``open`` made, which a mapping keeps, too, and a forked child shares. So the one
with the lock is never mapped, and a child opens one of its own.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from fairlead.errors import HandleGoneError, UnsupportedPlatformError, UsageError, WrongSegmentError

if sys.platform == "linux":
    import fcntl

_PLACE = "/dev/shm"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_MAGIC, _TOKEN_AT = b"fairlead", 32
"""As sync/processes/shm.h lays it out."""

_T = TypeVar("_T")
Build = Callable[[int, bytes | None, bool], _T]
"""Makes the object from a descriptor: with a token and True it writes the segment; otherwise it must be one,
and have that token if one is given."""


def _require_linux() -> None:
    if sys.platform != "linux":
        raise UnsupportedPlatformError(
            "fairlead.sync.shared needs memory files and /proc, which Linux has; "
            "between processes of this system use the primitives of multiprocessing"
        )


def path_of(name: str) -> str:
    """Where the segment of this name is; each user has names of their own."""
    _require_linux()
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 200 letters, digits, dots, hyphens and underscores"
        )
    return f"{_PLACE}/fairlead-{os.getuid()}-{name}"


def make(build: Build[_T]) -> tuple[_T, int, bytes]:
    """A new one without a name: what `build` made, its descriptor, and its token."""
    _require_linux()
    fd = os.memfd_create("fairlead", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        token = os.urandom(16)
        made = build(fd, token, True)
        # no process may cut it off under others that have it mapped
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return made, fd, token


def borrow(pid: int, number: int, token: bytes, build: Build[_T]) -> tuple[_T, int]:
    """The one that this process has under this number."""
    _require_linux()
    try:
        fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        why = "may not be opened" if isinstance(error, PermissionError) else "is not there any more"
        raise HandleGoneError(
            f"what process {pid} shares {why}: keep the object, and that process, until the pickle has "
            "arrived (a primitive may have a name instead)"
        ) from error
    try:
        return build(fd, token, False), fd
    except WrongSegmentError as error:  # the number has another file now
        os.close(fd)
        raise HandleGoneError(
            f"process {pid} does not share this any more: keep the object until the pickle has arrived"
        ) from error
    except BaseException:
        os.close(fd)
        raise


class SegmentUse:
    """The use of a name by this process."""

    def __init__(self, fd: int, path: str) -> None:
        self.fd, self.path = fd, path
        _places.add(self)

    def reopen(self) -> None:
        """In a forked child, which until then shares its parent's lock, and keeps it."""
        try:
            fd = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.close(self.fd)
        self.fd = fd

    def leave(self) -> None:
        """Removes the file if this was the last process that used it."""
        _places.discard(self)
        os.close(self.fd)
        _remove_unused(self.path)


_places: WeakSet[SegmentUse] = WeakSet()


def _forked() -> None:
    for place in list(_places):
        place.reopen()


if sys.platform == "linux":
    os.register_at_fork(after_in_child=_forked)


def open_named(path: str, build: Build[_T]) -> tuple[_T, SegmentUse]:
    """The one of that name, made if it is unused."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            made = _enter(fd, path, build)
        except BaseException:
            os.close(fd)
            _remove_unused(path)
            raise
        if made is not None:
            return made[0], SegmentUse(fd, path)
        os.close(fd)


def _enter(fd: int, path: str, build: Build[_T]) -> tuple[_T] | None:
    """None: the file has another name by now, or none, or its maker is dead."""
    if os.fstat(fd).st_uid != os.getuid():
        raise WrongSegmentError(f"{path} belongs to another user; choose another name")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(fd, fcntl.LOCK_SH)
        if not _is_at(fd, path) or _is_blank(fd):
            return None
        return (_mapped(fd, None, build),)
    if not _is_at(fd, path):
        return None
    if not _is_blank(fd) and os.pread(fd, len(_MAGIC), 0) != _MAGIC:
        raise WrongSegmentError(f"{path} is not one of fairlead's segments; choose another name")
    os.ftruncate(fd, 0)
    token = os.urandom(16)
    made = _mapped(fd, token, build)
    # Not in one step: a process that came in between found the file unused, and made it anew or removed it.
    fcntl.flock(fd, fcntl.LOCK_SH)
    return (made,) if _is_at(fd, path) and os.pread(fd, len(token), _TOKEN_AT) == token else None


def _mapped(fd: int, token: bytes | None, build: Build[_T]) -> _T:
    """By another opening than that which has the lock."""
    opened = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    try:
        return build(opened, token, token is not None)
    finally:
        os.close(opened)


def _is_blank(fd: int) -> bool:
    return not any(os.pread(fd, len(_MAGIC), 0))


def _is_at(fd: int, path: str) -> bool:
    try:
        there, mine = Path(path).lstat(), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _remove_unused(path: str) -> bool:
    """Whether it was there, one of ours, and unused."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unused = _is_at(fd, path) and (_is_blank(fd) or os.pread(fd, len(_MAGIC), 0) == _MAGIC)
        if unused:
            Path(path).unlink()
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.ENOENT):
            raise
        return False
    finally:
        os.close(fd)
    return unused


def sweep() -> list[str]:
    """Removes what named primitives of this user have left in /dev/shm and no process uses; their names."""
    prefix = path_of("x")[:-1]
    found = sorted(map(str, Path(_PLACE).iterdir()))
    return [p.removeprefix(prefix) for p in found if p.startswith(prefix) and _remove_unused(p)]

"""A directory in which this process and another one exchange files.

The other may be of another user, and may have another /tmp than this one (systemd's ``PrivateTmp``) or a
read-only one: so the directory is made where that process has it, through its root in ``/proc``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from fairlead.errors import UsageError
from fairlead.gil.observe.programs.target import asked, owner

_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Meeting(NamedTuple):
    """A directory by the name that stays ours when the other process has ended, and by one that both know
    while it runs."""

    ours: Path
    shared: Path

    def inner(self, name: str) -> Meeting:
        (self.ours / name).mkdir(mode=0o755)
        return Meeting(self.ours / name, self.shared / name)


@contextmanager
def meeting(pid: int) -> Iterator[Meeting]:
    """A new directory, into which only this user may write and the other process may look.

    Raises:
        UsageError: there is no such process, or the kernel keeps us out of it, or it has no place for that.
    """
    with ExitStack() as stack:
        root = asked(pid, lambda: os.open(f"/proc/{pid}/root", _OPEN))
        stack.callback(os.close, root)
        for place in _PLACES:
            with suppress(OSError):
                parent = os.open(place[1:], _OPEN, dir_fd=root)
                stack.callback(os.close, parent)
                made = tempfile.TemporaryDirectory(prefix="fairlead-", dir=f"/proc/self/fd/{parent}")
                break
        else:
            raise UsageError(
                f"process {pid} has none of {', '.join(_PLACES)} to exchange files in (missing or read-only):"
                " start it with fairlead run -- COMMAND (or record, or top)"
            )
        ours = Path(stack.enter_context(made))
        ours.chmod(0o755)
        shared = Path(place, ours.name)
        yield Meeting(ours, shared if shared.exists() else Path(f"/proc/{pid}/root{shared}"))


def give(pid: int, file: Path) -> Path:
    """Make the file the other process's to write, if that is of another user. It is there already, so that
    root never writes through a link of that user's making."""
    file.touch()
    user, group = owner(pid)
    if user != os.geteuid():
        os.chown(file, user, group)
    return file

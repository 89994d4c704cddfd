"""The hook in an environment's site-packages: a line that every Python of it runs at its start.

It is put there on request only (``fairlead run --install-hook``). A package that brought it along would
put code into every start of every program, asked or not, and pip would leave no way to take it out again.
The line looks for FAIRLEAD_GIL and imports nothing without it; and it holds its own against whatever may
have become of fairlead since, as an uninstalled or a broken one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from fairlead.errors import OutputError, UnsupportedInterpreterError
from fairlead.gil.schedule.launched import VARIABLE

NAME = "fairlead-gil.pth"
_PROGRAM = f"""\
import sys
if not hasattr(sys, '_fairlead_gil'):
 sys._fairlead_gil = 1
 known = set(sys.modules)
 import _signal
 try:
  _signal.set_wakeup_fd(-1)
 except ValueError:
  pass
 else:
  try:
   from fairlead.gil.schedule.launched import begin_from_environment as b
   b()
  except (Exception, SystemExit) as e:
   sys.stderr and print('fairlead: {VARIABLE} is set, but', type(e).__name__ + ':', e, file=sys.stderr)
 for name in {{'__future__', '_signal'}} - known:
  sys.modules.pop(name, None)
"""
"""The mark on sys: older Pythons run the hooks of a virtual environment twice.

And every further interpreter of a process runs them. Those are scheduled as it is, so nothing of ours is
imported there: least of all threading, which up to 3.11 keeps an interpreter that imported it in one thread
from being destroyed by another. What tells them apart: only the main one may set the wake-up descriptor,
which none has at this moment. What was imported for that is imported anew by a program that wants it."""
_LINE = f'import os; os.environ.get("{VARIABLE}") and exec({_PROGRAM!r})\n'
_CHECK = "import fairlead.gil; print(fairlead.gil.scheduler().policy)"


def place() -> Path:
    """Where the hook of the running interpreter's environment is, or would be."""
    return Path(sysconfig.get_path("purelib")) / NAME


def install() -> Path:
    """Put the hook into the running interpreter's environment, and see it work.

    Raises:
        OutputError: the place is not ours to write to.
        UnsupportedInterpreterError: a program started with it was not scheduled; the hook has been removed
            again.
    """
    hook = place()
    try:
        _write(hook)
    except OSError as error:
        raise OutputError(
            f"{hook} cannot be written ({error.strerror}): use a virtual environment, or its owner's rights"
        ) from error
    if (why := _does_not_work()) is not None:
        hook.unlink()
        raise UnsupportedInterpreterError(f"the hook was not installed: {why}")
    return hook


def remove() -> Path | None:
    """Take the hook away again; None if there was none.

    Raises:
        OutputError: it cannot be removed.
    """
    hook = place()
    try:
        hook.unlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{hook} cannot be removed ({error.strerror})") from error
    return hook


def _write(hook: Path) -> None:
    """Whole or not at all: a Python may start at any moment."""
    handle, temporary = tempfile.mkstemp(dir=hook.parent, prefix=".fairlead-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(_LINE)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(hook)
    except OSError:
        Path(temporary).unlink()
        raise


def _does_not_work() -> str | None:
    environment = {**os.environ, VARIABLE: "interactive"}
    done = subprocess.run(
        [sys.executable, "-c", _CHECK],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.stdout == "interactive\n":
        return None
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[0].removeprefix("fairlead: ") if lines else f"a Python with it ended with {done.returncode}"

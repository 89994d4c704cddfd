"""Begins what a program that fairlead has started is to begin with, before the program's first line.

The directory of this file stands first in PYTHONPATH, so that the interpreter imports it where it would
import a sitecustomize of the user's own. What it adds to the environment it takes away again at once, so
that sub-processes and the program itself see the environment that the user has (unless sub-processes are to
begin with the same), and the user's own sitecustomize is run last. Runs in any Python from 2.7 on, even one
without fairlead, to say what is missing.
"""

# Nothing of the standard library is imported that an interpreter does not have from its start: a program may
# have modules of its own of those names, and further interpreters of the process run this file, too. An old
# Python must get as far as the message: hence no syntax of today.
# ruff: noqa: PTH100, PTH110, PTH120, PTH123, UP031, UP036

import os
import sys


def _begin():  # type: () -> None
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    if "FAIRLEAD_START" not in os.environ or _is_further():
        return
    start = eval(os.environ["FAIRLEAD_START"], {})
    if not start["children"]:
        del os.environ["FAIRLEAD_START"]
        if start["pythonpath"] is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = start["pythonpath"]
    for module, settings in start["actions"]:
        why = _do(module, settings)
        if why is not None:
            _refuse(start, why)
            return
    if start["verb"] is not None:
        from fairlead.gil.observe.programs.following import follow

        follow(start)


def _is_further():  # type: () -> bool
    """Is this a further interpreter of a process? What is to be begun has been, in its first.

    Only the first may set the wake-up descriptor of signals, which none has at this moment. Importing more
    would do harm: up to 3.11 an interpreter that imported threading in one thread cannot be destroyed by
    another.
    """
    if sys.version_info < (3, 11):
        return False
    import _signal  # type: ignore[import-not-found]

    try:
        _signal.set_wakeup_fd(-1)
    except ValueError:
        return True
    return False


def _do(module, settings):  # type: (str, dict[str, object]) -> str | None
    if sys.version_info < (3, 11):
        return "%s is Python %d.%d, which has no fairlead: it takes 3.11 or newer" % (
            sys.executable,
            sys.version_info[0],
            sys.version_info[1],
        )
    if sys.implementation.name != "cpython":
        return "%s is %s; the GIL of CPython alone can be recorded and scheduled" % (
            sys.executable,
            sys.implementation.name,
        )
    try:
        begin = __import__(module, fromlist=["begin"]).begin
    except (ImportError, AttributeError) as error:
        return "%s has no fairlead (%s): install it there (%s -m pip install fairlead)" % (
            sys.executable,
            error,
            sys.executable,
        )
    return begin(settings)  # type: ignore[no-any-return]


def _refuse(start, why):  # type: (dict[str, object], str) -> None
    if start["ready"] is not None:
        first = not os.path.exists(str(start["ready"]))
    else:
        first = start["pid"] in (None, os.getpid())
    ends = first and not start["if_possible"]
    if ends and start["ready"] is not None:
        with open(str(start["ready"]), "w") as ready:
            ready.write(why)
    elif sys.stderr is not None:
        sys.stderr.write("fairlead: " + why + ("" if ends else "; going on without") + "\n")
        sys.stderr.flush()
    if ends:
        os._exit(1)


def _next():  # type: () -> None
    """Runs the sitecustomize that would have been run; where there is none, this says so to the caller."""
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


# of these we have what we need, and a program that asks for them gets them as ever
_ours = {"__future__", "_signal", "atexit"} - set(sys.modules)
_begin()
for _name in _ours:
    sys.modules.pop(_name, None)
_next()

"""Begins a recording in a program that ``fairlead record`` or ``fairlead top`` has started, before the
program's first line.

The directory of this file stands first in PYTHONPATH, so that the interpreter imports it where it would
import a sitecustomize of the user's own. Compared with running the program through runpy, nothing of the
program changes: sys.argv, sys.path, __main__, the interpreter's options, console scripts and the exit
status are as they always are. What it adds to the environment it takes away again at once, so that
sub-processes and the program itself see the environment that the user has, and the user's own sitecustomize
is run last. Runs in any Python 3, even one without fairlead, to say what is missing.
"""

# every recorded program pays for what is imported here, and an old Python must get as far as the message:
# hence no pathlib
# ruff: noqa: PTH100, PTH120, PTH123, UP031

import os
import sys


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    settings = os.environ.pop("FAIRLEAD_RECORD", None)
    path = os.environ.pop("FAIRLEAD_PYTHONPATH", None)
    if path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = path
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    if settings is None:
        return
    try:
        from fairlead.gil.observe.launched import begin
    except ImportError as error:
        import json

        why = "%s has no fairlead to record with (%s): install it there (%s -m pip install fairlead)" % (
            sys.executable,
            error,
            sys.executable,
        )
        with open(json.loads(settings)["ready"], "w") as ready:
            ready.write(why)
        os._exit(1)
    begin(settings)


def _next() -> None:
    """Runs the sitecustomize that would have been run, if there is one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])


_begin()
_next()

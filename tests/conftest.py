"""What all tests share."""

from __future__ import annotations

import compileall
import os
import signal
import sys
from pathlib import Path

import pytest
import quiet
from hypothesis import settings
from watchdog import Watchdog

import fairlead
from fairlead.gil.observe import tested

# A shell without job control starts what it puts into the background with Ctrl-C ignored, nohup what it runs
# with the hang-up ignored, and the programs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Where Python is told to keep no bytecode, each program that a test starts would compile fairlead anew, and
# each worker of pytest all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
if "PYTEST_XDIST_WORKER" not in os.environ:  # an editable install reads bytecode, and writes none
    compileall.compile_dir(Path(fairlead.__file__).parent, quiet=2)

# A release is tested by running these.
os.environ[tested.VARIABLE] = ".".join(str(number) for number in sys.version_info[:3])

# A deadline measures the machine's load. A failure prints the blob that replays it.
settings.register_profile("fairlead", deadline=None, print_blob=True)
settings.load_profile("fairlead")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(quiet)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Watchdog(config))

"""Pretends that this is Windows, as far as Python modules can tell, then uses what must not need Linux.

A program of its own, run by tests/platform/test_elsewhere.py. Parts of the standard library that choose by
the system are imported first, as their choice is not in question.
"""

import asyncio  # noqa: F401
import importlib
import multiprocessing.connection
import multiprocessing.forkserver  # noqa: F401
import os
import select
import shutil  # noqa: F401
import signal
import socket
import sys
import sysconfig

sysconfig.get_config_vars()
for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[name] = None  # type: ignore[assignment]
MISSING = {
    os: (
        *(
            "O_CLOEXEC",
            "O_NOFOLLOW",
            "P_PID",
            "WNOWAIT",
            "MFD_CLOEXEC",
            "eventfd",
            "fork",
            "geteuid",
            "getuid",
        ),
        *("killpg", "memfd_create", "pidfd_open", "posix_spawn", "register_at_fork", "sched_getaffinity"),
        *("sched_setaffinity", "setsid", "waitid"),
    ),
    select: ("epoll", "poll"),
    signal: ("SIGCHLD", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "pthread_sigmask"),
    socket: ("AF_UNIX", "recv_fds", "send_fds"),
}
for module, names in MISSING.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"

for part in ("errors", "machine", "sync", "sync.shared", "pools", "lowlevel", "gil"):
    found = importlib.import_module(f"fairlead.{part}")
    for name in found.__all__:
        getattr(found, name)

from fairlead import gil, pools, sync  # noqa: E402
from fairlead.errors import UnsupportedPlatformError  # noqa: E402
from fairlead.sync import shared  # noqa: E402

with sync.Lock(), pools.ThreadPool(1) as pool:
    assert pool.submit(abs, -1).result() == 1

for refused in (
    shared.Lock,
    lambda: shared.Lock("name"),
    pools.ProcessPool,
    gil.counters,
    gil.observe().start,
):
    try:
        refused()
    except UnsupportedPlatformError as error:
        print(error)
    else:
        raise AssertionError(f"{refused} was not refused")

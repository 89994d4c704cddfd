"""What multiprocessing keeps of this process, as far as workers start differently: the server that they are
forked from, the directory of its socket, who may have children, and what is called at the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, process, resource_tracker
from typing import Any

LONGEST_DIRECTORY = 107 - len("/pymp-12345678/listener-12345678")


def preload(module: str) -> None:
    """Has the server that workers are forked from import the module, if it has not been started yet.

    multiprocessing's public call would replace the program's own list.
    """
    modules = getattr(forkserver._forkserver, "_preload_modules", None)
    if modules is not None and module not in modules:
        modules.append(module)


def server_status() -> int | None:
    """How the server that workers are forked from has ended."""
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if pid is None:
        return None
    with contextlib.suppress(OSError):
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return None if found is None else found.si_status
    return None


@contextlib.contextmanager
def allowed_children() -> Iterator[None]:
    """multiprocessing allows a daemonic process no children, which would outlive it. Workers do not: they end
    with their parent by themselves."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = dict(config)
    # celery's workers have one of billiard's, which only billiard pickles
    config.update(daemon=False, authkey=process.AuthenticationString(config["authkey"]))  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.pop("daemon")
        config.update((name, before[name]) for name in ("daemon", "authkey") if name in before)


def keep_addresses_short() -> None:
    """The address of a socket has at most 107 bytes, and multiprocessing makes that of its server within the
    directory for temporary files, whose name may be longer."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None and len(os.fsencode(tempfile.gettempdir())) > LONGEST_DIRECTORY:
        directory = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
        multiprocessing.util.Finalize(None, shutil.rmtree, args=(directory, True), exitpriority=-100)
        config["tempdir"] = directory


_at_exit: multiprocessing.util.Finalize | None = None


def call_before_children_are_joined(end: Callable[[], None]) -> None:
    """A process of multiprocessing's joins its children at its end, and may call nothing of atexit's before:
    pools that were left open would wait for calls for ever."""
    global _at_exit
    if _at_exit is None or not _at_exit.still_active():
        _at_exit = multiprocessing.util.Finalize(None, end, exitpriority=100)


def forget_server() -> None:
    """Has multiprocessing start a server of this process's own to fork from: it waits for the parent's as if
    that were a child of this process, and fails (cpython#86354).

    Its socket would be in the directory that the parent removes at its end.
    """
    resource_tracker._resource_tracker._lock._at_fork_reinit()  # type: ignore[attr-defined]
    server: Any = forkserver._forkserver
    server._lock._at_fork_reinit()
    if server._forkserver_pid is not None:
        with contextlib.suppress(OSError):  # the program may have closed it
            os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = server._forkserver_pid = server._forkserver_address = None
        multiprocessing.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]

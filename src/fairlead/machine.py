"""This machine as this process may use it: its clock, its cores, and what has been used of them.

Everything here reads the operating system and nothing else (``set_timer_slack_ns`` alone tells it
something), works in every interpreter of a process (own-GIL ones included) and without a GIL, and takes no
lock.

    >>> from fairlead import machine
    >>> before = machine.thread_usage()
    >>> total = sum(range(100_000))
    >>> after = machine.thread_usage()
    >>> used_ns = after.user_ns + after.system_ns - before.user_ns - before.system_ns

The records are named tuples made in C: they cannot be changed, and can be unpacked and pickled.
"""

from __future__ import annotations

import os

from fairlead._native import (
    Cores,
    Usage,
    children_usage,
    clock_ns,
    cores,
    cpu_quota,
    process_usage,
    set_timer_slack_ns,
    thread_usage,
    timer_slack_ns,
)

__all__ = [
    "Cores",
    "Usage",
    "children_usage",
    "clock_ns",
    "cores",
    "cpu_quota",
    "process_usage",
    "run_delay_ns",
    "set_timer_slack_ns",
    "thread_usage",
    "timer_slack_ns",
]


def run_delay_ns(native_id: int) -> int:
    """For how long a thread of this process has been ready to run and had no core, since it began, in
    nanoseconds; 0 where the kernel does not say.

    Raises:
        OSError: The thread has ended.
    """
    try:
        told = os.open(f"/proc/self/task/{native_id}/schedstat", os.O_RDONLY)
    except FileNotFoundError:
        if os.access("/proc/self/schedstat", os.R_OK):
            raise
        return 0
    try:
        return int(os.read(told, 100).split()[1])
    finally:
        os.close(told)


def stat_of(pid: int) -> list[str]:
    """What /proc/PID/stat says of a process from its state on, which man 5 proc calls field 3.

    Raises:
        OSError: It has ended, or this user may not look.
    """
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()


def family(pid: int) -> list[int]:
    """This process, those that it started, and those that these started; as far as they are there now."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            try:  # noqa: SIM105 - every program that is started would import contextlib
                parents[int(name)] = int(stat_of(int(name))[1])
            except OSError:
                pass
    found = [pid]
    for one in found:  # which grows meanwhile
        found += [child for child, parent in parents.items() if parent == one]
    return found

"""What the processes of this session have used: the measured program is one session, and all that is in it
is its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

_MEMORY = ("Pss:", "VmHWM:", "VmRSS:")


def members() -> list[int]:
    """The living processes of this session."""
    own = os.getsid(0)
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                state = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(state[3]) == own and state[0] not in "ZX":
                found.append(int(entry.name))
    return found


def cpu_s(members: list[int]) -> float:
    """Processor time of these processes."""
    total = 0.0
    for pid in members:
        try:
            total += time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid makes of it
        except OSError:
            continue
    return total


def idle_s() -> float | None:
    """Idle time of the cores that this process may use; None where there is no /proc/stat."""
    names = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    ticks = sum(
        int(counters[3]) + int(counters[4]) for name, *counters in map(str.split, lines) if name in names
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_kib(members: list[int]) -> int | None:
    """The most of these processes together, a shared page counted in parts; None where the kernel does not
    say. What a call has freed is counted: workers may all be at their most at once."""
    total = 0
    for pid in members:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            lines += Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        kib = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith(_MEMORY)}
        total += kib.get("Pss:", 0) + max(0, kib.get("VmHWM:", 0) - kib.get("VmRSS:", 0))
    return total or None

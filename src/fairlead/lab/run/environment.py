"""What every sample records of its machine: what it is, and what explains its speed."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fairlead
from fairlead import machine

CORE = "sys/devices/system/cpu/cpu0"
_KIND = {"Data": "d", "Instruction": "i", "Unified": ""}


def environment(policy: str = "other", cpus: Sequence[int] | None = None) -> dict[str, Any]:
    """The environment of samples with this scheduling policy on these cores (None: all that may be used).

    ``affinity`` is a sorted list of core numbers, ``quota`` is in cores or None, ``load`` the average
    number of runnable processes over the last minute when the run began.
    """
    cores = machine.cores()
    return {
        "hostname": socket.gethostname(),
        "machine": platform.machine(),
        "processor": processor(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": cores.online,
        "affinity": sorted(os.sched_getaffinity(0) if cpus is None else cpus),
        "quota": cores.quota,
        "policy": policy,
        **hardware(),
        "load": round(os.getloadavg()[0], 2),
        "fairlead": fairlead.__version__,
        "settings": {name: os.environ[name] for name in ("PYTHON_GIL", "PYTHON_JIT") if name in os.environ},
    }


def processor() -> str:
    """The model of the processor, by the name that the kernel knows it by; "unknown" if it says none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for wanted in ("model name", "Model", "Hardware", "cpu model"):
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == wanted:
                return " ".join(value.split())
    return platform.processor() or "unknown"


def hardware(root: Path = Path("/")) -> dict[str, Any]:
    """None for what this system does not say.

    ``memory_mib`` is all memory; ``smt`` whether two threads of the processor share a core; ``governor`` what
    chooses the core's frequency; ``hypervisor`` what the machine is a guest of, "yes" where that is all that
    is known.
    """
    return {
        "memory_mib": _memory(root),
        "caches": _caches(root),
        "smt": {"1": True, "0": False}.get(_read(root / "sys/devices/system/cpu/smt/active")),
        "governor": _read(root / CORE / "cpufreq/scaling_governor") or None,
        "hypervisor": _hypervisor(root),
        "libc": " ".join(filter(None, platform.libc_ver())) or None,
        "distribution": _distribution(root),
    }


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _memory(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) // 1024
    return None


def _caches(root: Path) -> str | None:
    """ "L1d 48K, L1i 64K, L2 2048K"."""
    found = [
        f"L{_read(one / 'level')}{_KIND.get(_read(one / 'type'), '')} {_read(one / 'size')}"
        for one in sorted((root / CORE / "cache").glob("index*"))
    ]
    return ", ".join(found) or None


def _hypervisor(root: Path) -> str | None:
    named = _read(root / "sys/hypervisor/type")
    if named:
        return named
    flags = next((line for line in _read(root / "proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if "hypervisor" not in flags.split():
        return None
    return _read(root / "sys/class/dmi/id/sys_vendor") or "yes"


def _distribution(root: Path) -> str | None:
    for line in _read(root / "etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip('"') or None
    return None

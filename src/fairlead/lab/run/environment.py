"""What of the machine and the surroundings every sample records beside its numbers."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fairlead
from fairlead import machine
from fairlead.lab.run.hardware import hardware


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

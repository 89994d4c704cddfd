"""What is read of the machine, from a tree of files like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.lab.run.environment import hardware

pytestmark = pytest.mark.ends

FILES = {
    "proc/meminfo": "MemTotal:       24576000 kB\nMemFree: 1 kB\n",
    "proc/cpuinfo": "processor: 0\nflags\t\t: fpu hypervisor sse\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data\n",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "48K\n",
    "sys/devices/system/cpu/cpu0/cache/index2/level": "2\n",
    "sys/devices/system/cpu/cpu0/cache/index2/type": "Unified\n",
    "sys/devices/system/cpu/cpu0/cache/index2/size": "2048K\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/class/dmi/id/sys_vendor": "QEMU\n",
    "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n',
}


def test_hardware_is_read_from_what_the_kernel_says(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = hardware(tmp_path)
    del found["libc"]
    assert found == {
        "memory_mib": 24000,
        "caches": "L1d 48K, L2 2048K",
        "smt": True,
        "governor": "performance",
        "hypervisor": "QEMU",
        "distribution": "Debian GNU/Linux 12",
    }


def test_hardware_that_the_system_does_not_report_is_none(tmp_path: Path) -> None:
    found = hardware(tmp_path)
    assert set(found) == {
        "memory_mib", "caches", "smt", "governor", "hypervisor", "libc", "distribution"
    }  # fmt: skip
    assert {value for name, value in found.items() if name != "libc"} == {None}

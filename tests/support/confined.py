"""What a container or a service manager confines a process with: CPU quotas, filters of system calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

REFUSED_BY_DOCKER = (
    "acct add_key bpf clock_adjtime clock_settime create_module delete_module finit_module get_kernel_syms"
    " get_mempolicy init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount"
    " move_pages name_to_handle_at nfsservctl open_by_handle_at perf_event_open personality pivot_root"
    " process_vm_readv process_vm_writev ptrace query_module quotactl reboot request_key set_mempolicy setns"
    " settimeofday swapoff swapon sysfs _sysctl umount2 unshare uselib userfaultfd ustat"
)
"""By its default profile, as its documentation says; clone3 does not exist there."""

FILTERED = """
import ctypes, json, os, sys

otherwise, rules, no_new_code, *command = sys.argv[1:]
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(int(otherwise))))
for name, answer in json.loads(rules):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:  # else this processor has no such call
        assert seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(answer), number, 0, None) == 0, name
libc = ctypes.CDLL(None)
if libc.prctl(65, int(no_new_code), 0, 0, 0) != 0 and no_new_code == "1":  # PR_SET_MDWE
    sys.exit(77)
if seccomp.seccomp_load(context) != 0:
    sys.exit(77)
os.execv(command[0], command)
"""
KILL, ALLOW, EPERM, ENOSYS = 0x80000000, 0x7FFF0000, 0x00050001, 0x00050026


def _allowed_by_systemd(group: str) -> list[str]:
    shown = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", group], capture_output=True, text=True, check=True
    ).stdout
    names = [line.strip() for line in shown.splitlines()[1:] if not line.strip().startswith("#")]
    return [
        call for name in names for call in (_allowed_by_systemd(name) if name.startswith("@") else [name])
    ]


def _filtered(otherwise: int, rules: Sequence[tuple[str, int]], no_new_code: bool) -> list[str]:
    return [
        sys.executable,
        "-c",
        FILTERED,
        str(otherwise),
        json.dumps(rules),
        str(int(no_new_code)),
        sys.executable,
    ]


def python_under_docker() -> list[str]:
    """Python as in a container with the default profile."""
    rules = [*((name, EPERM) for name in REFUSED_BY_DOCKER.split()), ("clone3", ENOSYS)]
    return _filtered(ALLOW, rules, no_new_code=False)


def python_under_systemd() -> list[str]:
    """Python as a service with SystemCallFilter=@system-service and MemoryDenyWriteExecute=yes."""
    calls = dict.fromkeys([*_allowed_by_systemd("@system-service"), *_allowed_by_systemd("@default")])
    return _filtered(KILL, [(name, ALLOW) for name in calls], no_new_code=True)


@contextmanager
def quota(cores: float, period_s: float = 0.1) -> Iterator[list[str]]:
    """What a command is put behind to have a CPU quota, in a control group of its own. The group goes before
    other load: one that load keeps from its quota is not limited by it."""
    micro = [round(cores * period_s * 1_000_000), round(period_s * 1_000_000)]
    version_1, version_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    if (version_1 / "cpu.cfs_quota_us").exists():
        root = version_1
        limits = {
            "cpu.cfs_period_us": f"{micro[1]}",
            "cpu.cfs_quota_us": f"{micro[0]}",
            "cpu.shares": "262144",
        }
    else:
        root, limits = version_2, {"cpu.max": f"{micro[0]} {micro[1]}", "cpu.weight": "10000"}
    group = root / f"fairlead-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group with a CPU quota can be made here: {error}")
    try:
        for name, value in limits.items():
            try:
                (group / name).write_text(value)
            except OSError as error:
                pytest.skip(f"no CPU quota can be set here: {error}")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "-"]
    finally:
        group.rmdir()

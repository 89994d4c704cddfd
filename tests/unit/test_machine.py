"""fairlead.machine: what it says of this machine against what Python itself knows."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fairlead import machine

pytestmark = pytest.mark.ends


def burn(seconds: float) -> None:
    """Use CPU time of this thread, by the thread's own CPU clock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def cpu_ns(usage: machine.Usage) -> int:
    return usage.user_ns + usage.system_ns


def test_clock_and_cores_agree_with_the_operating_system() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    now = machine.clock_ns()
    assert before <= now <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    cores = machine.cores()
    assert cores.online == os.sysconf("SC_NPROCESSORS_ONLN")
    assert cores.affinity == len(os.sched_getaffinity(0))
    assert cores.quota == machine.cpu_quota()
    assert 1 <= cores.usable <= cores.affinity


def test_timer_slack_is_the_threads_own_and_that_of_those_that_it_starts() -> None:
    seen: list[int] = []

    def within() -> None:
        assert machine.set_timer_slack_ns(2000)
        seen.append(machine.timer_slack_ns())
        child = threading.Thread(target=lambda: seen.append(machine.timer_slack_ns()))
        child.start()
        child.join()

    before = machine.timer_slack_ns()
    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [2000, 2000]
    assert machine.timer_slack_ns() == before
    for ns in (0, -1, 1_000_000_001):
        with pytest.raises(ValueError, match="from 1 ns to a second"):
            machine.set_timer_slack_ns(ns)


def test_cores_affinity_is_of_the_calling_thread() -> None:
    counts = []

    def pinned() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        counts.append(machine.cores())

    thread = threading.Thread(target=pinned)
    thread.start()
    thread.join()
    assert [(cores.affinity, cores.usable) for cores in counts] == [(1, 1)]
    assert machine.cores().affinity == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("as_path", [str, os.fsencode, Path])
def test_cpu_quota_reads_another_root_given_as_any_kind_of_path(tmp_path: Path, as_path: type) -> None:
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "proc/self/mountinfo": "25 22 0:23 / /groups rw - cgroup2 cgroup2 rw\n",
        "groups/a/b/cpu.max": "max 100000\n",
        "groups/a/cpu.max": "150000 100000\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert machine.cpu_quota(as_path(tmp_path)) == 1.5


def test_cpu_quota_is_none_where_nothing_limits_and_refuses_what_is_no_path(tmp_path: Path) -> None:
    assert machine.cpu_quota(tmp_path) is None
    with pytest.raises(TypeError):
        machine.cpu_quota(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        machine.cpu_quota("a\0b")


def test_thread_usage_counts_this_thread_only() -> None:
    seen = []

    def other() -> None:
        before = machine.thread_usage()
        burn(0.05)
        seen.append(cpu_ns(machine.thread_usage()) - cpu_ns(before))

    before = machine.thread_usage()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    mine = cpu_ns(machine.thread_usage()) - cpu_ns(before)
    assert seen[0] >= 45_000_000
    assert mine < 25_000_000


def test_usage_counts_ended_threads_and_children_that_were_waited_for() -> None:
    before = machine.process_usage()
    thread = threading.Thread(target=burn, args=(0.05,))
    thread.start()
    thread.join()
    after = machine.process_usage()
    assert cpu_ns(after) - cpu_ns(before) >= 45_000_000
    assert after.ctx_voluntary > 0
    assert after.max_rss_kb > 1000
    before = machine.children_usage()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"], {})
    assert os.waitpid(pid, 0)[1] == 0
    after = machine.children_usage()
    assert cpu_ns(after) > cpu_ns(before)
    assert after.max_rss_kb > 0


def test_family_is_a_process_its_children_and_theirs() -> None:
    command = ["sh", "-c", "sleep 1000 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        try:
            assert shell.stdout is not None
            sleep = int(shell.stdout.readline())
            assert machine.family(shell.pid) == [shell.pid, sleep]
            assert {shell.pid, sleep} < set(machine.family(os.getpid()))
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_records_are_frozen_and_survive_pickling() -> None:
    cores = machine.cores()
    with pytest.raises(AttributeError):
        cores.usable = 99  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(cores)) == cores
    usage = machine.process_usage()
    user_ns, system_ns, *_ = usage
    assert (user_ns, system_ns) == (usage.user_ns, usage.system_ns)
    assert type(pickle.loads(pickle.dumps(usage))) is machine.Usage


def test_thread_usage_counts_waits_apart_from_preemptions() -> None:
    def kernels() -> list[int]:
        """Both counts of this thread."""
        text = Path("/proc/thread-self/status").read_text()
        return [int(count) for count in re.findall(r"voluntary_ctxt_switches:\s+(\d+)", text)]

    seen: list[tuple[list[int], ...]] = []

    def waits() -> None:
        before = kernels()
        while kernels()[0] < before[0] + 20:  # a sleep that is over before it begins is no switch
            time.sleep(1e-6)
        least, usage, most = kernels(), machine.thread_usage(), kernels()
        seen.append((least, [usage.ctx_voluntary, usage.ctx_involuntary], most))

    thread = threading.Thread(target=waits)
    thread.start()
    thread.join()
    for least, counted, most in zip(*seen[0], strict=True):
        assert least <= counted <= most

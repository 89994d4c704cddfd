"""The foreign share, from made-up counters and from the machine's own."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from waiting import until

from fairlead.lab.isolation.other_load import Meter, Reading, read, spin_s

pytestmark = pytest.mark.ends

CORES = len(os.sched_getaffinity(0))


class Counters:
    """A machine that was idle but for ``own_s`` of ours and ``foreign_s`` of others."""

    def __init__(self) -> None:
        self.now = self.own_s = self.foreign_s = 0.0

    def read(self, cpus: frozenset[int]) -> Reading:
        assert len(cpus) == CORES
        return Reading(self.now, CORES * self.now - self.own_s - self.foreign_s, self.own_s)

    def pass_(self, seconds: float, own: float = 0.0, foreign: float = 0.0) -> None:
        """Time goes by; ``own`` and ``foreign`` are shares of all cores."""
        self.now += seconds
        self.own_s += own * seconds * CORES
        self.foreign_s += foreign * seconds * CORES


@pytest.mark.parametrize(("own", "foreign"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.25), (0.0, 1.0)])
def test_share_of_a_long_sample_is_what_others_took(own: float, foreign: float) -> None:
    counters = Counters()
    meter = Meter(counters.read)
    counters.pass_(1.0, foreign=0.9)
    meter.begin()
    counters.pass_(2.0, own=own, foreign=foreign)
    assert meter.end() == pytest.approx(foreign)


def test_share_stays_within_zero_and_one_and_is_unknown_without_time_or_counters() -> None:
    counters = Counters()
    meter = Meter(counters.read)
    meter.begin()
    counters.pass_(0.3, foreign=0.5)
    assert meter.end() is None
    meter = Meter(lambda _cpus: None)
    meter.begin()
    assert meter.end() is None
    counters = Counters()
    meter = Meter(counters.read)
    meter.begin()
    counters.pass_(1.0, foreign=1.2)
    assert meter.end() == 1.0
    meter.begin()
    counters.pass_(1.0, foreign=-0.2)
    assert meter.end() == 0.0


def test_share_of_short_samples_covers_the_half_second_up_to_their_end() -> None:
    counters = Counters()
    meter = Meter(counters.read)
    shares = []
    for number in range(40):
        meter.begin()
        counters.pass_(0.1, own=0.5, foreign=0.4 if number < 20 else 0.0)
        shares.append(meter.end())
    assert shares[:4] == [None] * 4
    assert shares[5:20] == pytest.approx([0.4] * 15)
    assert shares[26:] == pytest.approx([0.0] * 14, abs=1e-9)


def test_read_counts_an_ended_child_as_our_own() -> None:
    cpus = frozenset(os.sched_getaffinity(0))
    before = read(cpus)
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    after = read(cpus)
    assert before is not None
    assert after is not None
    assert 0.3 <= after.own_s - before.own_s <= (after.at_s - before.at_s) * CORES + 0.1
    assert after.idle_s - before.idle_s <= (after.at_s - before.at_s) * CORES + 0.02 * CORES


def test_stolen_time_and_throttling_are_counted_apart_from_other_load() -> None:
    readings = iter(
        [
            Reading(0.0, 0.0, 0.0, stolen_s=1.0, throttled_s=5.0),
            Reading(1.0, 0.5 * CORES, 0.0, stolen_s=1.0 + 0.2 * CORES, throttled_s=5.25),
        ]
    )
    meter = Meter(lambda _cpus: next(readings), lambda: 0.004)
    meter.begin()
    assert meter.end() == pytest.approx(0.5)
    assert meter.stolen_share == pytest.approx(0.2)
    assert meter.throttled_s == pytest.approx(0.25)
    assert meter.spin_s == 0.004


def test_spin_is_cpu_time_of_this_thread() -> None:
    before = time.thread_time()
    spun = spin_s()
    assert 0 < spun <= time.thread_time() - before


@pytest.mark.skipif(read(frozenset({0})) is None, reason="there is no /proc/stat")
def test_what_a_living_grandchild_uses_is_our_own() -> None:
    burn = "print(flush=True)\nwhile True: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"

    def used_by_others_of_ours() -> float:
        found = read(frozenset({0}))
        assert found is not None
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return found.own_s - sum(usage.ru_utime + usage.ru_stime for usage in own)

    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: used_by_others_of_ours() > 0.2)
        os.killpg(process.pid, signal.SIGKILL)

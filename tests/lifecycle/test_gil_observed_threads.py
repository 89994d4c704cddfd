"""Threads and interpreters that come and go under observation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scheduled import run

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

INTERPRETERS = """
try:
    import _interpreters
    KINDS = {"legacy": "legacy", "own": "isolated"}
    create = lambda kind: _interpreters.create(KINDS[kind])
except ImportError:
    import warnings
    warnings.simplefilter("ignore")
    import _xxsubinterpreters as _interpreters
    create = lambda kind: _interpreters.create(isolated=kind == "own")
"""


def test_a_thousand_threads_at_once_are_each_counted(tmp_path: Path) -> None:
    program = """
threading.stack_size(256 * 1024)
go = threading.Event()
ready = threading.Semaphore(0)
def work():
    ready.release()
    go.wait()
    os.stat("/")
with gil.record(sys.argv[1]), gil.observe(wait_threshold=None) as seen:
    threads = [threading.Thread(target=work, name=f"w-{k}") for k in range(1000)]
    for thread in threads:
        thread.start()
    for _ in threads:
        ready.acquire()
    alive = threading.active_count()
    go.set()
    for thread in threads:
        thread.join()
mine = [t for t in seen.threads if t.name.startswith("w-")]
print(json.dumps([alive, len({t.name for t in mine}), min(t.acquisitions for t in mine),
                  max(t.held_seconds + t.waited_seconds for t in seen.threads) <= seen.seconds + 1e-6,
                  sum(t.held_seconds for t in seen.threads) <= seen.seconds + 1e-6]))
"""
    path = tmp_path / "out.flrec"
    alive, names, least, within, one_at_a_time = run(program, str(path))
    assert (alive, names) == (1001, 1000)
    assert least >= 2
    assert within
    assert one_at_a_time
    recording = Recording(path)
    assert [block.type for block in recording.blocks()][-1] == BlockType.END
    assert recording.problems == ()


def test_threads_that_were_forced_out_and_get_no_core_are_known_to_wait() -> None:
    """On one core, a thread that is forced to let go of the GIL loses the core with it, before it can ask
    again. If its way back takes much CPU time, it is not known to have wanted the GIL: a few times of 60."""
    program = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
spans = {}
def work():
    start = time.perf_counter()
    while sum(t.name in "ab" and t.forced_drops >= 30 for t in seen.threads) < 2:  # alone, nobody forces it
        end = time.perf_counter() + 0.05
        while time.perf_counter() < end:
            pass
    spans[threading.current_thread().name] = time.perf_counter() - start
def by_name(name):
    return next(t for t in seen.threads if t.name == name)
with gil.observe() as seen:
    threads = [threading.Thread(target=work, name=name) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
accounted = sum(by_name(name).held_seconds + by_name(name).waited_seconds for name in spans)
nobody = sum(seen.blame[name, "(no thread)"] for name in spans)
print(json.dumps([accounted / sum(spans.values()), nobody / sum(spans.values())]))
"""
    accounted, nobody = run(program)
    assert accounted > 0.9
    assert nobody < 0.3


@pytest.mark.parametrize("kind", ["legacy", "own"])
def test_interpreters_made_and_destroyed_are_observed_each_with_its_gil(kind: str) -> None:
    """More of them than records of dead ones are kept: those are used again."""
    if kind == "own" and sys.version_info < (3, 12):
        pytest.skip("an interpreter has a GIL of its own from 3.12 on")
    program = (
        INTERPRETERS
        + """
work = "import threading; t = threading.Thread(target=sum, args=([1],)); t.start(); t.join()"
def look_about():  # not a spinner: up to 3.12 one interpreter's threads cannot ask another's to let go
    while not stop.is_set():
        os.stat("/")
def census():
    return len(os.listdir("/proc/self/fd")), threading.active_count()
before = census()
with gil.observe() as seen:
    looking = threading.Thread(target=look_about)
    looking.start()
    gils = set()
    for _ in range(25):
        made = create(sys.argv[1])
        _interpreters.run_string(made, work)
        gils |= {(t.gil, t.serial) for t in seen.threads}
        _interpreters.destroy(made)
    at_once = [create(sys.argv[1]) for _ in range(5)]
    for made in at_once:  # up to 3.11 an interpreter ends well only where threading was first imported
        _interpreters.run_string(made, "import threading")
    others = [threading.Thread(target=_interpreters.run_string, args=(made, work)) for made in at_once]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    for made in at_once:
        _interpreters.destroy(made)
    stop.set()
    looking.join()
    total = sum(t.acquisitions for t in seen.threads)
print(json.dumps([len({g for g, _ in gils}), total, census() == before]))
"""
    )
    gils, acquisitions, as_before = run(program, kind)
    assert gils >= 26 if kind == "own" else gils == 1
    assert acquisitions > 60
    assert as_before


def test_interpreter_may_observe_from_within_and_end_before_it_stops() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("an interpreter has a GIL of its own from 3.12 on")
    program = (
        INTERPRETERS
        + """
work = '''
import fairlead.gil, threading
seen = fairlead.gil.observe().start()
t = threading.Thread(target=sum, args=([1],), name="within"); t.start(); t.join()
assert "within" in {thread.name for thread in seen.threads}
'''
for _ in range(10):  # more than can be observed at once
    made = create("own")
    failed = _interpreters.run_string(made, work)
    assert failed is None, failed
    _interpreters.destroy(made)
with gil.observe() as seen:
    spin_once = sum(range(1000))
    time.sleep(0)
print(json.dumps(len(seen.threads)))
"""
    )
    assert run(program) >= 1


def test_own_gils_are_found_where_a_sandbox_refuses_to_read_foreign_memory() -> None:
    """Such as a container's filter of system calls. The refusal lasts for the process."""
    if sys.version_info < (3, 12):
        pytest.skip("an interpreter has a GIL of its own from 3.12 on")
    program = (
        INTERPRETERS
        + """
import ctypes, errno, struct
libc = ctypes.CDLL(None, use_errno=True)
process_vm_readv = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
steps = [
    (0x20, 0, 0, 0),  # the number of the system call
    (0x15, 0, 1, process_vm_readv),
    (0x06, 0, 0, 0x00050000 | errno.EPERM),  # SECCOMP_RET_ERRNO
    (0x06, 0, 0, 0x7fff0000),  # SECCOMP_RET_ALLOW
]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
class Filter(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("code", ctypes.c_void_p)]
filter = Filter(len(steps), ctypes.addressof(code))
assert libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
refused = libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(filter), 0, 0)  # PR_SET_SECCOMP
with gil.observe() as seen:
    made = create("own")
    _interpreters.run_string(made, "import os; os.stat('/')")
    gils = sorted({t.gil for t in seen.threads})
    _interpreters.destroy(made)
print(json.dumps([refused, gils]))
"""
    )
    refused, gils = run(program)
    if refused:
        pytest.skip("this system has no filter of system calls")
    assert gils == [0, 1]


def test_smallest_threshold_of_all_interpreters_counts() -> None:
    """Stacks are the process's: one interpreter's observation must not put an end to another's."""
    if sys.version_info < (3, 12):
        pytest.skip("an interpreter has a GIL of its own from 3.12 on")
    program = (
        INTERPRETERS
        + """
def stacks():
    with gil.observe(wait_threshold=1e6) as seen:
        spinning = spinners(2)
        while max((t.max_wait_seconds for t in seen.threads), default=0) < 0.002:
            time.sleep(0)
        stop.set()
        for thread in spinning:
            thread.join()
        stop.clear()
    return len(seen.stacks)
none = stacks()
made = create("own")
began = "import fairlead.gil; seen = fairlead.gil.observe(wait_threshold={}).start()"
assert _interpreters.run_string(made, began.format(0.001)) is None
theirs = stacks()
assert _interpreters.run_string(made, "seen.stop()") is None
over = stacks()
with gil.observe(wait_threshold=0.001):
    assert _interpreters.run_string(made, began.format(None)) is None
    ours = stacks()
_interpreters.destroy(made)
print(json.dumps([none, theirs, over, ours]))
"""
    )
    none, theirs, over, ours = run(program)
    assert (none, over) == (0, 0)
    assert theirs > 0
    assert ours > 0


@pytest.mark.long
def test_short_observations_one_after_another_under_load_end_cleanly() -> None:
    """The hooks are put in and taken out while threads are in them."""
    program = """
def come_and_go():
    while not stop.is_set():
        thread = threading.Thread(target=os.getpid)
        thread.start()
        thread.join()
threads = spinners(2) + [threading.Thread(target=come_and_go) for _ in range(2)]
for thread in threads[2:]:
    thread.start()
wrong = 0
for _ in range(150):
    with gil.observe() as seen:
        time.sleep(0)
    limit = seen.seconds + 1e-6
    wrong += sum(t.held_seconds + t.waited_seconds > limit for t in seen.threads)
    wrong += sum(t.held_seconds for t in seen.threads) > limit
    wrong += any((t.held_off_cpu_seconds or 0) > t.held_seconds + 1e-6 for t in seen.threads)
stop.set()
for thread in threads:
    thread.join()
print(json.dumps(wrong))
"""
    assert run(program) == 0

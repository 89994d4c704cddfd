"""Observed and recorded processes: threads and interpreters that come and go, of which what is kept is
bounded (tools/gil_soak.py looks at the memory of a whole process, for minutes); forks, full disks.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from scheduled import HEAD, INTERPRETERS, run

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
only_own = pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")


REMEMBERED = 1024
"""Threads that have ended, of one GIL, before half of them are added up to one account."""
PASSING = 64
"""Threads that may not have gone quite when they have been joined."""
GILS = 1 + 16 + 64
"""The main interpreter's, those known to be gone, and those that may be."""


def test_threads_that_come_and_go_leave_no_more_than_a_bounded_number_of_records(tmp_path: Path) -> None:
    program = """
from fairlead import _probe
alone = len(os.listdir("/proc/self/task"))
def lot():
    for _ in range(600):
        thread = threading.Thread(target=os.stat, args=("/",))
        thread.start()
        thread.join()
    while len(os.listdir("/proc/self/task")) > alone + 1:  # the recorder's
        os.sched_yield()
    return _probe.memory()
with gil.record(sys.argv[1], wait_threshold=None), gil.observe(wait_threshold=None) as seen:
    before = _probe.memory()["bytes"]
    while _probe.memory()["bytes"] < before + 1_000_000:  # stacks have room once a thread is seen asleep
        time.sleep(0.01)
    found, totals = [], [0]
    for _ in range(6):
        found.append(lot())
        totals.append(_probe.totals()["acquisitions"])
    threads, turns = len(seen.threads), sum(thread.acquisitions for thread in seen.threads)
    (ended,) = [thread.acquisitions for thread in seen.threads if thread.name == "(ended threads)"]
found.append(_probe.memory())
print(json.dumps([found, threads, turns, ended, totals]))
"""
    (*found, after), threads, turns, ended, totals = run(program, str(tmp_path / "out.flrec"))
    assert turns > 6 * 600 * 2
    assert all(now - before > 600 * 2 for before, now in itertools.pairwise(totals))
    assert ended >= 2 * (6 * 600 - threads), "those that ended long ago are added up in one record"
    assert threads <= REMEMBERED + PASSING
    for kept in found:
        assert kept["seats"] <= REMEMBERED + PASSING
        assert kept["threads"] <= REMEMBERED + PASSING
        assert (kept["gils"], kept["rings"]) == (1, 1)
    # the second lot was the first to be folded: from then on only tables could find that they want more room
    assert found[-1]["bytes"] <= 1.2 * found[1]["bytes"]
    assert (after["alive_gils"], after["rings"]) == (0, 0)
    assert after["bytes"] < found[-1]["bytes"]


@only_own
def test_interpreters_that_come_and_go_leave_no_more_than_a_bounded_number_of_records(tmp_path: Path) -> None:
    program = """
from fairlead import _probe
found = []
with gil.record(sys.argv[1]):
    for _ in range(100):
        made = create("isolated")
        run_in(made, "import os; os.stat('/')")
        interpreters.destroy(made)
        found.append(_probe.memory())
print(json.dumps([max(kept[name] for kept in found) for name in ("gils", "alive_gils", "rings", "seats")]))
"""
    gils, alive, rings, seats = run(program, str(tmp_path / "out.flrec"), head=HEAD + INTERPRETERS)
    assert gils <= GILS + 1
    assert 2 <= alive <= gils
    assert rings <= GILS + 1
    assert seats <= 2 * GILS


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


@pytest.mark.timing
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
    start_and_join(threads)
accounted = sum(by_name(name).held_seconds + by_name(name).waited_seconds for name in spans)
nobody = sum(seen.blame[name, "(no thread)"] for name in spans)
print(json.dumps([accounted / sum(spans.values()), nobody / sum(spans.values())]))
"""
    accounted, nobody = run(program)
    assert accounted > 0.9
    assert nobody < 0.3


@only_own
def test_interpreter_may_observe_from_within_and_end_before_it_stops() -> None:
    program = """
work = '''
import fairlead.gil, threading
seen = fairlead.gil.observe().start()
t = threading.Thread(target=sum, args=([1],), name="within"); t.start(); t.join()
assert "within" in {thread.name for thread in seen.threads}
'''
for _ in range(10):  # more than can be observed at once
    made = create("isolated")
    failed = interpreters.run_string(made, work)
    assert failed is None, failed
    interpreters.destroy(made)
with gil.observe() as seen:
    spin_once = sum(range(1000))
    time.sleep(0)
print(json.dumps(len(seen.threads)))
"""
    assert run(program, head=HEAD + INTERPRETERS) >= 1


@only_own
def test_smallest_threshold_of_all_interpreters_counts() -> None:
    """Stacks are the process's: one interpreter's observation must not put an end to another's."""
    program = """
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
made = create("isolated")
began = "import fairlead.gil; seen = fairlead.gil.observe(wait_threshold={}).start()"
assert interpreters.run_string(made, began.format(0.001)) is None
theirs = stacks()
assert interpreters.run_string(made, "seen.stop()") is None
over = stacks()
with gil.observe(wait_threshold=0.001):
    assert interpreters.run_string(made, began.format(None)) is None
    ours = stacks()
interpreters.destroy(made)
print(json.dumps([none, theirs, over, ours]))
"""
    none, theirs, over, ours = run(program, head=HEAD + INTERPRETERS)
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
end(threads)
print(json.dumps(wrong))
"""
    assert run(program) == 0


def test_recorder_thread_is_no_reason_to_warn_of_a_fork_and_comes_back_after_it(tmp_path: Path) -> None:
    program = """
import warnings
warnings.simplefilter("error")
with gil.record(sys.argv[1]):
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    before = os.path.getsize(sys.argv[1])
    while os.path.getsize(sys.argv[1]) <= before:
        time.sleep(0.001)
print(json.dumps("grows"))
"""
    assert run(program, str(tmp_path / "out.flrec")) == "grows"


def test_recorded_process_that_becomes_another_program_leaves_a_readable_recording(tmp_path: Path) -> None:
    program = """
gil.record(sys.argv[1]).start()
spinners(2, daemon=True)
while os.path.getsize(sys.argv[1]) < 10_000:
    time.sleep(0.001)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2]])
"""
    after = "import os; print(len(os.listdir('/proc/self/fd')))"
    plain = subprocess.run([sys.executable, "-c", after], capture_output=True, text=True, check=True)
    path = tmp_path / "out.flrec"
    assert run(program, str(path), after) == json.loads(plain.stdout)
    recording = Recording(path)
    kinds = {block.type for block in recording.blocks()}
    assert BlockType.EVENTS in kinds
    assert BlockType.END not in kinds
    assert recording.problems


def test_recording_that_cannot_be_begun_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    program = """
from fairlead.errors import OutputError
said = []
for place in sys.argv[1:]:
    try:
        gil.record(place).start()
    except OutputError as error:
        said.append(str(error))
with gil.observe():
    pass
print(json.dumps([said, threading.active_count()]))
"""
    said, threads = run(program, str(tmp_path), str(tmp_path / "no/where.flrec"), "/dev/full")
    assert len(said) == 3
    assert all("cannot be written" in line and "choose another place" in line for line in said)
    assert threads == 1


def test_full_disk_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    """The limit of a file's size stands for the disk's: a write ends short, and the next one fails."""
    path = tmp_path / "out.flrec"
    program = """
import resource
from fairlead.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, resource.RLIM_INFINITY))
recorder = gil.record(sys.argv[1], counters_interval=0.01).start()
while os.path.getsize(sys.argv[1]) < 10_000:
    time.sleep(0.001)
for _ in range(5000):
    sum(range(50_000))  # short holds in a row are one event
    os.stat("/")
try:
    recorder.stop()
except OutputError as error:
    print(json.dumps(str(error)))
"""
    said = run(program, str(path))
    assert "is not complete: File too large; what was written can be read" in said
    assert path.stat().st_size <= 100_001
    recording = Recording(path)
    assert {BlockType.META, BlockType.EVENTS} <= {block.type for block in recording.blocks()}
    assert [problem for problem in recording.problems if "cut" in problem or "damaged" in problem] == []


def test_full_disk_at_the_end_of_the_process_is_reported_on_stderr(tmp_path: Path) -> None:
    program = """
import resource
gil.record(sys.argv[1]).start()
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
for _ in range(1000):
    time.sleep(0)
"""
    command = [sys.executable, "-c", HEAD + program, str(tmp_path / "out.flrec")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "fairlead: " in done.stderr
    assert "is not complete: File too large" in done.stderr

"""Threads and interpreters that come and go under observation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scheduled import HEAD, INTERPRETERS, run

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
only_own = pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")


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

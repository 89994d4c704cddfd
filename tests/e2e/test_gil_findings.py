"""What is found in real programs that are known to have the one trouble or the other.

Where load of others would take the trouble away, the program has a priority before theirs, or the test is
one of time. A long hold that computes is in tests/e2e/test_gil_recording.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from scheduled import HEAD, HELD, run

from fairlead.gil.observe.access import why_not

pytestmark = [pytest.mark.once, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]
NO_SYSCALL_FILE = not Path("/proc/self/syscall").exists() or not os.access("/proc/self/syscall", os.R_OK)

REAL_TIME = """
import ctypes
yield_with_gil = ctypes.PyDLL(None).sched_yield
yield_without_gil = ctypes.CDLL(None).sched_yield

def on_one_core():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])

def real_time():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))
    except PermissionError as refusal:
        print(json.dumps(str(refusal)))
        sys.exit()
"""
"""Threads of real-time priority run before all other load, also that of other tests, which have 1 and 2; on
one core, the next one runs when one yields."""

FIND = """
real_time()
seen = gil.observe()
def find(wanted, program):
    with seen:
        program()
    matching = [[f.threads, f.evidence, f.advice] for f in seen.findings if f.kind == wanted]
    print(json.dumps([matching, [f.summary for f in seen.findings], [t.as_record() for t in seen.threads]]))

def at_once(works):
    threads = [threading.Thread(target=work, name=f"{work.__name__}-{k}") for k, work in enumerate(works)]
    start_and_join(threads)
"""

BUSY = r"""
import subprocess
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
forever = "import os; parent = os.getppid(); print(flush=True)\nwhile os.getppid() == parent: pass"
busy = subprocess.Popen([sys.executable, "-c", forever], stdout=subprocess.PIPE)
busy.stdout.readline()
"""
"""All of the program is on one core, with another process that computes."""


def run_in_real_time(program: str) -> Any:
    answer = run(program, head=HEAD + REAL_TIME)
    if isinstance(answer, str):
        pytest.skip(f"this system does not let one have real-time priority: {answer}")
    return answer


def found(program: str) -> tuple[set[str], dict[str, Any]]:
    """Whom the finding names, and its evidence."""
    matching, instead, counters = run_in_real_time(FIND + program)
    assert matching, f"the program had not the trouble that it makes; found: {instead}; counted: {counters}"
    threads, evidence, advice = matching[0]
    assert advice
    return set(threads), evidence


TROUBLES = {
    "convoy": """
def compute():
    while not stop.is_set():
        sum(range(500))
def answer():
    for _ in range(40):
        time.sleep(0.0005)
    stop.set()
find("convoy", lambda: at_once([compute, answer]))
""",
    # a thread that looks keeps the GIL until all others that are through wait for it
    "lock-square": """
on_one_core()
def program():
    through, mutex = [], threading.Lock()
    def crowd():
        with mutex:
            through.append(1)
        while len(through) < 32:
            yield_with_gil()
            yield_without_gil()
    def let_go():
        mutex.release()
    mutex.acquire()
    at_once([crowd] * 32 + [let_go])
find("lock-square", program)
""",
    # each wakes the next one, which waits for the GIL at once
    "switch-storm": """
on_one_core()
turns = [threading.Lock() for _ in range(4)]
for turn in turns[1:]:
    turn.acquire()
def pass_on(mine, next_one):
    for _ in range(500):
        mine.acquire()
        next_one.release()
        yield_with_gil()
def program():
    pairs = zip(turns, turns[1:] + turns[:1])
    threads = [threading.Thread(target=pass_on, args=pair, name="pass_on") for pair in pairs]
    start_and_join(threads)
find("switch-storm", program)
""",
    "saturation": """
def compute():
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        sum(range(1000))
find("saturation", lambda: at_once([compute] * 3))
""",
    "not-the-gil": """
def rest():
    for _ in range(20):
        time.sleep(0.005)
find("not-the-gil", lambda: at_once([rest] * 2))
""",
}


@pytest.mark.timing
@pytest.mark.parametrize("kind", TROUBLES)
def test_trouble_that_a_program_has_is_found(kind: str) -> None:
    threads, evidence = found(TROUBLES[kind])
    names = {name.partition("-")[0] for name in threads}
    if kind == "convoy":
        assert names >= {"compute", "answer"}
        assert evidence["mean_hold_us"] < 500
    elif kind == "lock-square":
        assert "crowd" in names
        assert evidence["threads"] >= 8
    elif kind == "switch-storm":
        assert "pass_on" in names
        assert evidence["contended_per_second"] >= 5000
    elif kind == "saturation":
        assert len(threads & {"compute-0", "compute-1", "compute-2"}) >= 2
        assert evidence["threads_that_compute"] >= 2
    else:
        assert threads == set()
        assert 0 <= evidence["waited_share"] < 1


def test_long_hold_is_found_where_c_code_sleeps_and_keeps_the_gil() -> None:
    """It sleeps again and again until the other thread has had a core to wait on meanwhile."""
    threads, evidence = found("""
import ctypes
def is_found():
    return any(min(t.max_overrun_seconds, t.held_asleep_seconds) > 0.025
               for t in seen.threads if t.name == "nap-0")
def nap():
    while not is_found():
        ctypes.PyDLL(None).usleep(40_000)
    stop.set()
def compute():
    while not stop.is_set():
        sum(range(500))
find("long-hold", lambda: at_once([nap, compute]))
""")
    assert threads == {"nap-0"}
    assert evidence["function"] == "nap"
    assert evidence["asleep_seconds"] > 0.01


def test_long_hold_is_not_said_of_a_thread_whose_core_was_taken_away() -> None:
    """It shares a core with a process that the kernel prefers, and so answers a request late."""
    program = """
turn = threading.Event()
def lowly():
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    while not stop.is_set():
        turn.set()
        sum(range(100))
thread = threading.Thread(target=lowly, name="lowly")
thread.start()
with gil.observe() as seen:
    while max((t.max_overrun_seconds for t in seen.threads if t.name == "lowly"), default=0.0) < 0.02:
        turn.clear()
        turn.wait()  # which ends while the other has the GIL, and soon, in some turn, no core
    stop.set()
    thread.join()
busy.kill()
busy.communicate()
spinner = next(t.as_record() for t in seen.threads if t.name == "lowly")
print(json.dumps([[f.kind for f in seen.findings], spinner]))
"""
    kinds, spinner = run(program, head=HEAD + BUSY)
    assert "long-hold" not in kinds, spinner
    assert spinner["held_asleep_seconds"] < spinner["held_off_cpu_seconds"] / 2


@pytest.mark.skipif(NO_SYSCALL_FILE, reason="this kernel does not say in which system call a thread is")
def test_starvation_names_the_thread_that_never_has_its_turn() -> None:
    """A debugger has stopped it while it waited. The interpreter's own scheduling would stop with it: the C
    library's condition waits for everyone that it has woken."""
    program = """
debugger = '''
stop(threads[0])
print("done", flush=True)
sys.stdin.readline()
'''
gil.schedule()
with gil.observe():  # so that the wait is known of from its beginning
    process, answer = hold_up(debugger)
    for thread in sleepers[1:] if answer == "done" else []:
        thread.join()
    name = sleepers[0].name
    with gil.observe() as seen:
        spinning = spinners(2)
        until = time.monotonic() + 30
        starved = []
        while answer == "done" and not starved and time.monotonic() < until:
            time.sleep(0.05)  # its wait grows, and with it the distance to the others'
            starved = [f for f in seen.findings if (f.kind, f.threads[:1]) == ("starvation", (name,))]
        process.communicate("go on\\n")
        stop.set()
        for thread in [*sleepers, *spinning]:
            thread.join()
waited = {thread.name: thread.max_wait_seconds for thread in seen.threads}
print(json.dumps([answer, name, [[f.threads, f.evidence] for f in starved], waited]))
"""
    answer, name, starved, waited = run(program, head=HEAD + HELD)
    if answer != "done":
        pytest.skip(f"this system does not let one debug one's own threads: {answer}")
    assert starved, f"the longest waits of the threads: {waited}"
    _, evidence = starved[0]
    assert evidence["longest_wait_ms"] >= 100
    assert evidence["longest_wait_ms"] >= 4 * evidence["peers_longest_wait_ms"]
    assert waited[name] * 1e3 >= evidence["longest_wait_ms"]

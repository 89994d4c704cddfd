"""The scheduler while an operating system or a debugger keeps threads from running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scheduled import GIL, HEAD, HELD, run

from fairlead import machine
from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

NO_SYSCALL_FILE = not Path("/proc/self/syscall").exists() or not os.access("/proc/self/syscall", os.R_OK)
LOST = (
    "threads that were given the GIL did not wake up for it; "
    "the interpreter's own scheduling is back in force"
)


@pytest.mark.skipif(NO_SYSCALL_FILE, reason="this kernel does not say in which system call a thread is")
def test_watchdog_ends_scheduling_and_says_so_once_when_threads_sleep_through_grants() -> None:
    """A signal handler that does not return keeps each of them from waking up."""
    program = """
signals = '''
for thread in threads:
    tgkill(thread, signal.SIGUSR1)
print("done", flush=True)
'''
handlers()
gil.schedule()
process, answer = hold_up(signals)
while not gil.scheduler().watchdog_tripped:
    time.sleep(0.001)
let_them_end(process)
trips = gil.counters()["fairlead_gil_watchdog_trips_total"]
print(json.dumps([answer, gil.scheduler().policy, gil.scheduler().watchdog_trips, trips]))
"""
    assert run(program, head=HEAD + HELD, said=LOST) == ["done", "stock", 1, 1.0]


@pytest.mark.skipif(NO_SYSCALL_FILE, reason="this kernel does not say in which system call a thread is")
def test_a_gil_that_is_granted_and_not_taken_yet_points_at_no_thread_state_of_the_interpreter() -> None:
    """That of the dropping thread may have been freed, and the interpreter writes into the holder's."""
    program = """
signals = '''
for thread in threads:
    tgkill(thread, signal.SIGUSR1)
import time
time.sleep(0.05)  # who has waited for more than 20 ms is granted the GIL, and not only woken for a free one
print("done", end="", flush=True)
gil, member = (int(number) for number in sys.stdin.readline().split())
memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
def word(address):
    memory.seek(address)
    return int.from_bytes(memory.read(8), "little")
locked = 0
while not locked:  # the others are in their handler: a GIL that is locked while the first reads is granted
    if call(pid)[0] == read:
        locked, holder = word(gil + 16) & 0xFFFFFFFF, word(gil + 8)
        locked = locked and call(pid)[0] == read
print(word(holder + member), flush=True)
'''
handlers()
gil.schedule()
where = f"{gil_address()} {member}\\n"
process, answer = hold_up(signals)
ctypes.PyDLL(None).write(process.stdin.fileno(), where.encode(), len(where))  # with the GIL: one drop follows
found = int(process.stdout.readline())
let_them_end(process)
print(json.dumps(found))
"""
    assert run(program, head=HEAD + HELD + GIL) == 0


@pytest.mark.parametrize("descriptors", ["some", "none"])
@pytest.mark.skipif(NO_SYSCALL_FILE, reason="this kernel does not say in which system call a thread is")
def test_watchdog_lets_others_go_first_but_goes_on_when_threads_are_kept_from_running(
    descriptors: str,
) -> None:
    """A debugger stops them, each with the GIL as good as its own: that is no fault of the scheduler.

    Nor is it one when no file can be opened to look up what they are at."""
    program = """
debugger = '''
for thread in threads:
    stop(thread)
print("done", flush=True)
sys.stdin.readline()
'''
import resource
gil.schedule()
process, answer = hold_up(debugger)
if sys.argv[1] == "none":
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
looked = time.monotonic() + 0.45  # by then the watchdog has looked at them twice
while answer == "done" and (gil.scheduler().withdrawn < 5 or time.monotonic() < looked):
    time.sleep(0.001)
policy = gil.scheduler().policy
process.communicate("go on\\n")
for thread in sleepers:
    thread.join()
print(json.dumps([answer, policy, gil.scheduler().watchdog_tripped]))
"""
    answer, policy, tripped = run(program, descriptors, head=HEAD + HELD)
    if answer != "done":
        pytest.skip(f"this system does not let one debug one's own threads: {answer}")
    assert policy == "interactive"
    assert not tripped


@pytest.mark.skipif(machine.cores().usable < 2, reason="spinning needs two cores")
def test_no_thread_spins_once_it_may_use_one_core_only() -> None:
    program = """
gil.schedule()
threads = spinners(1)
ends = os.pipe()
def spins(least):
    before = gil.scheduler()
    rounds = 0
    while rounds < 500 or gil.scheduler().spins - before.spins < least:
        os.write(ends[1], b"x")
        os.read(ends[0], 1)
        rounds += 1
    return gil.scheduler().spins - before.spins
free = spins(least=10)
for thread in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(thread), [min(os.sched_getaffinity(0))])
end = time.monotonic() + 0.02  # for so long it is relied upon what was looked up
while time.monotonic() < end:
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
bound = spins(least=0)
stop.set()
print(json.dumps([free, bound]))
"""
    free, bound = run(program)
    assert free >= 10
    assert bound == 0


def test_a_child_that_ends_like_a_program_ends_beside_daemon_threads() -> None:
    """Fork, threads in the child, and the whole finalisation of its interpreter, again and again."""
    script = Path(__file__).parents[2] / "tools" / "gil_stress.py"
    done = subprocess.run(
        [sys.executable, script, "cycles", "--cycles", "15", "--seed", "1", "--policy", "interactive"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 cycles" in done.stdout

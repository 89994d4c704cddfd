"""Where no thread waits for the GIL there is nothing to schedule: the hooks rest until one does."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scheduled import run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
REST = """
from fairlead.gil.schedule import outside

def resting(pid=0):
    return outside.send(pid or os.getpid(), "status").hooks == "resting"

gil.schedule()
"""


def test_takes_of_the_only_thread_are_not_counted_and_the_first_wait_puts_the_hooks_in() -> None:
    program = (
        REST
        + """
for _ in range(10_000):
    os.stat("/")
before = resting()
spinners(1)
while resting():
    os.stat("/")
for _ in range(50):
    os.stat("/")
stop.set()
state = gil.scheduler()
print(json.dumps([before, state.acquisitions, state.waits, state.policy]))
"""
    )
    before, acquisitions, waits, policy = run(program)
    assert (before, policy) == (True, "interactive")
    assert 50 <= acquisitions < 10_000
    assert waits > 0


@pytest.mark.parametrize(
    "act", ["gil.scheduler()", "gil.observe().start()", "gil.record(os.devnull).start()"]
)
def test_what_needs_the_hooks_puts_them_in(act: str) -> None:
    program = (
        REST
        + f"""
before = resting()
kept = {act}
print(json.dumps([before, resting()]))
"""
    )
    assert run(program) == [True, False]


def test_program_that_has_several_threads_already_is_scheduled_at_once() -> None:
    program = """
from fairlead.gil.schedule import outside
spinners(1, daemon=True)
gil.schedule()
print(json.dumps(outside.send(os.getpid(), "status").hooks))
"""
    assert run(program) == "awake"


def test_forked_child_is_scheduled_and_takes_orders() -> None:
    program = (
        REST
        + """
ready, ordered = os.pipe(), os.pipe()
pid = os.fork()
if not pid:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it says of the order
    os.write(ready[1], b"x")
    os.read(ordered[0], 1)
    os._exit(gil.scheduler().policy != "stock")
os.read(ready[0], 1)
family = outside.scheduled_family(pid) == [pid]
outside.send(pid, "stock", wait_s=0)
os.write(ordered[1], b"x")
print(json.dumps([family, resting(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]))
"""
    )
    assert run(program) == [True, True, 0]


@pytest.mark.parametrize("order", ["status", "stock", "off"])
def test_order_that_comes_meanwhile_is_obeyed_at_the_first_wait(order: str) -> None:
    program = (
        REST
        + """
outside.send(os.getpid(), sys.argv[1])
before = resting()
spinners(1)
answer = outside.send(os.getpid(), "status", wait_s=60)
stop.set()
print(json.dumps([before, answer.hooks, answer.policy, answer.off]))
"""
    )
    policy = "interactive" if order == "status" else "stock"
    said = (
        "" if order == "status" else "the interpreter's own scheduling is in force by order of fairlead ctl"
    )
    assert run(program, order, said=said) == [True, "awake", policy, order == "off"]


def test_child_obeys_an_order_that_its_resting_parent_has_not_obeyed_yet() -> None:
    program = (
        REST
        + """
outside.send(os.getpid(), "off")
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the children say of the order
pids = []
for _ in range(2):
    pid = os.fork()
    if not pid:
        os.stat("/")
        state = gil.scheduler()
        os._exit(state.policy != "stock" or not state.switched_off)
    pids.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(json.dumps([pids, resting()]))
"""
    )
    assert run(program) == [[0, 0], True]


def test_what_the_program_asks_for_later_takes_the_place_of_an_order() -> None:
    program = (
        REST
        + """
outside.send(os.getpid(), "stock")
gil.schedule()
spinners(1)
for _ in range(50):
    os.stat("/")
stop.set()
print(json.dumps(gil.scheduler().policy))
"""
    )
    assert run(program) == "interactive"


def test_thread_that_waits_first_gets_a_free_gil_at_once() -> None:
    """The thread that drops it held it before the hooks were in."""
    program = (
        REST
        + """
import _thread
sys.setswitchinterval(10)
begun = _thread.allocate_lock()
begun.acquire()
times = []
def begin():
    times.append(time.monotonic())
    begun.release()
_thread.start_new_thread(begin, ())
with outside._page(os.getpid()) as page, memoryview(page).cast("I") as words:
    while outside.HOOKS[words[outside._HOOKS]] == "resting":
        pass  # the thread comes to wait; this one keeps the GIL
end = time.monotonic()
begun.acquire()  # drops the GIL
print(json.dumps(times[0] - end))
"""
    )
    assert run(program) < 5


def test_scheduled_time_of_a_child_does_not_begin_with_that_of_its_resting_parent() -> None:
    program = (
        REST
        + """
time.sleep(0.5)
def fork():
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os._exit(gil.scheduler().scheduled_seconds >= time.monotonic() - began + 0.25)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])), flush=True)
thread = threading.Thread(target=fork)
thread.start()
thread.join()
"""
    )
    assert run(program) == 0


def test_ctl_says_that_no_thread_has_waited_yet() -> None:
    program = "import fairlead.gil; fairlead.gil.schedule(); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()
            command = [sys.executable, "-m", "fairlead", "ctl", "--pid", str(process.pid)]
            said = [
                subprocess.run([*command, order], capture_output=True, text=True, check=True).stdout
                for order in ("status", "stock", "status")
            ]
        finally:
            process.stdin.close()
            process.wait()
    none = f"process {process.pid}: no thread has waited for the GIL yet; when one does, "
    obeys = none + "it obeys: stock\n"
    assert said == [none + "it is scheduled from then on\n", obeys, obeys]


def test_hooks_go_in_without_a_file_descriptor_to_spare() -> None:
    program = (
        REST
        + """
import resource
before = resting()
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
spinners(1)
for _ in range(50):
    os.stat("/")
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
after = resting()
stop.set()
print(json.dumps([before, after, gil.scheduler().waits > 0]))
"""
    )
    assert run(program) == [True, False, True]


def test_many_threads_that_wait_first_at_once_lose_no_wait() -> None:
    program = (
        REST
        + """
import _thread
count, done = 16, []
gate = _thread.allocate_lock()
gate.acquire()
def work():
    gate.acquire()
    gate.release()
    for _ in range(100):
        os.stat("/")
        sum(range(100))
    done.append(1)
threads = [threading.Thread(target=work) for _ in range(count)]
for thread in threads:
    thread.start()
gate.release()
for thread in threads:
    thread.join()
print(json.dumps([len(done), gil.scheduler().watchdog_trips]))
"""
    )
    for _ in range(5):
        assert run(program) == [16, 0]


def test_hooks_of_a_schedule_for_a_while_do_not_rest_so_that_its_end_is_announced() -> None:
    program = """
import os
from fairlead.gil.schedule import control
control.switch("interactive", 0.05, for_s=0.01)
while True:
    os.stat("/")  # which no other thread waits for
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "the time that the GIL was to be scheduled for is over" in process.stderr.readline()
        finally:
            process.kill()

"""Where no thread waits for the GIL there is nothing to schedule: the hooks rest until one does."""

from __future__ import annotations

from typing import Any

import pytest
from running import ctl, running
from scheduled import run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
REST = """
from fairlead.gil.schedule import outside

def resting(pid=0):
    return outside.send(pid or os.getpid(), "status").hooks == "resting"

def stat(times=50):
    for _ in range(times):
        os.stat("/")

gil.schedule()
"""
NEEDS = """
before = resting()
kept = {}
answer = [before, resting()]
"""
OBEYS = """
outside.send(os.getpid(), "{}")
before = resting()
spinners(1)
now = outside.send(os.getpid(), "status", wait_s=60)
stop.set()
answer = [before, now.hooks, now.policy, now.off]
"""

CHILD_OBEYS = """
{}
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what is said of the order
ended = []
for _ in range(2):
    with outside._page(os.getpid()) as found:
        outside._ask(os.getpid(), "off", *found)
        pid = os.fork()
    if not pid:
        stat(1)
        now = gil.scheduler()
        os._exit(now.policy != "stock" or not now.switched_off)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
answer = [ended, resting()]
"""

PROGRAMS: dict[str, tuple[str, Any]] = {
    "takes of the only thread are not counted and the first wait puts the hooks in": (
        """
stat(10_000)
before = resting()
spinners(1)
while resting():
    stat(1)
stat()
stop.set()
now = gil.scheduler()
answer = [before, 50 <= now.acquisitions < 10_000, now.waits > 0, now.policy]
""",
        [True, True, True, "interactive"],
    ),
    "scheduler() puts them in": (NEEDS.format("gil.scheduler()"), [True, False]),
    "observe() puts them in": (NEEDS.format("gil.observe().start()"), [True, False]),
    "record() puts them in": (NEEDS.format("gil.record(os.devnull).start()"), [True, False]),
    "a program that has several threads already is scheduled at once": (
        "spinners(1, daemon=True)\ngil.schedule()\nanswer = outside.send(os.getpid(), 'status').hooks",
        "awake",
    ),
    "a forked child is scheduled and takes orders": (
        """
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
answer = [family, resting(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]
""",
        [True, True, 0],
    ),
    "a look that comes meanwhile changes nothing": (
        OBEYS.format("status"),
        [True, "awake", "interactive", False],
    ),
    "stock that comes meanwhile is obeyed at the first wait": (
        OBEYS.format("stock"),
        [True, "awake", "stock", False],
    ),
    "off that comes meanwhile is obeyed at the first wait": (
        OBEYS.format("off"),
        [True, "awake", "stock", True],
    ),
    "a child obeys an order that its resting parent has not obeyed yet": (
        CHILD_OBEYS.format("pass"),
        [[0, 0], True],
    ),
    # which holds the GIL from the order to the fork
    "a child obeys an order that its parent, whose hooks are in, has not obeyed yet": (
        CHILD_OBEYS.format("gil.scheduler()"),
        [[0, 0], False],
    ),
    "what the program asks for later takes the place of an order": (
        """
outside.send(os.getpid(), "stock")
gil.schedule()
spinners(1)
stat()
stop.set()
answer = gil.scheduler().policy
""",
        "interactive",
    ),
    # with the interval of stock it would come to its end after the time-out of this test
    "a thread that waits first gets a free GIL at once": (
        """
import _thread, mmap
sys.setswitchinterval(1000)
begun = _thread.allocate_lock()
begun.acquire()
with outside._page(os.getpid()) as (file, place, page), mmap.mmap(file, 0) as mapped:
    _thread.start_new_thread(begun.release, ())
    while outside.HOOKS[mapped[place + 56]] == "resting":
        pass  # the thread comes to wait; this one keeps the GIL, which it took before the hooks were in
begun.acquire()  # drops the GIL
answer = True
""",
        True,
    ),
    "the scheduled time of a child does not begin with that of its resting parent": (
        """
time.sleep(0.1)
def fork():
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os._exit(gil.scheduler().scheduled_seconds >= time.monotonic() - began + 0.05)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
ended = []
thread = threading.Thread(target=fork)
thread.start()
thread.join()
answer = ended
""",
        [0],
    ),
    "hooks go in without a file descriptor to spare": (
        """
import resource
before = resting()
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
spinners(1)
stat()
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
after = resting()
stop.set()
answer = [before, after, gil.scheduler().waits > 0]
""",
        [True, False, True],
    ),
    "many threads that wait first at once lose no wait": (
        """
import _thread
done, gate = [], _thread.allocate_lock()
gate.acquire()
def work():
    gate.acquire()
    gate.release()
    for _ in range(100):
        stat(1)
        sum(range(100))
    done.append(1)
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
gate.release()
for thread in threads:
    thread.join()
answer = [len(done), gil.scheduler().watchdog_trips]
""",
        [16, 0],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks_rest_until_they_are_needed_and_nothing_is_lost_meanwhile(name: str) -> None:
    program, answer = PROGRAMS[name]
    ordered = "obeyed at the first wait" in name
    said = "the interpreter's own scheduling is in force by order of fairlead ctl" if ordered else ""
    for _ in range(5 if "many threads" in name else 1):
        assert run(f"{REST}{program}\nprint(json.dumps(answer))", said=said) == answer


def test_ctl_says_that_no_thread_has_waited_yet() -> None:
    program = "import fairlead.gil; fairlead.gil.schedule(); print('ready', flush=True); input()"
    with running(program) as process:
        said = [ctl(process.pid, order).stdout for order in ("status", "stock", "status")]
    none = f"process {process.pid}: no thread has waited for the GIL yet; when one does, "
    obeys = none + "it obeys: stock\n"
    assert said == [none + "it is scheduled from then on\n", obeys, obeys]


def test_hooks_of_a_schedule_for_a_while_do_not_rest_so_that_its_end_is_announced() -> None:
    program = """
import os
from fairlead.gil.schedule import control
control.switch("interactive", 0.05, for_s=0.01)
print("ready", flush=True)
while True:
    os.stat("/")  # which no other thread waits for
"""
    with running(program) as process:
        assert process.stderr is not None
        assert "the time that the GIL was to be scheduled for is over" in process.stderr.readline()

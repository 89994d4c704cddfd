"""Real interpreters under the scheduler: what it does. test_gil_survives.py has what is done to them."""

from __future__ import annotations

import sys

import pytest
from scheduled import ECHO, HEAD, INTERPRETERS, run

from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule.hook import _LINE as LINE
from fairlead.gil.schedule.launched import VARIABLE

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_io_thread_beside_cpu_threads_does_not_wait_for_a_switch_interval() -> None:
    program = f"gil.schedule()\n{ECHO}\nprint(json.dumps(gil.scheduler().policy))"
    assert run(program) == "interactive"


@pytest.mark.timing
def test_computation_has_a_fifth_of_the_gil_beside_threads_that_never_sleep() -> None:
    """Several of them: they meet at the GIL's own mutex, and sleep there."""
    program = """
import logging, tempfile
gil.schedule()
logger = logging.Logger("beside")
logger.addHandler(logging.StreamHandler(tempfile.TemporaryFile("w")))
def call_over_and_over(call):
    while not stop.is_set():
        call()
calls = [lambda: os.stat("/"), lambda: logger.warning("a line")]
threads = [threading.Thread(target=call_over_and_over, args=(call,)) for call in calls]
threads.append(threading.Thread(target=spin, name="computes"))
for thread in threads:
    thread.start()
time.sleep(0.5)
with gil.observe() as seen:
    time.sleep(2)
end(threads)
held = {thread.name: thread.held_seconds for thread in seen.threads}
print(json.dumps(held["computes"] / seen.seconds))
"""
    share = run(program)
    assert share > 0.2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")
def test_interpreters_with_a_gil_of_their_own_are_scheduled_each_by_itself() -> None:
    program = f"""
gil.schedule()
made = create("isolated")
run_in(made, {ECHO!r})
interpreters.destroy(made)
print(json.dumps(gil.scheduler().policy))
"""
    assert run(program, head=HEAD + INTERPRETERS) == "interactive"


def test_the_hook_for_the_environment_imports_nothing_in_further_interpreters() -> None:
    program = f"""
os.environ[{VARIABLE!r}] = "interactive"
hook = {LINE!r}
run_in(create("legacy"), hook + "\\nassert 'fairlead' not in sys.modules")
exec(hook)
print(json.dumps(gil.scheduler().policy))
"""
    assert run(program, head=HEAD + INTERPRETERS) == "interactive"


def test_thread_that_is_alone_is_counted_by_the_scheduler_only_until_something_observes() -> None:
    """And it makes room as ever for a thread that comes while it has the GIL."""
    program = """
gil.schedule()
gil.scheduler()  # from now on the hooks do not rest
for _ in range(1000):
    os.stat("/")
unobserved = gil.counters()
acquisitions = gil.scheduler().acquisitions
with gil.observe() as seen:
    for _ in range(1000):
        os.stat("/")
observed = gil.counters()
spinners(1)
for _ in range(50):
    os.stat("/")
stop.set()
print(json.dumps([unobserved, acquisitions, observed, gil.scheduler().waits]))
"""
    unobserved, acquisitions, observed, waits = run(program)
    seconds = "fairlead_gil_scheduled_seconds_total"
    scheduled = (seconds, "fairlead_gil_scheduler_")
    assert {value for name, value in unobserved.items() if not name.startswith(scheduled)} == {0.0}
    assert unobserved["fairlead_gil_scheduler_acquisitions_total"] >= 1000
    assert 0 < unobserved[seconds] < observed[seconds]
    assert observed["fairlead_gil_watchdog_trips_total"] == 0
    assert acquisitions >= 1000
    assert observed["fairlead_gil_acquisitions_total"] >= 1000
    assert observed["fairlead_gil_voluntary_drops_total"] >= 1000
    assert observed["fairlead_gil_observed_seconds_total"] >= observed["fairlead_gil_held_seconds_total"] > 0
    assert waits > 0


def test_policy_changes_under_load_lose_no_thread() -> None:
    program = """
done = []
def worker():
    for _ in range(100):
        time.sleep(0)
        os.stat("/")
    done.append(1)

threads = spinners(2)
workers = [threading.Thread(target=worker) for _ in range(8)]
gil.schedule()
for thread in workers:
    thread.start()
policies = ["stock", "interactive"]
changes = 0
while any(thread.is_alive() for thread in workers) or changes < 8:
    gil.schedule(policy=policies[changes % 2], cpu_share=0.2)
    changes += 1
    workers[changes % 8].join(0.003)
stop.set()
print(json.dumps(len(done)))
"""
    assert run(program) == 8


def test_switch_interval_is_followed_at_run_time() -> None:
    program = """
gil.schedule()
def work(until):
    with gil.priority("background"):  # a computation from the start: between two, only turns force drops
        while not until():
            sum(range(500))
def forced_drops(interval, until):
    sys.setswitchinterval(interval)
    before = gil.scheduler().forced_drops
    threads = [threading.Thread(target=work, args=(until,)) for _ in range(2)]
    start_and_join(threads)
    return gil.scheduler().forced_drops - before
end = time.process_time() + 0.1
few = forced_drops(1000.0, lambda: time.process_time() > end)
before = gil.scheduler().forced_drops
forced_drops(0.0005, lambda: gil.scheduler().forced_drops - before > 100)
print(json.dumps(few))
"""
    assert run(program) <= 10  # threads that begin and end; the other way they never come to 100


def test_cpu_threads_of_every_priority_get_on() -> None:
    """How much of the GIL each gets is shown by simulation: here the kernel decides, too."""
    program = """
gil.schedule()
turns = {"io": 0, "normal": 0, "background": 0}
def work(level):
    with gil.priority(level):
        while not stop.is_set():
            turns[level] += 1
            if all(count > 20_000 for count in turns.values()):
                stop.set()
with gil.observe() as seen:
    threads = [threading.Thread(target=work, args=(level,), name=level) for level in turns]
    start_and_join(threads)
held = {thread.name: thread.held_seconds for thread in seen.threads}
print(json.dumps([held[level] > 0 for level in turns]))
"""
    assert run(program) == [True, True, True]

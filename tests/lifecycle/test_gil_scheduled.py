"""Real interpreters under the scheduler: what it does, and that nothing hangs, crashes or stays behind."""

from __future__ import annotations

import pytest
from scheduled import run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_io_thread_beside_cpu_threads_waits_less_than_a_switch_interval_per_call() -> None:
    """Each round trip through a pipe costs two takes of the GIL; stock makes both of them wait, while another
    thread computes: the clock is that of the process, as the machine may have no core for it."""
    program = """
gil.schedule()
spinners(2)
ends = os.pipe()
count, end = 0, time.process_time() + 0.3
while time.process_time() < end:
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
    count += 1
stop.set()
print(json.dumps([count, gil.scheduler().policy]))
"""
    count, policy = run(program)
    assert policy == "interactive"
    assert count > 0.3 / 0.005


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


@pytest.mark.parametrize("policy", ["interactive"])
def test_forked_children_of_a_busy_process_run_and_end(policy: str) -> None:
    program = """
gil.schedule(policy=sys.argv[1])
threads = spinners(3)
for _ in range(20):
    pid = os.fork()
    if not pid:
        more = [threading.Thread(target=sum, args=(range(10_000),)) for _ in range(3)]
        for thread in more:
            thread.start()
        for thread in more:
            thread.join()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
stop.set()
print(json.dumps(gil.scheduler().watchdog_tripped))
"""
    assert run(program, policy) is False


def test_policy_changes_under_load_lose_no_thread() -> None:
    program = """
done = []
def worker():
    for _ in range(300):
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
while any(thread.is_alive() for thread in workers):
    gil.schedule(policy=policies[changes % 2], cpu_share=0.2)
    changes += 1
    workers[changes % 8].join(0.003)
stop.set()
print(json.dumps([len(done), changes]))
"""
    done, changes = run(program)
    assert done == 8
    assert changes > 3


def test_process_ends_with_daemon_threads_running() -> None:
    program = """
gil.schedule()
spinners(4, daemon=True)
print(json.dumps("over"))
"""
    for _ in range(5):
        assert run(program) == "over"


def test_keyboard_interrupt_arrives_beside_cpu_threads() -> None:
    program = """
import signal
gil.schedule()
threads = spinners(3)
try:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while not stop.wait(0.01):
        pass  # a signal of the instant before a thread falls asleep at a lock is seen when it wakes
except KeyboardInterrupt:
    stop.set()
    print(json.dumps("interrupted"))
"""
    assert run(program) == "interrupted"


def test_many_short_threads_leave_no_waiter() -> None:
    program = """
gil.schedule()
gil.schedule()
for _ in range(500):
    thread = threading.Thread(target=os.getpid)
    thread.start()
    thread.join()
print(json.dumps(gil.scheduler().waiting))
"""
    assert run(program) == 0


def test_switch_interval_is_followed_at_run_time() -> None:
    program = """
gil.schedule()
def work():
    with gil.priority("background"):  # a computation from the start: between two, only turns force drops
        for _ in range(20_000):
            sum(range(500))
def forced_drops(interval):
    sys.setswitchinterval(interval)
    before = gil.scheduler().forced_drops
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return gil.scheduler().forced_drops - before
print(json.dumps([forced_drops(10.0), forced_drops(0.0005)]))
"""
    few, many = run(program)
    assert many > 2 * few


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
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
held = {thread.name: thread.held_seconds for thread in seen.threads}
print(json.dumps([held[level] > 0 for level in turns]))
"""
    assert run(program) == [True, True, True]

"""Several interpreters in one scheduled process: with the main one's GIL, or each with its own."""

from __future__ import annotations

import sys

import pytest
from scheduled import HEAD, run

from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule.hook import _LINE as LINE
from fairlead.gil.schedule.launched import VARIABLE

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
only_own = pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")

INTERPRETERS = (
    HEAD
    + """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def create(kind):
    if sys.version_info >= (3, 13):
        return interpreters.create(kind)
    return interpreters.create(isolated=kind == "isolated")

def run_in(made, program):
    failure = interpreters.run_string(made, program)
    assert failure is None, failure

COUNT = '''
import os
ends = os.pipe()
for _ in range(100):
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
    sum(range(1000))
'''
"""
)


@pytest.mark.parametrize("policy", ["interactive"])
def test_interpreters_that_share_the_gil_get_on_beside_each_others_cpu_threads(policy: str) -> None:
    """Until 3.12 only threads of the asker's own interpreter see a request to drop: each waiter must ask."""
    program = """
gil.schedule(policy=sys.argv[1])
computing = spinners(2)
made = [create("legacy") for _ in range(3)]
threads = [threading.Thread(target=run_in, args=(one, COUNT)) for one in made]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for one in made[1:]:  # one is there still when the process ends
    interpreters.destroy(one)
state = gil.scheduler()
stop.set()
for thread in computing:
    thread.join()
print(json.dumps([state.policy, state.watchdog_tripped]))
"""
    assert run(program, policy, head=INTERPRETERS) == [policy, False]


@only_own
def test_interpreters_with_a_gil_of_their_own_are_scheduled_each_by_itself() -> None:
    """Each round trip in there costs two takes of its GIL; stock makes both wait for a switch interval, in
    which another thread computes."""
    program = """
gil.schedule()
made = create("isolated")
ends = os.pipe()
run_in(made, f'''
import os, threading, time
stop = threading.Event()
def spin():
    while not stop.is_set():
        sum(range(100))
threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
ends = os.pipe()
count, end = 0, time.process_time() + 0.3
while time.process_time() < end:
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
    count += 1
stop.set()
for thread in threads:
    thread.join()
os.write({ends[1]}, b"%d" % count)
''')
interpreters.destroy(made)
print(json.dumps(int(os.read(ends[0], 100))))
"""
    assert run(program, head=INTERPRETERS) > 0.3 / 0.005


@only_own
def test_interpreters_with_a_gil_of_their_own_come_and_go_beside_cpu_threads() -> None:
    program = """
gil.schedule()
threads = spinners(2)
for _ in range(10):
    made = create("isolated")
    run_in(made, "import threading; t = threading.Thread(target=sum, args=([1],)); t.start(); t.join()")
    interpreters.destroy(made)
stop.set()
print(json.dumps("fine"))
"""
    assert run(program, head=INTERPRETERS) == "fine"


def test_the_hook_for_the_environment_imports_nothing_in_further_interpreters() -> None:
    program = f"""
os.environ[{VARIABLE!r}] = "interactive"
hook = {LINE!r}
run_in(create("legacy"), hook + "\\nassert 'fairlead' not in sys.modules")
exec(hook)
print(json.dumps(gil.scheduler().policy))
"""
    assert run(program, head=INTERPRETERS) == "interactive"

"""fairlead.sync.waits across forks, exits and interpreters: each a program of its own."""

from __future__ import annotations

import sys

import pytest
from syncprograms import run

NAMES = """
def names():
    return sorted(wait.waiter.thread_name for wait in waits())

def waiter(name, function):
    thread = start(function)
    thread.name = name
    until(lambda: name in names())
    return thread
"""


def run_named(program: str) -> str:
    return run(NAMES + program)


def test_forked_child_sees_its_own_waits_alone() -> None:
    run_named("""
lock = Lock()
lock.acquire()
waiter("of the parent", lock.acquire)

def child():
    assert waits() == ()
    waiter("of the child", lock.acquire)
    [wait] = waits()
    assert wait.owners[0].thread == threading.get_ident()
    lock.release()
    until(lambda: waits() == ())

in_child(child)
assert names() == ["of the parent"]
lock.release()
until(lambda: waits() == ())
""")


def test_forks_while_other_threads_list_waits_and_wait_leave_children_that_can_do_both() -> None:
    run_named("""
lock, over = Lock(), threading.Event()

def come_and_go():
    while not over.is_set():
        if lock.acquire(timeout=0.001):
            lock.release()

def look():
    while not over.is_set():
        waits()

threads = [start(come_and_go), start(come_and_go), start(look)]
for _ in range(8):
    def child():
        waits()
        thread = threading.Thread(target=waits)
        thread.start()
        thread.join()
    in_child(child)
over.set()
for thread in threads:
    thread.join()
""")


def test_waits_at_the_end_of_the_interpreter_lists_waiters_without_a_stack() -> None:
    out = run_named("""
lock = Lock()
lock.acquire()
waiter("daemon", lock.acquire)

from fairlead import _native

class Last:  # whose destructor finds modules of Python empty, as those of sync
    def __del__(self, waits=_native.waits, write=os.write):
        [(_, kind, *_, stack)] = waits()
        write(1, f"{kind} {stack}".encode())

last = Last()
""")
    assert out == "fairlead.sync.Lock None"


@pytest.mark.skipif(
    sys.version_info < (3, 14), reason="interpreters are in the standard library from 3.14 on"
)
def test_waits_of_other_interpreters_are_seen_by_kind_and_number() -> None:
    run_named("""
from concurrent import interpreters
from fairlead._native import handle
lock = Lock()
lock.acquire()
other = interpreters.create()
thread = start(other.exec, f'''
import fairlead.sync
from fairlead._native import attach
attach({handle(lock)}).acquire()
''')
until(lambda: [wait for wait in waits() if wait.waiter.interpreter == other.id])
[wait] = waits()
assert wait.kind == "Lock" and wait.waiter.stack == ()
assert wait.primitive.endswith(f"of interpreter {other.id}>"), wait.primitive
assert [owner.thread for owner in wait.owners] == [threading.get_ident()]
assert f"of interpreter {other.id} has waited" in str(wait)
lock.release()
thread.join()
assert waits() == ()
""")

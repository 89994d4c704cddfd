"""fairlead.sync inside interpreters with a GIL of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import asyncio, threading
from fairlead.sync import Event, Lock, Semaphore, SimpleQueue
lock, line, event = Lock(), SimpleQueue(), Event()
inside = [0]

def work():
    for _ in range(100):
        with lock:
            seen = inside[0]
            inside[0] = seen + 1
    line.put(None)
    event.wait()

async def main():
    for _ in range(2):
        await line.get_async()
    async with lock:
        event.set()

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
asyncio.run(main())
for thread in threads:
    thread.join()
assert inside == [200] and not lock.locked()
"""


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="further interpreters of Python 3.11 may not start threads"
)
def test_primitives_work_in_each_interpreter(new_interpreter: Callable[[], Any]) -> None:
    first, second = new_interpreter(), new_interpreter()
    first.run(PROGRAM)
    second.run(PROGRAM)
    first.run(PROGRAM)


def test_interpreter_that_ends_with_waiting_tasks_takes_its_ports_along(
    new_interpreter: Callable[[], Any],
) -> None:
    interpreter = new_interpreter()
    interpreter.run(
        "import asyncio\n"
        "from fairlead.sync import Lock\n"
        "lock = Lock()\n"
        "lock.acquire()\n"
        "loop = asyncio.new_event_loop()\n"
        "async def body():\n"
        "    async with lock: pass\n"
        "task = loop.create_task(body())\n"
        "task._log_destroy_pending = False\n"
        "loop.run_until_complete(asyncio.sleep(0))\n"
        "assert lock.statistics().waiting == 1\n"
        "loop.close()\n"
        "assert lock.statistics().waiting == 0\n"
    )

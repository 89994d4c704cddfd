"""Interpreters of their own GIL in one process, by the library that 3.14 has for them."""

from __future__ import annotations

import threading
import time

from plant import healthy, late, main, planted, start

COMPUTE = """
import threading, time
end = time.monotonic() + {seconds}
def report():
    while time.monotonic() < end:
        sum(i * i for i in range(2000))
"""


def run(code: str, seconds: float = 1.8) -> None:
    from concurrent import interpreters

    one = interpreters.create()
    try:
        one.exec(COMPUTE.format(seconds=seconds) + code)
    finally:
        one.close()


@healthy  # from 3.14 on
def each_computes_alone() -> None:
    for thread in start(lambda: run("report()"), lambda: run("report()")):
        thread.join()


@healthy  # from 3.14 on
def timer_beside_an_interpreter_that_computes() -> None:
    thread = threading.Thread(target=run, args=("report()",), name="computes")
    thread.start()
    late(0.005)
    thread.join()


@planted("convoy")  # from 3.14 on
def timer_and_report_in_one_interpreter() -> float:
    began = time.monotonic()
    run(
        "thread = threading.Thread(target=report, name='report')\n"
        "thread.start()\n"
        "while time.monotonic() < end: time.sleep(.002)\n"
        "thread.join()\n"
    )
    return time.monotonic() - began


@planted("saturation")  # from 3.14 on
def three_compute_in_one_interpreter() -> float:
    began = time.monotonic()
    run(
        "threads = [threading.Thread(target=report) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    return time.monotonic() - began


if __name__ == "__main__":
    main()

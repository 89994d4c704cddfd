"""Ready-made programs: the squares, the echo server beside CPU-bound threads, and plain CPU-bound threads.

Times are those of CPython 3.12 on an x86-64 machine, rounded: a look at a counter and a loop around it 1 us,
a request in an echo server 8 us of bytecode and two system calls.
"""

from __future__ import annotations

from fairlead.errors import UsageError
from fairlead.gil.simulation.program import (
    Acquire,
    Add,
    Begin,
    End,
    Forever,
    Group,
    Join,
    Measure,
    Off,
    Program,
    Receive,
    Release,
    Repeat,
    Run,
    Send,
    Start,
    Until,
    Yield,
)

LOOK = Run(1_000)
STEP = Run(2_000)


def _at_least_one(n: int, what: str) -> None:
    if n < 1:
        raise UsageError(f"at least one {what} is needed, not {n}")


def square_thread_start(n: int) -> Program:
    """Start n threads; each takes one of n items away and then yields until none is left; join them all."""
    _at_least_one(n, "thread")
    main = (Repeat(n, (STEP, Start("T"))), Join("T"))
    thread = (STEP, Add("items", -1), Until("items", 0, (LOOK, Yield())))
    return Program(
        groups={"main": Group(body=main), "T": Group(body=thread, threads=n, initial=0)},
        counters={"items": n},
    )


def square_mutex(n: int) -> Program:
    """n threads wait for a lock that another keeps until all have arrived; each passes it once, then yields
    until all have. Statistics begin at the first release."""
    _at_least_one(n, "thread")
    keeper = (Until("arrived", n, (LOOK, Yield())), Measure(), Release("lock"))
    thread = (
        Add("arrived", 1),
        Acquire("lock"),
        STEP,
        Release("lock"),
        Add("left", -1),
        Until("left", 0, (LOOK, Yield())),
    )
    return Program(
        groups={"keeper": Group(body=keeper), "T": Group(body=thread, threads=n)},
        counters={"arrived": 0, "left": n},
        semaphores={"lock": 0},
    )


def square_semaphore(n: int) -> Program:
    """n threads wait for a semaphore which one other releases n times; the woken yield until all are awake.

    As in ``threading.Semaphore``, every release and every wake-up passes a lock besides. Statistics begin at
    the first release.
    """
    _at_least_one(n, "thread")
    opener = (
        Until("arrived", n, (LOOK, Yield())),
        Measure(),
        Repeat(n, (Acquire("lock"), LOOK, Release("gate"), Release("lock"))),
    )
    thread = (
        Add("arrived", 1),
        Acquire("gate"),
        Acquire("lock"),
        LOOK,
        Release("lock"),
        Add("asleep", -1),
        Until("asleep", 0, (LOOK, Yield())),
    )
    return Program(
        groups={"opener": Group(body=opener), "T": Group(body=thread, threads=n)},
        counters={"arrived": 0, "asleep": n},
        semaphores={"gate": 0, "lock": 1},
    )


def echo(clients: int, cpu_threads: int = 0, cpu_processes: int = 0) -> Program:
    """An echo server with one thread per client, beside CPU-bound threads of its own process or processes of
    others.

    Clients are foreign threads in a closed loop: each sends its next request 10 us after its last answer.
    Requests are the group "client"'s. The program runs until the simulation's end, so give ``until_seconds``.
    """
    _at_least_one(clients, "client")
    groups: dict[str, Group] = {}
    semaphores: dict[str, int] = {}
    for i in range(1, clients + 1):
        asked, answered = f"asked{i}", f"answered{i}"
        semaphores |= {asked: 0, answered: 0}
        server = (Forever((Receive(asked, 2_000), Run(6_000, 0.2), Send(answered, 5_000), Run(2_000, 0.2))),)
        client = (Forever((Off(10_000, 0.2), Begin(), Send(asked, 5_000), Receive(answered, 2_000), End())),)
        groups[f"server{i}"] = Group(body=server, daemon=True)
        groups[f"client{i}"] = Group(body=client, foreign=True)
    if cpu_threads:
        groups["cpu"] = Group(body=(Forever((Run(1_000_000),)),), threads=cpu_threads, daemon=True)
    if cpu_processes:
        body = (Forever((Off(1_000_000),)),)
        groups["process"] = Group(body=body, threads=cpu_processes, daemon=True, foreign=True)
    return Program(groups=groups, semaphores=semaphores)


def cpu(n: int, ns: int = 100_000_000) -> Program:
    """n CPU-bound threads of ``ns`` each."""
    _at_least_one(n, "thread")
    return Program(groups={"cpu": Group(body=(Run(ns),), threads=n)})

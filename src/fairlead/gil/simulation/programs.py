"""Ready-made programs: the squares, the echo server beside CPU-bound threads, and plain CPU-bound threads.

Times are those of CPython 3.12 on an x86-64 machine, rounded: a look at a counter and a loop around it 1 us,
a request in an echo server 8 us of bytecode and two system calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from fairlead.errors import UsageError
from fairlead.gil.simulation.program import (
    Acquire,
    Add,
    Arrive,
    Begin,
    Either,
    End,
    Forever,
    Group,
    Join,
    Measure,
    Off,
    Operation,
    Program,
    Receive,
    Release,
    Repeat,
    Run,
    Send,
    Sleep,
    Start,
    Until,
    Yield,
)

LOOK = Run(1_000)
STEP = Run(2_000)
SHORT_BURST = (Run(40_000, 0.6), Off(5_000, 0.5))


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
        groups["cpu"] = dataclasses.replace(COMPUTING, threads=cpu_threads)
    if cpu_processes:
        body = (Forever((Off(1_000_000),)),)
        groups["process"] = Group(body=body, threads=cpu_processes, daemon=True, foreign=True)
    return Program(groups=groups, semaphores=semaphores)


COMPUTING = Group(body=(Forever((Run(1_000_000),)),), daemon=True)
MIXTURE = {"0.1 ms": (100_000, 0.45), "1 ms": (1_000_000, 0.40), "20 ms": (20_000_000, 0.15)}


def open_server(
    kinds: Mapping[str, tuple[int, float]] = MIXTURE,
    *,
    load: float,
    cpu_threads: int = 0,
    cpu_processes: int = 0,
    threads: int = 32,
    waits: int = 0,
    steps: int = 0,
) -> Program:
    """A server with a pool of threads for requests that come whether or not it keeps up (an open loop).

    Requests are those of the groups that are named as the kinds; they begin when they are due. The program
    runs until the simulation's end, so give ``until_seconds``.

    Args:
        kinds: by name, the GIL time of a request (ns) and its part of the load. The parts sum to 1.
        load: arrivals x GIL time: 1 is all of the GIL.
        cpu_threads, cpu_processes: CPU-bound threads of the server, and processes of others.
        threads: of the pool; any of them answers any kind.
        waits: how often each request waits for a millisecond on its way.
        steps: so many short bursts of 40 us, each with a system call after it, come before the request's own
            work, as a server accepts a connection and reads a request, and half as many after it. They are
            no part of the load.
    """
    _at_least_one(threads, "thread")
    rates = {name: load * part / ns for name, (ns, part) in kinds.items()}
    handler: tuple[Operation, ...] = ()
    left = 0.0
    for name, (ns, _) in reversed(list(kinds.items())):
        work: tuple[Operation, ...] = (*SHORT_BURST * steps, Run(ns // (1 + waits), 0.2))
        for _ in range(waits):
            work = (*work, Sleep(1_000_000, 0.5), Run(ns // (1 + waits), 0.2))
        if steps:
            work = (*work, Off(15_000, 0.3), *SHORT_BURST * (steps // 2))
        answer = (*work, Send("answers", 5_000), End(name))
        left += rates[name]
        handler = (Either(round(1_000_000 * rates[name] / left), answer, handler),) if handler else answer
    serve = (Forever((Receive("requests", 2_000), Begin("requests"), *handler)),)
    groups = {name: Group(body=(), daemon=True) for name in kinds}
    groups["server"] = Group(body=serve, threads=threads, daemon=True)
    groups["client"] = Group(body=(Forever((Arrive("requests", round(1 / left)),)),), foreign=True)
    if cpu_threads:
        groups["cpu"] = dataclasses.replace(COMPUTING, threads=cpu_threads)
    if cpu_processes:
        body = (Forever((Off(5_000_000, 0.9), Sleep(500_000, 0.9))),)
        groups["process"] = Group(body=body, threads=cpu_processes, daemon=True, foreign=True)
    return Program(groups=groups, semaphores={"requests": 0, "answers": 0})


def cpu(n: int, ns: int = 100_000_000) -> Program:
    """n CPU-bound threads of ``ns`` each."""
    _at_least_one(n, "thread")
    return Program(groups={"cpu": Group(body=(Run(ns),), threads=n)})

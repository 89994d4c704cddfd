"""Threads, cores and the GIL, simulated: the protocol step by step, and the proof of the scheduler.

>>> from fairlead.gil import simulation
>>> program = simulation.square_thread_start(3)
>>> run = simulation.simulate(program, policy="stock", kernel=simulation.IDEAL, cores=1)
>>> run.switches == 2 * (1 + 2 + 3) + 1
True
"""

from __future__ import annotations

from fairlead.gil.simulation.program import (
    Acquire,
    Add,
    Arrive,
    Begin,
    Call,
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
from fairlead.gil.simulation.programs import (
    MIXTURE,
    cpu,
    echo,
    open_server,
    square_mutex,
    square_semaphore,
    square_thread_start,
)
from fairlead.gil.simulation.result import GroupStatistics, SimulatedEvent, Simulation, ThreadStatistics
from fairlead.gil.simulation.run import (
    IDEAL,
    POLICIES,
    Kernel,
    SimulatedPolicy,
    policy_constants,
    replay,
    simulate,
)

__all__ = [
    "IDEAL",
    "MIXTURE",
    "POLICIES",
    "Acquire",
    "Add",
    "Arrive",
    "Begin",
    "Call",
    "Either",
    "End",
    "Forever",
    "Group",
    "GroupStatistics",
    "Join",
    "Kernel",
    "Measure",
    "Off",
    "Operation",
    "Program",
    "Receive",
    "Release",
    "Repeat",
    "Run",
    "Send",
    "SimulatedEvent",
    "SimulatedPolicy",
    "Simulation",
    "Sleep",
    "Start",
    "ThreadStatistics",
    "Until",
    "Yield",
    "cpu",
    "echo",
    "open_server",
    "policy_constants",
    "replay",
    "simulate",
    "square_mutex",
    "square_semaphore",
    "square_thread_start",
]

"""The scheduler's promises, over schedules that nobody chose: whole simulated runs of random programs.

The simulator itself checks at every step that nobody holds the GIL beside another, that no thread which
wants it sleeps for ever, and that a free GIL is not left lying; a run that breaks one of these raises
SimulationError with the command that repeats it.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from fairlead.gil import simulation as sim

LONGEST_CALL_NS = 200_000
THREADS = 24

durations = st.integers(200, 4_000_000)
step = st.one_of(
    st.builds(sim.Run, durations, st.floats(0, 1)),
    st.builds(sim.Call, st.integers(200, LONGEST_CALL_NS)),
    st.builds(sim.Off, st.integers(0, 500_000)),
    st.builds(sim.Wait, st.integers(0, 3_000_000), st.floats(0, 1)),
    st.builds(sim.Yield),
).map(lambda one: (one,))
locked = st.builds(
    lambda lock, ns: (sim.Acquire(lock), sim.Run(ns), sim.Release(lock)),
    st.sampled_from(["a", "b"]),
    st.integers(200, 100_000),
)
bodies = st.lists(st.one_of(step, locked), min_size=1, max_size=6).map(
    lambda parts: sum(parts, (sim.Run(500),))
)


@st.composite
def programs(draw: st.DrawFn, **group: Any) -> sim.Program:
    groups = {}
    for i in range(draw(st.integers(1, 4))):
        body = (sim.Repeat(draw(st.integers(1, 12)), draw(bodies)),)
        priority = draw(st.sampled_from(["normal", "normal", "normal", "io", "background"]))
        groups[f"g{i}"] = sim.Group(
            body=body, threads=draw(st.integers(1, THREADS // 4)), priority=priority, **group
        )
    return sim.Program(groups=groups, semaphores={"a": 1, "b": 2})


kernels = st.builds(
    sim.Kernel,
    run_queue=st.sampled_from(["fair", "fifo"]),
    preempt=st.booleans(),
    wake_ns=st.integers(0, 60_000),
    wake_jitter_ns=st.integers(0, 60_000),
    slack_ns=st.sampled_from([0, 1_000, 50_000]),
    credit_ns=st.sampled_from([0, 1_500_000]),
)

thorough = settings(
    max_examples=60, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("policy", ["old", "stock", "interactive", "fair"])
@given(program=programs(), kernel=kernels, cores=st.integers(1, 4), seed=st.integers(0, 2**32))
@thorough
def test_every_thread_ends_whatever_the_schedule(
    policy: sim.Policy, program: sim.Program, kernel: sim.Kernel, cores: int, seed: int
) -> None:
    run = sim.simulate(program, policy=policy, kernel=kernel, cores=cores, seed=seed, until_seconds=600)
    note(f"python -m fairlead.gil.simulation '{run.spec}'")
    assert run.status == "finished"
    assert not run.watchdog_tripped
    assert sum(thread.acquisitions for thread in run.threads) == run.passes


@pytest.mark.parametrize("policy", ["interactive", "fair"])
@given(program=programs(), cores=st.integers(2, 4), seed=st.integers(0, 2**32))
@thorough
def test_no_thread_starves(policy: sim.Policy, program: sim.Program, cores: int, seed: int) -> None:
    """A wait is bounded: by class, by the number of threads, and by the longest time that code keeps the GIL.

    One turn of everybody costs at most T = threads x (switch interval + longest call + 1 ms for requests,
    timers and wake-ups). The interactive policy lets others go first, so its lower classes wait for their
    share or their age: CPU-bound threads for T / share, brief and background ones for one period of age for
    each thread. The fair one gives "io" threads four times and "background" ones an eighth of the others'.
    """
    share = 0.3
    run = sim.simulate(program, policy=policy, cores=cores, seed=seed, cpu_share=share, until_seconds=600)
    note(f"python -m fairlead.gil.simulation '{run.spec}'")
    threads = len(run.threads)
    turn = threads * (0.005 + LONGEST_CALL_NS / 1e9 + 0.001)
    age = threads * 2 * sim.policy_constants()["age_ns"] / 1e9
    bounds = {"fresh": turn, "brief": turn + age, "cpu": turn / share, "poll": turn / share}
    bounds["background"] = turn / share + age
    for name, waited in run.max_wait_seconds.items():
        assert waited <= (bounds[name] if policy == "interactive" else 8 * turn), name


@given(
    clients=st.sampled_from([1, 2, 4, 8, 16, 32, 64]),
    cpu_threads=st.sampled_from([1, 2, 4]),
    share=st.sampled_from([0.1, 0.3, 0.5]),
    cores=st.sampled_from([2, 4]),
    seed=st.integers(0, 2**32),
)
@settings(thorough, max_examples=25)
def test_cpu_share_is_within_five_points_of_the_target(
    clients: int, cpu_threads: int, share: float, cores: int, seed: int
) -> None:
    """With a single client too, which leaves most of the GIL idle to threads that may not have all of it."""
    run = sim.simulate(
        sim.echo(clients, cpu_threads), cpu_share=share, cores=cores, seed=seed, until_seconds=1.5
    )
    note(f"python -m fairlead.gil.simulation '{run.spec}'")
    assert run.held_share("cpu") == pytest.approx(share, abs=0.05)


SQUARES = [sim.square_thread_start, sim.square_mutex, sim.square_semaphore]


@pytest.mark.parametrize("square", SQUARES, ids=lambda f: f.__name__)
@given(n=st.integers(50, 1500), cores=st.integers(2, 4), seed=st.integers(0, 2**32))
@settings(thorough, max_examples=20)
def test_squares_take_a_constant_number_of_passes_per_thread(
    square: Any, n: int, cores: int, seed: int
) -> None:
    run = sim.simulate(square(n), cores=cores, seed=seed, until_seconds=600)
    note(f"python -m fairlead.gil.simulation '{run.spec}'")
    assert run.status == "finished"
    assert run.passes <= 12 * n


@pytest.mark.parametrize("square", SQUARES, ids=lambda f: f.__name__)
def test_squares_stay_linear_at_ten_thousand_threads(square: Any) -> None:
    run = sim.simulate(square(10_000), seed=1)
    assert run.passes <= 8 * 10_000
    assert run.elapsed_seconds <= 10_000 * 100e-6


@pytest.mark.parametrize("policy", ["old", "stock"])
def test_thread_starts_are_a_square_without_the_scheduler(policy: sim.Policy) -> None:
    small, large = (sim.simulate(sim.square_thread_start(n), policy=policy).passes for n in (100, 800))
    assert large > 8**1.8 * small

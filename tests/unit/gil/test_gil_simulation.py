"""The simulator: the published schedules to the switch, its records, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fairlead import gil
from fairlead.errors import SimulationError, UsageError
from fairlead.gil import simulation as sim

pytestmark = pytest.mark.ends


@pytest.mark.parametrize("policy", ["old", "stock"])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
def test_thread_starts_cost_the_published_number_of_switches(policy: sim.SimulatedPolicy, n: int) -> None:
    run = sim.simulate(sim.square_thread_start(n), policy=policy, cores=1, kernel=sim.IDEAL)
    assert run.switches == 2 * sum(range(1, n + 1)) + 1
    assert run.passes == run.switches


def test_passes_by_row_shows_the_triangle() -> None:
    run = sim.simulate(sim.square_thread_start(3), policy="stock", cores=1, kernel=sim.IDEAL, events=1000)
    holders = [thread for row in run.passes_by_row() for thread in row]
    assert holders == ["main", "T1", "main", "T1", "T2", "T1", "main", "T2", "T1", "T3", "T2", "T1", "main"]
    assert all(len(set(row)) == len(row) for row in run.passes_by_row())
    assert run.events_dropped == 0


def test_a_run_repeats_to_the_nanosecond_and_differs_by_seed() -> None:
    program = sim.echo(3, 1)
    first, again, other = (
        sim.simulate(program, seed=seed, until_seconds=0.05, events=2000) for seed in (1, 1, 2)
    )
    assert list(first.events) == list(again.events)
    assert list(first.events) != list(other.events)
    assert list(sim.replay(first.spec).events) == list(first.events)


def test_a_spec_is_replayed_from_the_command_line() -> None:
    run = sim.simulate(sim.cpu(2, 1_000_000), policy="stock")
    command = [sys.executable, "-m", "fairlead.gil.simulation", run.spec]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{run.passes} passes, {run.switches} switches" in done.stdout


def test_stock_cpu_threads_switch_once_an_interval() -> None:
    run = sim.simulate(sim.cpu(2, 100_000_000), policy="stock", interval_seconds=0.005)
    assert 36 <= run.forced_drops <= 40
    assert {t.name for t in run.threads} == {"cpu1", "cpu2"}
    assert all(t.held_seconds == pytest.approx(0.1, rel=0.01) for t in run.threads)


def test_stock_shows_the_convoy() -> None:
    run = sim.simulate(sim.echo(1, 1), policy="stock", until_seconds=1)
    assert run.groups["client1"].p50_seconds == pytest.approx(0.005, rel=0.1)


def test_old_gil_starves_the_waiter_on_two_cores() -> None:
    """The battle: whoever releases has the lock again before the one that was woken is there."""
    run = sim.simulate(sim.cpu(2, 50_000_000), policy="old", cores=2, interval_seconds=5e-6)
    assert run.wakeups > 10 * run.switches


def test_a_steps_log_shows_request_and_forced_switch() -> None:
    run = sim.simulate(sim.cpu(2, 10_000_000), policy="stock", events=1000)
    kinds = [event.kind for event in run.events]
    at = kinds.index("timeout")
    following = [kind for kind in kinds[at:] if kind not in ("on-core", "off-core", "park", "wake")]
    assert following[:6] == ["timeout", "ask", "wait", "forced-drop", "signal", "switch-wait"]
    assert "acquire" in following


def test_watchdog_falls_back_to_stock_while_threads_sleep_through_their_grants() -> None:
    run = sim.simulate(sim.cpu(20, 4_000_000_000), until_seconds=2, lost_wakes=40_000)
    assert run.watchdog_tripped
    assert run.held_share("cpu") > 0.5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((sim.Acquire("never"),), "wait for each other"),
        ((sim.Forever((sim.Add("c", 1),)),), "without using time"),
        ((sim.Start("a"),), "more threads than a group has"),
        ((sim.Release("nowhere"),), "no semaphore 'nowhere'"),
        ((sim.Repeat(0, ()),), "at least one round"),
        ((sim.Run(-5),), "out of range"),
        ((sim.Run(5, 2.0),), "jitter"),
        ((sim.Either(-1, ()),), "millionths are from 0 to 1,000,000"),
    ],
)
def test_programs_that_cannot_run_are_refused(body: tuple[sim.Operation, ...], message: str) -> None:
    groups = {"a": sim.Group(body=body)}
    with pytest.raises(UsageError, match=message):
        sim.simulate(sim.Program(groups=groups, counters={"c": 0}, semaphores={"never": 0}))


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            {"policy": "best"},
            {"cores": 0},
            {"cpu_share": 0.0},
            {"cpu_share": 1.0},
            {"constants": {"no_ns": 1}},
        ),
        *({"until_seconds": 0}, {"until_seconds": float("nan")}, {"interval_seconds": float("inf")}),
        {"seed": -1},
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        sim.simulate(sim.cpu(1), **arguments)  # type: ignore[arg-type]


def test_a_spec_that_is_none_is_refused() -> None:
    for spec in ("{", "{}", json.dumps({"program": 1, "kernel": {}})):
        with pytest.raises(UsageError):
            sim.replay(spec)


def test_a_broken_promise_names_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy known to us breaks one: the simulator is made to say so."""
    from fairlead.gil.simulation import run

    monkeypatch.setattr(run, "_STATUS", (*run._STATUS[:1], "stalled", *run._STATUS[2:]))
    with pytest.raises(SimulationError, match="repeat with: python -m fairlead"):
        sim.simulate(sim.cpu(2, 1_000_000))


def test_kernel_settings_and_policy_constants_have_different_names() -> None:
    assert not set(sim.policy_constants()) & set(sim.Kernel.__dataclass_fields__)


def test_simulate_is_offered_by_the_package() -> None:
    assert gil.simulate is sim.simulate
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gil.nonsense  # noqa: B018


def test_a_thread_that_returns_asks_early_where_stock_is_patched_so() -> None:
    slow, quick = (
        sim.simulate(sim.echo(1, 1), policy=policy, until_seconds=0.5).groups["client1"].p50_seconds
        for policy in ("stock", "early")
    )
    assert slow > 0.004 > 0.001 > quick


def test_a_queue_of_waiters_hands_the_gil_over_on_request_and_in_order() -> None:
    run = sim.simulate(sim.cpu(3, 50_000_000), policy="queued", events=10_000)
    assert run.direct_handovers == run.forced_drops > 20
    turns = [event.thread for event in run.events if event.kind == "acquire"]
    assert turns[3:18] == turns[:3] * 5


def test_threads_that_return_pass_computing_ones_which_keep_a_turn_in_each_interval() -> None:
    run = sim.simulate(sim.echo(16, 4), policy="patient", until_seconds=1)
    assert max(run.groups[f"client{i}"].p99_seconds for i in range(1, 17)) < 0.005
    turns = sum(thread.acquisitions for thread in run.threads if thread.name.startswith("cpu"))
    assert turns > 150


def test_priorities_shift_time_between_cpu_threads_and_starve_none() -> None:
    body = (sim.Forever((sim.Run(1_000_000),)),)
    groups = {
        "io": sim.Group(body=body, priority="io"),
        "normal": sim.Group(body=body, threads=2),
        "background": sim.Group(body=body, priority="background"),
    }
    run = sim.simulate(sim.Program(groups=groups, counters={}), until_seconds=5)
    held = {name: run.held_share(name) / group.threads for name, group in groups.items()}
    assert held["io"] > 2 * held["normal"] > 4 * held["background"] > 0.01


def test_a_lone_client_beside_cpu_threads_has_most_of_the_yardsticks_rate() -> None:
    """The yardstick: the same server beside a CPU-bound process."""
    alone = sim.simulate(sim.echo(1, cpu_processes=1), policy="stock", until_seconds=1).groups["client1"]
    for cpu_threads, longest in ((1, 200e-6), (2, 200e-6), (4, 1e-3)):
        beside = sim.simulate(sim.echo(1, cpu_threads), until_seconds=1).groups["client1"]
        assert beside.requests >= 0.6 * alone.requests
        assert beside.p99_seconds is not None
        assert beside.p99_seconds <= longest


def test_open_loop_goes_on_whether_or_not_the_server_keeps_up() -> None:
    run = sim.simulate(sim.open_server(load=2.0), policy="stock", until_seconds=2)
    arrived = 2 * 2.0 * sum(part / ns * 1e9 for ns, part in sim.MIXTURE.values())
    answered = sum(run.groups[kind].requests for kind in sim.MIXTURE)
    assert 0.2 * arrived < answered < 0.8 * arrived


def test_open_loop_meets_the_same_arrivals_under_every_policy() -> None:
    for load in (0.2, 0.5):
        answered = {
            policy: sum(run.groups[kind].requests for kind in sim.MIXTURE)
            for policy in ("stock", "interactive")
            if (run := sim.simulate(sim.open_server(load=load), policy=policy, until_seconds=2))
        }
        assert answered["stock"] == pytest.approx(answered["interactive"], rel=0.01)


def test_either_goes_each_way_as_often_as_it_says() -> None:
    often = (sim.Begin(), sim.Either(250_000, (sim.Run(1000), sim.End("often"))))
    groups = {"main": sim.Group(body=(sim.Repeat(2000, often),)), "often": sim.Group(body=(), daemon=True)}
    run = sim.simulate(sim.Program(groups=groups), until_seconds=5)
    assert run.groups["often"].requests == pytest.approx(500, abs=80)

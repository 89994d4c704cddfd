"""What the numbers mean: findings with evidence, and advice that a user can follow.

Everything here works on counters alone, so that it judges a live observation and a recording alike; blame
and stacks make the findings name more. The thresholds, and why they are where they are:

* The yardstick of time is the switch interval I, not the second: it is what a waiter must sit out before
  it may even ask. So a program that runs ten times longer, or on a slower machine, gets the same findings.
* convoy: David Beazley's (https://www.dabeaz.com/python/UnderstandingGIL.pdf): a thread that holds the GIL
  for a tenth of I or less at a time, and for which a quarter of its contended waits take about I or
  longer. Both are far from healthy threads: without a computing neighbour, waits are as long as the
  neighbours' short holds. Where it is known which thread held the GIL meanwhile, those that compute must have
  a fifth of it: else the waits are another thread's long holds. So are they where a thread goes on after
  requests for a tenth of its holds, and for as long as the requests took to come.
* lock-square: eight threads or more, all with short holds, where one wait lasts as long as a quarter of
  all threads' holds or more, and the threads had very unequal numbers of turns. The last is what tells it
  from a busy pool, whose threads have about equally many: in the square the k-th of n to get through has n
  - k turns. Where it is known which thread held the GIL meanwhile, half of it must be these threads
  themselves: else they wait behind something else.
* switch-storm: 5,000 contended acquisitions a second or more, with holds under a fiftieth of I. Each is a
  sleep and a wake-up in the kernel, some microseconds of work: the storm costs per cents of a core at the
  least.
* long-hold, starvation and no-core: see thread_findings.py.
* saturation: the GIL was held for four fifths of the time, and threads waited for a tenth of it or more.
* not-the-gil: none of the above. Under a fiftieth of the time waited nothing but long-hold and starvation
  is said, which matter for latency even when they are rare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fairlead.gil.analysis.scene import (
    WORTH_A_WORD,
    Scene,
    behind_any,
    blamed,
    duration,
    hold_of,
    lets_go,
    listed,
    long_waits,
    names_of,
    percent,
    sane,
    verb,
)
from fairlead.gil.analysis.thread_findings import holders_without_core, long_holds, no_core, starvation
from fairlead.record.gil_summary import Blame, Finding, GilThread, StackLoss

CONVOY_HOLD = 0.1
CONVOY_SHARE = 0.25
CONVOY_TURNS = 10
CONVOY_CULPRIT = 0.1
CONVOY_CAUSED = 0.2
SQUARE_THREADS = 8
SQUARE_CAUSED = 0.5
SQUARE_HOLD = 0.2
SQUARE_PASS = 0.25
SQUARE_SPREAD = 4.0
STORM_PER_SECOND = 5_000.0
STORM_HOLD = 0.02
SATURATED_HELD = 0.8
SATURATED_WAITED = 0.1


def find(
    threads: Iterable[GilThread],
    *,
    wall_seconds: float,
    switch_interval: float,
    blame: Iterable[Blame] = (),
    stacks: Iterable[StackLoss] = (),
    policy: str = "stock",
) -> tuple[Finding, ...]:
    """Say what the counters of an observation mean, dearest first.

    Args:
        threads: one record for each thread and GIL; GILs are judged each on its own.
        wall_seconds: how long the observation lasted.
        switch_interval: ``sys.getswitchinterval()`` of the program, seconds.
        blame: which thread held the GIL while which waited, where that is known.
        stacks: what holders were doing, where that is known.
        policy: by which the GIL was scheduled: advice that was taken already is not given.

    Returns:
        At least one finding when any thread took a GIL or waited for one, none otherwise. Never raises for
        counters that cannot be.
    """
    used = [
        replace(t, name=" ".join(t.name.split()))  # a title is one line, whatever a thread is called
        for t in threads  # one that has waited, or held, all the time has had no turn
        if (t.acquisitions > 0 or t.waited_seconds > 0 or t.held_seconds > 0)
        and sane(t.held_seconds)
        and sane(t.waited_seconds)
    ]
    if not used or not sane(wall_seconds) or not sane(switch_interval) or not wall_seconds * switch_interval:
        return ()
    blame, stacks = list(blame), list(stacks)
    found: list[Finding] = []
    for gil in sorted({thread.gil for thread in used}):
        scene = Scene(
            threads=[thread for thread in used if thread.gil == gil],
            wall=wall_seconds,
            interval=switch_interval,
            blame=[cell for cell in blame if cell.gil == gil],
            stacks=[loss for loss in stacks if loss.gil == gil],
            policy=policy,
        )
        found += _of_one_gil(scene)
    if not found:
        found.append(_not_the_gil(used, wall_seconds))
    return tuple(sorted(found, key=lambda finding: -finding.cost_seconds))


def _of_one_gil(scene: Scene) -> list[Finding]:
    found = [*long_holds(scene), *starvation(scene), *no_core(scene), *holders_without_core(scene)]
    if scene.waited >= WORTH_A_WORD * scene.wall:
        square = _lock_square(scene)
        found += [*_convoy(scene), *(square or _switch_storm(scene))]
        crowded = scene.held >= SATURATED_HELD * scene.wall and scene.waited >= SATURATED_WAITED * scene.wall
        if crowded and (not found or len(scene.computing()) > 1):
            found.append(_saturation(scene))
    return found


def _convoy(scene: Scene) -> list[Finding]:
    computing = [t for t in scene.computing() if lets_go(t, scene.interval)]
    victims = [
        thread
        for thread in scene.threads
        if thread.contended > 0
        and thread.acquisitions >= CONVOY_TURNS
        and hold_of(thread) <= CONVOY_HOLD * scene.interval
        and long_waits(thread, scene.interval) >= CONVOY_SHARE * thread.contended
    ]
    cost = sum(thread.waited_seconds for thread in victims)
    if not computing or not victims or cost < WORTH_A_WORD * scene.wall:
        return []
    victims.sort(key=lambda thread: -thread.waited_seconds)
    computing = _culprits(scene, victims, computing, cost)
    waits = sum(thread.contended for thread in victims)
    holds = sum(thread.acquisitions for thread in victims)
    mean_wait = cost / waits
    mean_hold = sum(thread.held_seconds for thread in victims) / holds
    evidence: dict[str, float | int | str] = {
        "waits": waits,
        "mean_wait_ms": mean_wait * 1e3,
        "mean_hold_us": mean_hold * 1e6,
        "switch_interval_ms": scene.interval * 1e3,
        "waited_seconds": cost,
        "share_of_their_time_waiting": cost / (len(victims) * scene.wall),
    }
    caused = blamed(scene, victims, computing)
    if caused is not None and caused < CONVOY_CAUSED * behind_any(scene, victims):
        return []
    if caused is not None:
        evidence["share_of_it_behind_computing_threads"] = caused / cost
    return [
        Finding(
            kind="convoy",
            title=(
                f"{listed(victims)} {verb('wait', victims)} {duration(mean_wait)} a turn:"
                f" {listed(computing)} {verb('compute', computing)}"
            ),
            threads=names_of([*computing, *victims]),
            summary=(
                f"{listed(victims)} {verb('need', victims)} the GIL for {duration(mean_hold)} at a time, and"
                f" {verb('wait', victims)} {duration(mean_wait)} for it because {listed(computing)}"
                f" {verb('compute', computing)}: a thread that blocks pays a switch interval to get back."
            ),
            evidence=evidence,
            advice=(
                (
                    f"The GIL is scheduled already ({scene.policy}), and computing threads have their share;"
                    if scene.scheduled
                    else "Run it under fairlead run -- COMMAND, which lets threads that come back from a wait"
                    " go first. That leaves one GIL for all:"
                )
                + f" where the computing is what counts, move that of {listed(computing)} out of it (a"
                " process pool, an interpreter of its own), or into C code that frees it."
            ),
            cost_seconds=cost,
        )
    ]


def _culprits(
    scene: Scene, victims: list[GilThread], computing: list[GilThread], cost: float
) -> list[GilThread]:
    """Those that compute, and all others that were waited behind: the tasks of a pool are long and short."""
    behind: defaultdict[int, float] = defaultdict(float)
    waiting = {thread.serial for thread in victims}
    for cell in scene.blame:
        if cell.waiter in waiting and cell.holder not in waiting:
            behind[cell.holder] += cell.seconds
    others = [
        thread
        for thread in scene.threads
        if thread not in computing
        and behind[thread.serial] >= CONVOY_CULPRIT * cost
        and lets_go(thread, scene.interval)
    ]
    return sorted([*computing, *others], key=lambda thread: -behind[thread.serial])


def _contending(scene: Scene, longest: float) -> list[GilThread]:
    """Those that have had to wait for turns, whose holds are at most so many switch intervals on average."""
    return [
        thread
        for thread in scene.threads
        if min(thread.contended, thread.acquisitions) > 0 and hold_of(thread) <= longest * scene.interval
    ]


def _lock_square(scene: Scene) -> list[Finding]:
    crowd = _contending(scene, SQUARE_HOLD)
    n = len(crowd)
    turns = sum(thread.acquisitions for thread in crowd)
    held = sum(thread.held_seconds for thread in crowd)
    waited = sum(thread.waited_seconds for thread in crowd)
    if n < SQUARE_THREADS or held <= 0 or turns < n * n / 8 or waited < WORTH_A_WORD * scene.wall:
        return []
    passes = waited / sum(thread.contended for thread in crowd) / (held / turns)
    by_turns = sorted(thread.acquisitions for thread in crowd)
    spread = by_turns[n * 9 // 10] / by_turns[n // 10]
    if passes < SQUARE_PASS * n or spread < SQUARE_SPREAD:
        return []
    caused = blamed(scene, crowd, crowd)
    if caused is not None and caused < SQUARE_CAUSED * behind_any(scene, crowd):
        return []
    return [
        Finding(
            kind="lock-square",
            title=f"{n} threads pass {passes:.0f} holds of others per wait: time grows with their square",
            threads=names_of(sorted(crowd, key=lambda thread: -thread.acquisitions)),
            summary=(
                f"{n} threads got through one after another, and each wait lasted {passes:.0f} holds of"
                " others: those already"
                " through kept taking turns, so that the whole takes time in proportion to the square of"
                " the number of threads."
            ),
            evidence={
                "threads": n,
                "holds_passed_per_wait": passes,
                "turns": turns,
                "turns_of_most_over_fewest": spread,
                "waited_seconds": waited,
            },
            advice=(
                (
                    ""
                    if scene.scheduled
                    else "Run it under fairlead run -- COMMAND, where waiting threads go first. "
                )
                + "In the program itself: let threads that are through block (on an event, a condition, a"
                " queue) until all are, instead of looking again and again with sleep(0) or a spin; start or"
                " wake them in small groups; or use fewer threads."
            ),
            cost_seconds=waited,
        )
    ]


def _switch_storm(scene: Scene) -> list[Finding]:
    busy = _contending(scene, STORM_HOLD)
    contended = sum(thread.contended for thread in busy)
    waited = sum(thread.waited_seconds for thread in busy)
    if len(busy) < 2 or contended < STORM_PER_SECOND * scene.wall or waited < WORTH_A_WORD * scene.wall:
        return []
    mean_hold = sum(t.held_seconds for t in busy) / sum(t.acquisitions for t in busy)
    evidence: dict[str, float | int | str] = {
        "contended_per_second": contended / scene.wall,
        "mean_hold_us": mean_hold * 1e6,
        "mean_wait_us": waited / contended * 1e6,
        "waited_seconds": waited,
    }
    if scene.blame:
        evidence["waited_while_nobody_held_it_seconds"] = sum(
            cell.seconds for cell in scene.blame if cell.holder == 0
        )
    return [
        Finding(
            kind="switch-storm",
            title=f"the GIL changes hands {contended / scene.wall:,.0f} times a second",
            threads=names_of(sorted(busy, key=lambda thread: -thread.contended)),
            summary=(
                f"The GIL changed hands {contended / scene.wall:,.0f} times a second with a thread"
                f" waiting, for {duration(mean_hold)} of work"
                " each: much of the time goes into putting threads to sleep and waking them."
            ),
            evidence=evidence,
            advice=(
                "Do more per turn: send and receive in larger pieces, put several items into a queue at"
                " once, use fewer threads,"
                " or let an event loop do the waiting for all of them."
            ),
            cost_seconds=waited,
        )
    ]


def _saturation(scene: Scene) -> Finding:
    computing = scene.computing()
    held = f"{percent(scene.held / scene.wall)} of the time"
    waited = f"threads waited {duration(scene.waited)} for it"
    busy = f"{listed(computing)} {verb('compute', computing)}" if computing else "no thread computes for long"
    return Finding(
        kind="saturation",
        title=f"the GIL is held {held}, and {waited}: {busy}",
        threads=names_of(computing or sorted(scene.threads, key=lambda thread: -thread.held_seconds)),
        summary=f"The GIL was held for {held}, and {waited}: {busy}, and one GIL can give no more.",
        evidence={
            "held_share": scene.held / scene.wall,
            "waited_seconds": scene.waited,
            "threads_waiting_on_average": scene.waited / scene.wall,
            "threads_that_compute": len(scene.computing()),
        },
        advice=(
            "Spread the computing over processes, interpreters with a GIL of their own, or a"
            " free-threaded build; more threads on this GIL"
            " make it no faster."
        ),
        cost_seconds=scene.waited - scene.waited_for_holders_core,
    )


def _not_the_gil(threads: Sequence[GilThread], wall: float) -> Finding:
    waited = sum(thread.waited_seconds for thread in threads)
    held = sum(thread.held_seconds for thread in threads)
    busiest = max(threads, key=lambda thread: thread.held_seconds)
    if busiest.held_seconds >= SATURATED_HELD * wall:
        advice = (
            f"{busiest.name} computes for most of the time by itself: profile what it does. Only splitting"
            " its work over processes or interpreters could use more cores."
        )
    else:
        advice = (
            "Look elsewhere: at I/O, at the program's own locks, at C code that runs without the GIL. Of"
            " fairlead.sync's locks and queues dump_waits() says which thread waits for what, and which one"
            " holds it."
        )
    return Finding(
        kind="not-the-gil",
        title=f"the GIL is not what costs the time: threads waited {duration(waited)} in {duration(wall)}",
        threads=(),
        summary=(
            "Waiting for the GIL is not what costs the time: all threads together waited"
            f" {duration(waited)} in {duration(wall)},"
            f" and it was held for {percent(held / wall)} of that."
        ),
        evidence={"waited_seconds": waited, "waited_share": waited / wall, "held_share": held / wall},
        advice=advice,
        cost_seconds=waited,
    )

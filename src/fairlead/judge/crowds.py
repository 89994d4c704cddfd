"""Causes that lie in many threads together: they compute, or take short turns, behind one another. As in
``holders``, each function looks at one GIL for one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fairlead.judge.evidence import WORTH_A_WORD, Gil, hold_of, waits_of
from fairlead.judge.words import duration, line_of, listed, names_of, percent, verb
from fairlead.record import places
from fairlead.record.gil_summary import Finding

SQUARE_THREADS = 8
SQUARE_PASS = 0.25
SQUARE_MOST = 10.0
SQUARE_SPREAD = 4.0
SQUARE_HOLDERS = 4.0
STORM_PER_SECOND = 5_000.0
STORM_HOLD = 0.02
SATURATED_HELD = 0.8
SATURATED_WAITED = 0.1
STARVED = 20.0
STARVED_PER_RIVAL = 4.0
STARVED_OVER_PEERS = 4.0


def saturation(gil: Gil) -> Iterator[Finding]:
    """More threads compute than one GIL can carry."""
    computing = gil.computing()
    cost = sum(
        cell.seconds - cell.late_seconds
        for cell in gil.cells
        if cell.holder and cell.waiter in {thread.serial for thread in computing}
    )
    if len(computing) < 2 or gil.held < SATURATED_HELD * gil.wall or cost < SATURATED_WAITED * gil.wall:
        return
    names = list(names_of(computing))
    frames = gil.done_meanwhile(computing)
    where = places.said(frames)
    held = percent(min(1.0, gil.held / gil.wall))
    yield Finding(
        kind="saturation",
        title=f"{len(computing)} threads compute{where}, and share one GIL, held {held} of the time",
        threads=tuple(names),
        summary=(
            f"{listed(names)} {verb('compute', names)}{where}. They waited {duration(cost)} for each other:"
            " one GIL can give no more."
        ),
        evidence={
            "held_share": gil.held / gil.wall,
            "waited_seconds": cost,
            "threads_waiting_on_average": cost / gil.wall,
            "threads_that_compute": len(computing),
            **line_of(places.own(frames)),
        },
        advice=(
            "Spread the computing over processes, interpreters with a GIL of their own, or a free-threaded"
            " build; more threads on this GIL make it no faster."
        ),
        cost_seconds=cost,
        waiters=waits_of(computing),
    )


def crowd(gil: Gil) -> Iterator[Finding]:
    """Many threads take short turns: behind one another, so that time grows with the square of their number,
    or so often that passing the GIL on is what the time goes into."""
    yield from next(filter(None, (list(_lock_square(gil)), list(_switch_storm(gil)))), ())


def _lock_square(gil: Gil) -> Iterator[Finding]:
    threads = [thread for thread in gil.threads if min(thread.contended, thread.acquisitions) > 0]
    threads = [thread for thread in threads if not gil.computes(thread)]
    serials = {thread.serial for thread in threads}
    n = min(len(threads), gil.evidence.threads_at_once or len(threads))
    turns = sum(thread.acquisitions for thread in threads)
    held = sum(thread.held_seconds for thread in threads)
    behind: defaultdict[int, float] = defaultdict(float)
    for cell in gil.cells:
        if cell.waiter in serials and cell.holder:
            behind[cell.holder] += cell.seconds - cell.late_seconds
    waited = sum(seconds for holder, seconds in behind.items() if holder in serials)
    contended = sum(thread.contended for thread in threads)
    if n < SQUARE_THREADS or held <= 0 or turns < n * n / 8 or waited < WORTH_A_WORD * gil.wall:
        return
    passes = waited / contended / (held / turns)
    by_turns = sorted(thread.acquisitions for thread in threads)
    spread = by_turns[len(threads) * 9 // 10] / by_turns[len(threads) // 10]
    whole = sum(behind.values())
    holders = whole**2 / sum(seconds**2 for seconds in behind.values())
    if (
        not SQUARE_PASS * n <= passes <= SQUARE_MOST * n
        or spread < SQUARE_SPREAD
        or holders < SQUARE_HOLDERS
        or waited < whole / 2
    ):
        return
    frames = gil.doing(threads)
    yield Finding(
        kind="lock-square",
        title=(
            f"{n} threads pass {passes:.0f} holds of others per wait{places.said(frames)}: time grows with"
            " their square"
        ),
        threads=names_of(sorted(threads, key=lambda thread: -thread.acquisitions)),
        summary=(
            f"{n} threads got through one after another{places.said(frames)}, and each wait lasted"
            f" {passes:.0f} holds of others: those already through kept taking turns, so that the whole takes"
            " time in proportion to the square of the number of threads."
        ),
        evidence={
            "threads": n,
            "holds_passed_per_wait": passes,
            "turns": turns,
            "turns_of_most_over_fewest": spread,
            "waited_behind_so_many_threads": holders,
            "waited_seconds": waited,
            **line_of(places.own(frames)),
        },
        advice=(
            ("" if gil.evidence.scheduled else f"{gil.schedule}, where waiting threads go first. ")
            + "In the program itself: let threads that are through block (on an event, a condition, a queue)"
            " until all are, instead of looking again and again with sleep(0) or a spin; start or wake them"
            " in small groups; or use fewer threads."
        ),
        cost_seconds=waited,
        waiters=waits_of(threads),
    )


def _switch_storm(gil: Gil) -> Iterator[Finding]:
    busy = [
        thread
        for thread in gil.threads
        if min(thread.contended, thread.acquisitions) > 0 and hold_of(thread) <= STORM_HOLD * gil.interval
    ]
    contended = sum(thread.contended for thread in busy)
    waited = sum(thread.waited_seconds - gil.asked(thread) for thread in busy)
    if len(busy) < 2 or contended < STORM_PER_SECOND * gil.wall or waited < WORTH_A_WORD * gil.wall:
        return
    mean_hold = sum(t.held_seconds for t in busy) / sum(t.acquisitions for t in busy)
    frames = gil.doing(busy)
    often = f"{contended / gil.wall:,.0f} times a second"
    yield Finding(
        kind="switch-storm",
        title=f"The GIL changes hands {often}{places.said(frames)}",
        threads=names_of(sorted(busy, key=lambda thread: -thread.contended)),
        summary=(
            f"The GIL changed hands {often} with a thread waiting{places.said(frames)}, for"
            f" {duration(mean_hold)} of work each: much of the time goes into putting threads to sleep and"
            " waking them."
        ),
        evidence={
            "contended_per_second": contended / gil.wall,
            "mean_hold_us": mean_hold * 1e6,
            "mean_wait_us": waited / contended * 1e6,
            "waited_seconds": waited,
            "waited_while_nobody_held_it_seconds": sum(c.seconds for c in gil.cells if c.holder == 0),
            **line_of(places.own(frames)),
        },
        advice=(
            "Do more per turn: send and receive in larger pieces, put several items into a queue at once, use"
            " fewer threads, or let an event loop do the waiting for all of them."
        ),
        cost_seconds=waited,
        waiters=waits_of(busy),
    )


def starvation(gil: Gil) -> Iterator[Finding]:
    """One thread waited far longer than its peers, and not behind one hold, nor for a core."""
    rivals = [t for t in gil.threads if t.held_seconds + t.waited_seconds >= 0.05 * gil.wall]
    enough = max(STARVED, STARVED_PER_RIVAL * len(rivals)) * gil.interval
    # which of its waits were for a core is not known: all of that may have been in the longest
    longest = {t.serial: min(t.max_wait_seconds, t.waited_seconds - gil.lost(t)) for t in gil.threads}
    if max(longest.values(), default=0.0) < enough:
        return
    waits = sorted(t.max_wait_seconds for t in gil.threads if t.contended)
    holds = sorted((max(t.max_held_seconds, t.max_overrun_seconds or 0.0), t.serial) for t in gil.threads)[
        -2:
    ]
    for thread in gil.threads:
        mine = longest[thread.serial]
        at = len(waits) // 2 - (thread.contended > 0 and thread.max_wait_seconds <= waits[len(waits) // 2])
        usual = waits[max(0, at)] if len(waits) > 1 else 0.0
        longest_hold = max((held for held, serial in holds if serial != thread.serial), default=0.0)
        if mine < enough or mine < STARVED_OVER_PEERS * usual or longest_hold >= mine / 2:
            continue
        others = names_of(sorted((t for t in rivals if t is not thread), key=lambda t: -t.held_seconds))
        remedy = (
            f"The GIL is scheduled already ({gil.evidence.policy}): please report this recording. Now use"
            if gil.evidence.scheduled
            else f"{gil.schedule}, where every thread has its turn in bounded time. Or use"
        )
        yield Finding(
            kind="starvation",
            title=f"{thread.name} once waited {duration(mine)} for its turn",
            threads=(thread.name, *others),
            summary=(
                f"{thread.name} once waited {duration(mine)} for the GIL, while its peers' longest waits were"
                f" about {duration(usual)}: nothing in the interpreter bounds a wait."
            ),
            evidence={
                "longest_wait_ms": mine * 1e3,
                "peers_longest_wait_ms": usual * 1e3,
                "mean_wait_ms": thread.waited_seconds / max(1, thread.contended) * 1e3,
                "competing_threads": len(rivals),
            },
            advice=(
                f"{remedy} fewer threads that compute at a time (a pool of one or two), or give this thread's"
                " work a process of its own; where a deadline hangs on it, do not let it share a GIL with"
                " computing threads."
            ),
            cost_seconds=mine,
            waiters=((thread.name, mine),),
        )

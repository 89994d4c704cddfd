"""Findings about one thread at a time: it kept the GIL, or waited for it or for a core, for too long.

The thresholds, in switch intervals I, as findings.py explains:

* long-hold: the holder went on for 4 I or longer after it was asked to let go. Python code answers within
  microseconds, so this is one call into C, which computes or sleeps. Or a core that was taken away: where
  that was measured, what is left of such holds without it must still be 4 I in all. Shorter calls count where
  they are the rule: the thread goes on for I or longer after each request, for a tenth of its holds and for
  a fiftieth of the time.
* starvation: one wait of 20 I or longer, and of at least 4 I for each thread that competes, four times as
  long as the longest waits of its peers, and not simply one long hold. What the thread waited while the GIL
  was free does not count: then it waited for a core.
* no-core: a wait of 4 I or longer, by a thread that waited at least half of its time with the GIL free: an
  awake thread takes a free GIL within microseconds. Or holders that had no core for half of the time for
  which they held it, and others that waited for a tenth of the time because of that.
"""

from __future__ import annotations

from pathlib import PurePath

from fairlead.gil.analysis.scene import (
    WORTH_A_WORD,
    Scene,
    duration,
    lets_go,
    listed,
    names_of,
    overrun_of,
    preempted_seconds,
    used_seconds,
)
from fairlead.record.gil_summary import Finding

LONG_HOLD = 4.0
STARVED = 20.0
STARVED_PER_RIVAL = 4.0
STARVED_OVER_PEERS = 4.0
HELD_WITHOUT_CORE = 0.5
WAITED_FOR_CORES = 0.1
MORE_CORES = (
    "This is the machine, not the GIL: give the process more of it (cores, a CPU quota, a nice value), or let"
    " less run beside it."
)


def long_holds(scene: Scene) -> list[Finding]:
    found = []
    for thread in scene.threads:
        longest, total = thread.max_overrun_seconds, thread.overrun_seconds
        if longest is None or total is None:
            continue
        late, least = overrun_of(thread), LONG_HOLD * scene.interval
        as_a_rule = late >= WORTH_A_WORD * scene.wall and not lets_go(thread, scene.interval)
        if min(longest, late) < least and not as_a_rule:
            continue
        asleep = thread.held_asleep_seconds or 0.0
        evidence: dict[str, float | int | str] = {
            "longest_after_request_ms": longest * 1e3,
            "after_requests_seconds": total,
            "longest_hold_ms": thread.max_held_seconds * 1e3,
            "switch_interval_ms": scene.interval * 1e3,
        }
        if asleep:
            evidence["asleep_in_holds_seconds"] = asleep
        own = [loss for loss in scene.stacks if loss.holder == thread.serial and loss.holder_frames]
        where = briefly = ""
        if own:
            worst = max(own, key=lambda loss: loss.max_seconds)
            function, file, line = worst.holder_frames[0]
            evidence |= {"function": function, "file": file, "line": line}
            where = f" in {function} ({file}:{line})"
            briefly = f" in {function} ({PurePath(file).name}:{line})"
            if len(worst.holder_frames) > 1:
                # the innermost frame is often a library's
                caller, file, line = worst.holder_frames[1]
                evidence["called_from"] = f"{caller} ({file}:{line})"
                where += f", called from {caller}"
                briefly += f" < {caller}"
        found.append(
            Finding(
                kind="long-hold",
                title=f"{thread.name} keeps the GIL for {duration(longest)}{briefly}",
                threads=(thread.name,),
                summary=(
                    f"{thread.name} kept the GIL for up to {duration(longest)} after it was asked to let"
                    f" go{where}:"
                    f" a call into C code that {'sleeps and ' if asleep >= total / 2 else ''}does not"
                    " free it."
                ),
                evidence=evidence,
                advice=(
                    f"Look at the call{where or ' (record with a threshold to have it named)'}: work on"
                    " smaller pieces, use a function that"
                    " frees the GIL, or call it in another process."
                ),
                cost_seconds=total,
            )
        )
    return found


def starvation(scene: Scene) -> list[Finding]:
    rivals = [t for t in scene.threads if t.held_seconds + t.waited_seconds >= 0.05 * scene.wall]
    found = []
    for thread in scene.threads:
        peers = [t for t in scene.threads if t is not thread and t.contended > 0]
        # the statistics module would bring decimal, which 3.12 cannot load into several interpreters
        usual = sorted(peer.max_wait_seconds for peer in peers)[len(peers) // 2] if peers else 0.0
        enough = max(STARVED * scene.interval, STARVED_PER_RIVAL * len(rivals) * scene.interval)
        # a hold that goes on is not among the held ones, but its overrun is counted
        holds = (
            max(t.max_held_seconds, t.max_overrun_seconds or 0.0) for t in scene.threads if t is not thread
        )
        longest_hold = max(holds, default=0.0)
        # which of its waits were for a core is not known: all of that may have been in the longest
        longest = min(thread.max_wait_seconds, thread.waited_seconds - scene.waited_for_core(thread))
        if longest < enough or longest < STARVED_OVER_PEERS * usual or longest_hold >= longest / 2:
            continue
        others = names_of(sorted((t for t in rivals if t is not thread), key=lambda t: -t.held_seconds))
        remedy = (
            f"The GIL is scheduled already ({scene.policy}): please report this recording. Meanwhile use"
            if scene.scheduled
            else "Run it under fairlead run -- COMMAND, where every thread has its turn in bounded time. Or"
            " use"
        )
        found.append(
            Finding(
                kind="starvation",
                title=f"{thread.name} once waited {duration(longest)} for its turn",
                threads=(thread.name, *others),
                summary=(
                    f"{thread.name} once waited {duration(longest)} for the GIL, while its peers' longest"
                    f" waits were about {duration(usual)}: nothing in the interpreter bounds a wait."
                ),
                evidence={
                    "longest_wait_ms": longest * 1e3,
                    "peers_longest_wait_ms": usual * 1e3,
                    "mean_wait_ms": thread.waited_seconds / max(1, thread.contended) * 1e3,
                    "competing_threads": len(rivals),
                },
                advice=(
                    f"{remedy} fewer threads that compute at a time (a pool of one or two), or give this"
                    " thread's work a process of its own; where a deadline hangs on it, do not let it share"
                    " a GIL with computing threads."
                ),
                cost_seconds=longest,
            )
        )
    return found


def no_core(scene: Scene) -> list[Finding]:
    victims = [
        thread
        for thread in scene.threads
        if thread.max_wait_seconds >= LONG_HOLD * scene.interval
        and scene.waited_for_core(thread) >= thread.waited_seconds / 2
    ]
    if not victims:
        return []
    victims.sort(key=lambda thread: -scene.waited_for_core(thread))
    cost = sum(map(scene.waited_for_core, victims))
    waited = sum(thread.waited_seconds for thread in victims)
    return [
        Finding(
            kind="no-core",
            title=f"{listed(victims)} waited {duration(cost)} for a core, with the GIL free",
            threads=names_of(victims),
            summary=(
                f"{listed(victims)} waited for a core for {duration(cost)} of the {duration(waited)} that"
                " they waited for the GIL: it was free, and they could not run to take it."
            ),
            evidence={
                "waited_for_a_core_seconds": cost,
                "waited_seconds": waited,
                "longest_wait_ms": max(thread.max_wait_seconds for thread in victims) * 1e3,
            },
            advice=MORE_CORES,
            cost_seconds=cost,
        )
    ]


def holders_without_core(scene: Scene) -> list[Finding]:
    cost = scene.waited_for_holders_core
    if scene.without_core < HELD_WITHOUT_CORE * scene.held or cost < WAITED_FOR_CORES * scene.wall:
        return []
    holders = [t for t in scene.threads if preempted_seconds(t) >= HELD_WITHOUT_CORE * used_seconds(t) > 0]
    holders.sort(key=lambda thread: -preempted_seconds(thread))
    lost = f"{duration(scene.without_core)} of the {duration(scene.held)}"
    return [
        Finding(
            kind="no-core",
            title=f"{listed(holders)} had no core for {lost} that the GIL was held",
            threads=names_of(holders),
            summary=(
                f"For {lost} that the GIL was held its holder, mostly {listed(holders)}, had no core to run"
                f" on, or was stopped. No thread made progress then: others waited {duration(cost)} for that."
            ),
            evidence={
                "held_without_core_seconds": scene.without_core,
                "held_seconds": scene.held,
                "waited_seconds": scene.waited,
            },
            advice=MORE_CORES,
            cost_seconds=cost,
        )
    ]

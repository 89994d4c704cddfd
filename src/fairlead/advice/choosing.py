"""The choice among candidates, by rules that are stated, and the reasons in plain words.

1. Only ways whose results are those of calls in turn.
2. The fastest: the highest speed-up over calls in turn, which is of the rounds that both ran in: the machine
   may have been slower in the others.
3. A way that is expected to lose at most ``AFFORDABLE`` against the fastest is as fast (``loss``), and among
   these the one that costs least is taken: of kinds, no pool before threads and loops, these before
   interpreters, and those before processes; of one kind, the fewest workers. So noise never makes a slow
   way as good as a fast one: the less is known, the more may be lost.
4. A pool that gains less than ``WORTH`` is not worth having.

Another interpreter is never the choice, because changing it is another decision: it is a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.advice.candidates import KINDS
from fairlead.advice.loss import error, expected_loss
from fairlead.measure.ratio import FEWEST_ROUNDS
from fairlead.pools.choose import rules
from fairlead.record.advice import NAMES, Candidate, Kind, Pick, Work, in_workers

_VERBS = {"refused": "were not tried", "failed": "failed", "wrong": "came to other results"}

AFFORDABLE = 0.05
"""The expected loss that a cheaper way may have."""
UNKNOWN = 0.1
"""The standard error that a choice is made with where too few rounds tell it."""
NEAR = 1.15
"""A way that takes up to this many times as long as the choice is near it, in a sentence."""
WORTH = 1.15
"""The least speed-up that is worth a pool."""
FAR = 1e9
"""Calls that no program makes."""
CHEAPER = 1.2
"""Processor time of a call without a pool over that in one: from here on it is worth a word."""


def choose(
    candidates: Sequence[Candidate], work: Work, requests: int, cores: int, memory_mib: int | None = None
) -> Pick:
    """The choice, with reasons. Of pools that take more memory than ``memory_mib`` none is chosen."""
    sequential = candidates[0]
    known = [one for one in candidates if _usable(one)]
    too_large = [one for one in known[1:] if _beyond(one, memory_mib)]
    here = [one for one in known if one not in too_large]
    fastest = max(here, key=_speedup)
    if _speedup(fastest) < WORTH:
        fastest = sequential
    equal = [
        one
        for one in here
        if one is fastest or (_speedup(one) >= WORTH and _loss(one, fastest, sequential) <= AFFORDABLE)
    ]
    best = min(equal, key=lambda one: (KINDS.index(one.kind), one.workers))
    pays = _paying(best, sequential, here, work)
    return Pick(
        kind=best.kind,
        workers=best.workers,
        speedup=best.speedup,
        low=best.low,
        high=best.high,
        break_even=None if pays is None else pays[1],
        loss=_expected(best, here, sequential),
        reasons=(
            *_reasons(best, [one for one in candidates if one not in too_large], work, requests, cores, pays),
            *_memory(memory_mib, too_large, best),
        ),
    )


def _usable(one: Candidate) -> bool:
    return one.status == "measured" and one.total_s is not None and one.kind != "free-threaded"


def _beyond(one: Candidate, memory_mib: int | None) -> bool:
    return memory_mib is not None and one.memory_kib is not None and one.memory_kib > memory_mib * 1024


def _memory(memory_mib: int | None, too_large: Sequence[Candidate], best: Candidate) -> list[str]:
    """What the bound on memory costs, if anything."""
    fastest = max(too_large, key=_speedup, default=None)
    if fastest is None or _speedup(fastest) <= _speedup(best):
        return []
    assert fastest.memory_kib is not None
    return [
        f"{_plural(fastest.kind)} with {in_workers(fastest.workers)} give {times(_speedup(fastest))}, "
        f"and take {fastest.memory_kib / 1024:.0f} MiB of the {memory_mib} MiB allowed"
    ]


def _loss(one: Candidate, other: Candidate, sequential: Candidate) -> float:
    """What taking ``one`` is expected to cost where ``other`` could be taken."""
    off = error(dict(one.rounds), dict(other.rounds), dict(sequential.rounds))
    return expected_loss(_speedup(other) / _speedup(one), UNKNOWN if off is None else off)


def _expected(best: Candidate, here: Sequence[Candidate], sequential: Candidate) -> float | None:
    """What the choice is expected to cost; None where one or two rounds do not tell."""
    others = [one for one in here if one is not best]
    if others and min(len(best.rounds), len(sequential.rounds)) < FEWEST_ROUNDS:
        return None
    return max((_loss(best, one, sequential) for one in others), default=0.0)


def _worth_from(one: Candidate, sequential: Candidate, gil: float) -> float:
    """From how many calls on a pool gains ``WORTH``; ``FAR``: however many there are, it does not.

    Args:
        gil: the share of a call below which threads cannot get.
    """
    (once, call), (once_alone, call_alone) = one.parts, sequential.parts
    if one.kind == "threads":
        call = max(call, gil * call_alone)
    gained = call_alone - WORTH * call
    calls = (WORTH * once - once_alone) / gained if gained > 0 else FAR
    return min(max(calls, 1.0), FAR)


def _paying(
    best: Candidate, sequential: Candidate, here: Sequence[Candidate], work: Work
) -> tuple[Candidate, float] | None:
    """The pool that is worth having, and from how many calls on: the choice, or that of the fewest calls."""
    none = best is sequential
    gil = work.gil if none and work.gil_from != "none" else 0.0
    pools = [one for one in here if one is not sequential] if none else [best]
    found = [(one, _worth_from(one, sequential, gil)) for one in pools]
    return min((pair for pair in found if pair[1] < FAR), key=lambda pair: pair[1], default=None)


def _speedup(one: Candidate) -> float:
    assert one.speedup is not None
    return one.speedup


def _reasons(
    best: Candidate,
    candidates: Sequence[Candidate],
    work: Work,
    requests: int,
    cores: int,
    pays: tuple[Candidate, float] | None,
) -> list[str]:
    sequential = candidates[0]
    reasons = [_what_it_does(work), *_latency(best, sequential)]
    if best.kind != "sequential":
        reasons += [*_costs(best, sequential, pays), *_cheaper(best, sequential, work)]
    elif requests == 1:
        reasons.append("there is one call, and nothing to make beside it")
    elif work.accumulates:
        names = ", ".join(work.accumulates[:3])
        reasons.append(
            f"every call changes what they share ({names}), so that calls elsewhere or at once would come to "
            "something else"
        )
    elif pays is not None:
        one, calls = pays
        reasons.append(
            f"a pool is worth it from some {_round(calls):,} calls on ({NAMES[one.kind]}, "
            f"{in_workers(one.workers)}), and there are {requests:,}"
        )
    elif any(map(_usable, candidates[1:])):
        reasons.append("no pool is worth it, however many calls there are")
    if work.guarded and best.kind in ("processes", "interpreters"):
        reasons.append(
            "calls know a lock, and each worker would have its own: whether it guards what all share is "
            "for you to say"
        )
    for kind in KINDS:
        if kind in (best.kind, "sequential", "free-threaded"):
            continue
        said = _against(kind, best, candidates, work, requests, cores)
        if said:
            reasons.append(said)
    return reasons


def _what_it_does(work: Work) -> str:
    where = "a call takes" if work.looked_at == 1 else "calls take"
    doing = _shares(work)
    return f"{where} {_time(work.call_s)}{_spread(work)}, {doing}"


def _shares(work: Work) -> str:
    parts = []
    if work.gil_from == "none":
        parts.append((work.gil + work.free, "computing"))
    else:
        parts += [(work.gil, "computing with the GIL held"), (work.free, "computing without the GIL")]
    parts.append((work.waiting, "waiting"))
    told = [(share, name) for share, name in sorted(parts, reverse=True) if share >= 0.05]
    if len(told) == 1:
        return f"nearly all of it {told[0][1]}" if told[0][0] < 0.995 else f"all of it {told[0][1]}"
    return " and ".join(f"{share:.0%} {name}".replace("%", " %") for share, name in told)


def _spread(work: Work) -> str:
    if work.looked_at < 3 or work.longest_s < 5 * max(work.shortest_s, 1e-9) or work.longest_s < 1e-3:
        return ""
    return f" ({_time(work.shortest_s)} to {_time(work.longest_s)})"


def _latency(best: Candidate, sequential: Candidate) -> list[str]:
    """What a single call takes, in the choice and without it."""
    if best.p50_s is None:
        return []
    told = f"a call has a p50 of {_time(best.p50_s)}"
    told += " (too few were timed for a p99)" if best.p99_s is None else f" and a p99 of {_time(best.p99_s)}"
    if best is not sequential and sequential.p50_s is not None:
        told += f", without a pool {_time(sequential.p50_s)}"
        told += "" if sequential.p99_s is None else f" and {_time(sequential.p99_s)}"
    return [told]


def _costs(best: Candidate, sequential: Candidate, pays: tuple[Candidate, float] | None) -> list[str]:
    """What a pool costs besides its calls, and from how many calls on it is worth that."""
    assert best.start_s is not None
    assert best.once_s is not None
    found = []
    if best.memory_kib is not None and sequential.memory_kib is not None:
        more = (best.memory_kib - sequential.memory_kib) / 1024
        found += [f"{more:.0f} MB more"] if more >= 1 else []
    found += [f"{_time(best.start_s)} to start"] if best.start_s >= 0.01 else []
    found += [f"{_time(best.once_s)} for first calls"] if best.once_s >= 0.01 else []
    told = (
        f"it takes {' and '.join([', '.join(found[:-1]), found[-1]] if found[1:] else found)}"
        if found
        else ""
    )
    if pays is not None and pays[1] >= 2:
        told += f"{', and' if told else 'it'} is worth it from some {_round(pays[1]):,} calls on"
    return [told] if told else []


def _cheaper(best: Candidate, sequential: Candidate, work: Work) -> list[str]:
    """Why a pool gains more than its cores give: calls cost less there. The allocator, for example, gives the
    memory of a main thread back to the system after each call, and keeps that of other threads."""
    if not best.cpu_call_s or not sequential.cpu_call_s:
        return []
    if rules.gains_by_waiting_at_once(work.waiting) or sequential.cpu_call_s < CHEAPER * best.cpu_call_s:
        return []
    return [
        f"a call takes {_time(best.cpu_call_s)} of processor time in the pool, and "
        f"{_time(sequential.cpu_call_s)} without one: the cores are not all of the gain"
    ]


def _against(
    kind: Kind, best: Candidate, candidates: Sequence[Candidate], work: Work, requests: int, cores: int
) -> str | None:
    """What speaks against a kind, in a clause; None where that needs no word."""
    of_kind = [one for one in candidates if one.kind == kind]
    measured = [one for one in of_kind if _usable(one)]
    if not measured:
        told = next((one for one in of_kind if one.reason), None)
        if told is None or work.accumulates or requests == 1:
            return None
        if kind == "async" and told.status == "refused":
            return None
        return f"{_plural(kind)} {_VERBS[told.status]}: {told.reason}"
    top = max(measured, key=_speedup)
    gain = f"{_plural(kind)} give {times(_speedup(top))}"
    if top.workers != best.workers and best.kind != "sequential":
        gain += f" with {top.workers} workers"
    if _speedup(top) > _speedup(best) / NEAR and best.kind != "sequential":
        return f"{gain}, and cost more" if KINDS.index(kind) > KINDS.index(best.kind) else gain
    why = _why_slow(kind, top, work, cores)
    return f"{gain}{f', because {why}' if why else ''}"


def _why_slow(kind: Kind, one: Candidate, work: Work, cores: int) -> str | None:
    in_gil = work.gil / max(work.gil + work.free, 1e-9)
    if kind in ("threads", "async") and work.gil_from != "none" and work.gil > 0.5 and in_gil > 0.7:
        return f"calls hold the GIL {work.gil:.0%} of the time".replace("%", " %")
    assert one.total_s is not None
    if one.parts[0] > 0.3 * one.total_s:
        return f"they take {_time(one.parts[0])} for their start and first calls"
    if kind in ("interpreters", "processes"):
        sent = max((work.result_bytes or 0, "result"), (work.argument_bytes or 0, "call"))
        if sent[0] >= 100_000:
            return f"each {sent[1]} is {_size(sent[0])}"
        if rules.too_short_to_send(work.call_s):
            return "each call is over sooner than it is sent there"
        if rules.waits(work.waiting):
            return f"{one.workers} of them wait for {one.workers} calls at once"
    if work.call_s < 50e-6:
        return "each call is over sooner than it is handed on"
    if cores == 1 and work.waiting < 0.5:
        return "there is one core"
    return None


def again(choice: Pick, work: Work, cores: int) -> tuple[str, ...]:
    """When the answer may be another."""
    found = []
    computes = work.waiting < 0.5
    if computes:
        found.append(f"on a machine with another number of cores than {cores}")
    calls = choice.break_even
    if choice.kind == "sequential" and calls is not None:
        found.append(
            f"when there are more than some {_round(calls):,} calls: a pool is worth it from there on"
        )
    if choice.kind in ("interpreters", "processes"):
        found.append("when arguments or results become much larger: they are sent")
    if choice.kind != "sequential" and calls is not None and calls >= 2:
        found.append(f"when there are fewer than some {_round(calls):,} calls: a pool is not worth it then")
    if choice.kind in ("threads", "async") and work.waiting > 0.5:
        found.append("when what the calls wait for can take more, or fewer, at once")
    found.append("with another version of Python, or without a GIL")
    return tuple(found)


def notes(choice: Pick, work: Work, candidates: Sequence[Candidate], calls: int) -> tuple[str, ...]:
    """What else there is to know."""
    found = [f"The function was called {calls:,} times to find this out."]
    if work.accumulates:
        names = ", ".join(work.accumulates)
        found.append(
            f"Calls change what they share: {names}. "
            + (
                "They know a lock; that it guards this is for you to say."
                if work.guarded
                else "Have them return what they find, and join it afterwards, and ask again."
            )
        )
    if work.changes_items:
        found.append("Calls change their items: workers elsewhere would change copies.")
    if work.caches:
        names = ", ".join(work.caches)
        found.append(f"The first call with an item fills a cache ({names}); each process would have its own.")
    if work.varies:
        found.append(
            "The same calls give other results each time, so that no results could be compared: whether they "
            "may be made at once is for you to say."
        )
    for one in candidates:
        if one.kind == "free-threaded" and one.status == "measured" and one.speedup is not None:
            base = choice.speedup or 1.0
            if one.speedup > WORTH * base:
                found.append(
                    f"{one.interpreter} would do better: {one.workers} threads there give {one.speedup:.1f}x."
                )
    return tuple(found)


def times(speedup: float) -> str:
    """ "1.8x", "0.02x"."""
    return f"{speedup:.1f}x" if speedup >= 0.1 else f"{speedup:.2g}x"


def _plural(kind: Kind) -> str:
    return "tasks of an event loop" if kind == "async" else str(kind)


def _time(seconds: float) -> str:
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            value = seconds * scale
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds:.1f} s"


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _round(number: float) -> int:
    digits = max(0, len(str(int(number))) - 2)
    return max(2, int(round(number, -digits)))

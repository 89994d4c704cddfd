"""The choice among candidates, by rules that are stated, and the reasons in plain words.

1. Only ways whose results are those of calls in turn.
2. The fastest: the least time for all the calls, the start of the pool counted. Ways are compared by their
   speed-up over calls in turn, which is of the rounds that both ran in: the machine may have been slower in
   the others.
   Where other programs took more than a tenth of the machine meanwhile, that time is worked out from
   processor time, which hardly depends on them (``alone_s``). And threads are never taken to be faster than
   the time with the GIL allows.
3. A way that is expected to lose at most ``AFFORDABLE`` against the fastest is as fast (``loss``), and among
   these the one that costs least is taken: of kinds, no pool before threads and loops, these before
   interpreters, and those before processes; of one kind, the fewest workers. So noise never makes a slow
   way as good as a fast one: the less is known, the more may be lost.
4. A pool that gains less than ``WORTH`` is not worth having.

Another interpreter is never the choice, because changing it is another decision: it is a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.advice.candidates import KINDS
from fairlead.advice.loss import expected_loss, versus
from fairlead.pools.choose import rules
from fairlead.record.advice import NAMES, Candidate, Kind, Pick, Work

_VERBS = {"refused": "were not tried", "failed": "failed", "wrong": "came to other results"}

AFFORDABLE = 0.05
"""The expected loss that a cheaper way may have."""
NEAR = 1.15
"""A way that takes up to this many times as long as the choice is near it, in a sentence."""
WORTH = 1.15
"""The least speed-up that is worth a pool."""
TELLING = 1.3
"""A speed-up above this is a gain in a sentence; one below is none."""


def choose(
    candidates: Sequence[Candidate], work: Work, requests: int, cores: int, memory_mib: int | None = None
) -> Pick:
    """The choice, with reasons. Of pools that take more memory than ``memory_mib`` none is chosen."""
    sequential = candidates[0]
    too_large = [
        one
        for one in candidates[1:]
        if memory_mib is not None and one.memory_kib is not None and one.memory_kib > memory_mib * 1024
    ]
    known = [
        one
        for one in candidates
        if one.status == "measured" and one.total_s is not None and one.kind != "free-threaded"
    ]
    bound = {one: _time_of(one, sequential, work) for one in known}
    candidates = [one for one in candidates if one not in too_large]
    here = [one for one in known if one not in too_large]
    fastest = min(here, key=lambda one: bound[one])
    equal = [one for one in here if one is fastest or _loss(one, fastest, bound) <= AFFORDABLE]
    best = min(equal, key=lambda one: (KINDS.index(one.kind), one.workers))
    if bound[sequential] / bound[best] < WORTH:
        best = sequential
    measured = best.alone_s is None
    return Pick(
        kind=best.kind,
        workers=best.workers,
        speedup=best.speedup if measured else bound[sequential] / bound[best],
        low=best.low if measured else None,
        high=best.high if measured else None,
        estimated=not measured,
        break_even=_won_back(best, sequential),
        loss=max((_loss(best, one, bound) for one in here if one is not best), default=0.0),
        reasons=(
            *_reasons(best, candidates, work, requests, cores),
            *_beyond(memory_mib, [one for one in known if one in too_large], best, bound),
        ),
    )


def _beyond(
    memory_mib: int | None, too_large: Sequence[Candidate], best: Candidate, bound: Mapping[Candidate, float]
) -> list[str]:
    """What the bound on memory costs, if anything; ``bound`` has each way's time, calls in turn first."""
    fastest = min(too_large, key=lambda one: bound[one], default=None)
    if fastest is None or bound[fastest] >= bound[best]:
        return []
    assert fastest.memory_kib is not None
    gain = next(iter(bound.values())) / bound[fastest]
    return [
        f"{_plural(fastest.kind)} with {fastest.workers} workers give {times(gain)}, and take "
        f"{fastest.memory_kib / 1024:.0f} MiB of the {memory_mib} MiB allowed"
    ]


def _time_of(one: Candidate, sequential: Candidate, work: Work) -> float:
    if one.alone_s is not None:
        return one.alone_s
    total = _total(sequential) / one.speedup if one.speedup else _total(one)
    if one.kind in ("threads", "async") and work.gil_from != "none":
        total = max(total, work.gil * _total(sequential))
    return total


def _loss(one: Candidate, other: Candidate, times: Mapping[Candidate, float]) -> float:
    """What taking ``one`` is expected to cost where ``other`` could be taken."""
    slower = times[one] / times[other]
    if one.alone_s is not None:
        return max(0.0, slower - 1)
    return expected_loss(slower, versus(dict(one.rounds), dict(other.rounds)))


def _total(one: Candidate) -> float:
    assert one.total_s is not None
    return one.total_s


def _reasons(
    best: Candidate, candidates: Sequence[Candidate], work: Work, requests: int, cores: int
) -> list[str]:
    sequential = candidates[0]
    reasons = [_what_it_does(work), *_latency(best, sequential)]
    if best.kind != "sequential":
        reasons += [*_costs(best, sequential), *_unseen(best)]
    elif requests == 1:
        reasons.append("there is one call, and nothing to make beside it")
    elif work.accumulates:
        names = ", ".join(work.accumulates[:3])
        reasons.append(
            f"every call changes what they share ({names}), so that calls elsewhere or at once would come to "
            "something else"
        )
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
    return [told if best.alone_s is None else f"{told}, beside what else runs here"]


def _won_back(best: Candidate, sequential: Candidate) -> float | None:
    """How many calls win back the start of a pool."""
    if best is sequential or best.parts is None or sequential.parts is None:
        return None
    start, call = best.parts
    gained = sequential.parts[1] - call
    return start / gained if gained > 0 else None


def _costs(best: Candidate, sequential: Candidate) -> list[str]:
    found = []
    if best.memory_kib is not None and sequential.memory_kib is not None:
        more = (best.memory_kib - sequential.memory_kib) / 1024
        if more >= 1:
            found.append(f"it takes {more:.0f} MB more")
    if best.parts is not None and best.parts[0] >= 0.01:
        start = _time(best.parts[0])
        found.append(f"and {start} to start" if found else f"it takes {start} to start")
        calls = _won_back(best, sequential)
        if calls is not None and calls >= 2:
            found.append(f"(won back by some {_round(calls):,} calls)")
    return [" ".join(found)] if found else []


def _unseen(best: Candidate) -> list[str]:
    """What an estimate from processor time cannot know: that calls hold each other up in C."""
    if best.kind != "threads" or best.alone_s is None or best.speedup is None or best.speedup > WORTH:
        return []
    return [
        f"beside what else runs here threads were measured at {times(best.speedup)}: if calls take one lock, "
        "as those of one SQLite connection do, that is all they give"
    ]


def _against(
    kind: Kind, best: Candidate, candidates: Sequence[Candidate], work: Work, requests: int, cores: int
) -> str | None:
    """What speaks against a kind, in a clause; None where that needs no word."""
    of_kind = [one for one in candidates if one.kind == kind]
    measured = [one for one in of_kind if one.status == "measured" and one.total_s is not None]
    if not measured:
        told = next((one for one in of_kind if one.reason), None)
        if told is None or work.accumulates or requests == 1:
            return None
        if kind == "async" and told.status == "refused":
            return None
        return f"{_plural(kind)} {_VERBS[told.status]}: {told.reason}"
    top = min(measured, key=_total)
    assert top.speedup is not None
    gain = f"{_plural(kind)} give {times(top.speedup)}"
    if top.workers != best.workers and best.kind != "sequential":
        gain += f" with {top.workers} workers"
    if best.alone_s is not None and top.alone_s is not None:
        assert candidates[0].alone_s is not None
        gain = gain.replace(times(top.speedup), times(candidates[0].alone_s / top.alone_s))
        near = top.alone_s < best.alone_s * NEAR
    else:
        near = best.speedup is not None and top.speedup > best.speedup / NEAR
    if near and best.kind != "sequential":
        return f"{gain}, and cost more" if KINDS.index(kind) > KINDS.index(best.kind) else gain
    why = _why_slow(kind, top, work, cores)
    return f"{gain}{f', because {why}' if why else ''}"


def _why_slow(kind: Kind, one: Candidate, work: Work, cores: int) -> str | None:
    in_gil = work.gil / max(work.gil + work.free, 1e-9)
    if kind in ("threads", "async") and work.gil_from != "none" and work.gil > 0.5 and in_gil > 0.7:
        return f"calls hold the GIL {work.gil:.0%} of the time".replace("%", " %")
    assert one.call_s is not None
    assert one.total_s is not None
    if one.parts is not None and one.parts[0] > 0.3 * (one.total_s if one.alone_s is None else one.alone_s):
        return f"they take {_time(one.parts[0])} to start"
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


def again(choice: Pick, work: Work, candidates: Sequence[Candidate], cores: int) -> tuple[str, ...]:
    """When the answer may be another."""
    found = []
    computes = work.waiting < 0.5
    if computes:
        found.append(f"on a machine with another number of cores than {cores}")
    best = _break_even(choice, candidates)
    if best is not None:
        one, calls = best
        found.append(
            f"when there are some {_round(calls):,} calls or more: {NAMES[one.kind]} with {one.workers} "
            "workers is faster from there on"
        )
    if choice.kind in ("interpreters", "processes"):
        found.append("when arguments or results become much larger: they are sent")
    if choice.break_even is not None and choice.break_even >= 2:
        found.append(
            f"when there are fewer than some {_round(choice.break_even):,} calls: starting takes longer then"
        )
    if choice.kind in ("threads", "async") and work.waiting > 0.5:
        found.append("when what the calls wait for can take more, or fewer, at once")
    found.append("with another version of Python, or without a GIL")
    return tuple(found)


def _break_even(choice: Pick, candidates: Sequence[Candidate]) -> tuple[Candidate, float] | None:
    """From how many calls on a pool would pay, where none does: the pool for which they are fewest."""
    if choice.kind != "sequential":
        return None
    sequential = candidates[0]
    found = []
    for one in candidates[1:]:
        if one.status == "measured" and one.parts is not None and sequential.parts is not None:
            (start, call), in_turn = one.parts, sequential.parts[1]
            gained = in_turn - call
            if gained > 0.25 * in_turn and one.kind != "free-threaded":
                found.append((one, start / gained * 1.5))
    return min(found, key=lambda pair: pair[1], default=None)


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

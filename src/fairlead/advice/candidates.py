"""Which ways of making the calls apply, and with which worker counts: by what the first calls did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.pools.choose import rules
from fairlead.record.advice import Kind, Work

KINDS: tuple[Kind, ...] = ("sequential", "async", "threads", "interpreters", "processes", "free-threaded")
"""From the one that costs least to the one that costs most."""

AT_ONCE = (2, 4, 8, 16, 32, 64)
TASKS_AT_ONCE = (8, 32, 128, 512)


@dataclass(frozen=True, slots=True)
class Way:
    kind: Kind
    workers: int
    interpreter: Interpreter | None = None
    """None: the one that runs fairlead."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known before the first call, and what is not."""

    cores: int
    gil: bool
    requests: int
    coroutines: bool
    cannot_be_sent: str | None
    cannot_load: Mapping[str, str]
    by_reference: bool
    free_threaded: Interpreter | None
    kinds: Sequence[str] | None
    work: Work | None = None


def ways(facts: Facts) -> tuple[list[Way], dict[Kind, str]]:
    """The ways to be measured, sequential first, and why others are not."""
    found = [Way("sequential", 1)]
    refused: dict[Kind, str] = {}
    for kind in KINDS[1:]:
        why = refusal(kind, facts)
        if why is not None:
            refused[kind] = why
            continue
        counts = sorted({min(count, facts.requests) for count in _counts(kind, facts)} - {1})
        found += [
            Way(kind, count, facts.free_threaded if kind == "free-threaded" else None) for count in counts
        ]
    return found, {kind: why for kind, why in refused.items() if why}


def refusal(kind: Kind, facts: Facts) -> str | None:
    """Why a kind cannot or must not be measured; empty where that needs no word."""
    if facts.kinds is not None and kind not in facts.kinds:
        return ""
    if facts.requests == 1:
        return "there is one call, and nothing to make beside it"
    if kind == "free-threaded" and facts.free_threaded is None:
        return ""
    if facts.coroutines and kind in ("threads", "free-threaded"):
        return ""
    if not facts.coroutines and kind == "async":
        return "the function is no coroutine function" if facts.kinds is not None else ""
    if kind == "free-threaded" and not facts.by_reference:
        return "another interpreter cannot be given the function: put it into a module"
    if (why := _unsafe(kind, facts.work)) is not None:
        return why
    if kind in ("processes", "interpreters") and facts.cannot_be_sent is not None:
        return facts.cannot_be_sent
    if kind == "interpreters":
        against = rules.no_interpreters() or rules.refused(facts.cannot_load)
        if against is not None:
            return against
    only_waits = facts.work is not None and not rules.gains_by_cores(1 - facts.work.waiting)
    if facts.coroutines and kind in ("processes", "interpreters") and only_waits:
        return "its coroutines wait, and a loop waits for all of them at once"
    return None


def _unsafe(kind: Kind, work: Work | None) -> str | None:
    """Why calls elsewhere or at once would come to something else than calls in turn."""
    if work is None or kind == "sequential":
        return None
    if work.accumulates:
        names = ", ".join(work.accumulates[:3])
        if kind in ("processes", "interpreters"):
            return f"calls change what they share ({names}), and there each worker would change its own"
        if not work.guarded:
            return f"calls change what they share ({names}), and know no lock"
    if work.changes_items and kind in ("processes", "interpreters"):
        return "calls change their items, and there they would change copies"
    return None


def _counts(kind: Kind, facts: Facts) -> set[int]:
    cores = facts.cores
    work = facts.work
    waits = work is None or rules.gains_by_waiting_at_once(work.waiting)
    computes = work is None or rules.gains_by_cores(1 - work.waiting)
    to_cores = {count for count in AT_ONCE if count < cores} | {max(cores, 2)}
    if kind == "async":
        return set(TASKS_AT_ONCE)
    if kind == "threads":
        if waits:
            return {count for count in AT_ONCE if count <= _most(facts, work)} | {cores}
        if work is not None and facts.gil and not rules.gains_by_cores(work.free):
            return {max(cores, 2)}
        return to_cores | {2 * cores}
    if kind == "free-threaded":
        return {max(cores, 2)}
    if not computes:
        return {4 * cores}
    many = {4 * cores} if waits and 4 * cores <= _most(facts, work, gil=False) else set()
    return to_cores | {2 * cores} | many


def _most(facts: Facts, work: Work | None, *, gil: bool = True) -> float:
    """Workers beyond which there is nothing to gain, with room to spare: the GIL, or the cores, have no more
    time."""
    if work is None:
        return AT_ONCE[-1]
    limits = [1 / work.gil if gil and work.gil > 0 and facts.gil else AT_ONCE[-1]]
    limits.append(facts.cores / max(work.gil + work.free, 1 / AT_ONCE[-1]))
    return 4 * min(limits) if gil else 2 * min(limits)


def expected_call_s(way: Way, work: Work, cores: int) -> float:
    """Seconds between the ends of two calls, before they have been measured: by what the first calls did."""
    alone = way.kind == "sequential"
    at_once = 1 if alone else way.workers
    shares = [1 / at_once, (work.gil + work.free) / min(at_once, cores)]
    if way.kind in ("threads", "async") and work.gil_from != "none":
        shares.append(work.gil)
    sent = rules.SENDING_S if way.kind in ("processes", "interpreters") else 0.0
    return work.call_s * max(shares) + sent / min(at_once, cores)

"""Claims and the conditions of a run in words: the short report, the head of the page, and the exports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fairlead.record.sample import DISTURBED
from fairlead.record.summary import Claim, Conditions, Side, Summary
from fairlead.report.common import names, units, words

AT_MOST = 15
"""Of more claims the short report shows those that are declared as main ones."""

FAR = 0.15
"""A mode that may be as rare as this and unseen is no longer spoken of."""


def sign(claim: Claim) -> str:
    """The verdict in one word: "settled", "rough", "open", "contrary"."""
    return verdict(claim).replace("contradicts the source", "contrary")


def verdict(claim: Claim) -> str:
    """One of ``words.VERDICTS``."""
    return "rough" if rough(claim) else claim.verdict


def rough(claim: Claim) -> bool:
    """Whether the direction is settled and the size is not: the interval is too wide."""
    if claim.verdict != "settled" or claim.low is None or claim.high is None:
        return False
    if claim.kind == "exponent":
        return claim.high - claim.low > math.log10(units.ROUGH)
    return units.wider(claim.low, claim.high, units.ROUGH)


def value(claim: Claim, number: float | None) -> str:
    """ "x42.0", "n^1.99"."""
    if claim.kind == "exponent":
        return words.power(number)
    return units.factor(number)


def interval(claim: Claim) -> str:
    """ "[37.1, 48.0]"; empty where there is none."""
    return (words.bounds if claim.kind == "exponent" else units.interval)(claim.low, claim.high)


def ours(claim: Claim) -> str:
    """ "x42.0 [37.1, 48.0]", or "x2.50 or x114"."""
    return " ".join(filter(None, (figure(claim), interval(claim))))


def figure(claim: Claim) -> str:
    """ "x42.0"; of a ratio with two modes both: "x2.50 or x114"."""
    return " or ".join(value(claim, mode.value) for mode in claim.modes) or value(claim, claim.value)


def basis(claim: Claim) -> str:
    """What else is to be known of the figures: the rounds of each mode, or how rare one may be; the runs."""
    told = [f"in {' and '.join(str(mode.rounds) for mode in claim.modes)} rounds"] if claim.modes else []
    if claim.unseen is not None and claim.unseen > FAR:
        told.append(_unseen(claim.unseen))
    if claim.runs > 1:
        told.append(f"over {units.runs(claim.runs)}")
    if claim.note and claim.kind == "ratio" and claim.verdict != "open":
        told.append(names.clean(claim.note))
    return "; ".join(told)


def sides(claim: Claim) -> str:
    """The two times: "5.90 ms / 139 us"."""
    return " / ".join(units.metric(side.median, side.unit) for side in claim.sides)


def named_sides(claim: Claim) -> str:
    """The two times with what they are: "5.90 ms (beside threads) against 139 us (beside nothing)"."""
    return " against ".join(named(side) for side in claim.sides)


def named(side: Side) -> str:
    return f"{units.metric(side.median, side.unit)} ({names.clean(side.what)})"


def published(claim: Claim) -> str:
    """ "x300"; of several the least and the greatest: "x5.45..9.26"."""
    values = sorted(one.value for one in claim.published)
    ends = dict.fromkeys(value(claim, one) for one in (values[:1] + values[-1:]))
    return "..".join(one if not i else one.lstrip("xn^") for i, one in enumerate(ends))


def sources(claim: Claim) -> list[tuple[str, str]]:
    """("CPython, 2 cores", "n^2.05"); one for each source."""
    return [(names.clean(one.label), value(claim, one.value)) for one in claim.published]


def said(claim: Claim) -> str:
    """What is claimed, as a title."""
    text = names.clean(claim.text)
    return f"{text[:1].upper()}{text[1:]}"


def _unseen(share: float) -> str:
    return f"a mode in fewer than {units.percent(share)} of rounds may be unseen"


def sentence(claim: Claim) -> str:
    """The whole claim: what is said, ours, the times, and what was published."""
    figures = list(filter(None, (ours(claim), basis(claim))))
    if claim.sides:
        figures.append(named_sides(claim))
    if claim.published:
        figures.append("published " + "; ".join(f"{label}: {figure}" for label, figure in sources(claim)))
    return f"{said(claim)}: {'; '.join(figures)}."


def why_open(claim: Claim) -> str:
    """Of a claim that is open: what keeps it so."""
    outside = (
        claim.low is not None and claim.high is not None and not claim.low <= claim.threshold <= claim.high
    )
    if claim.note and (claim.kind == "ratio" or outside):
        return names.clean(claim.note)
    if claim.low is None or claim.high is None:
        few = f"only {units.runs(claim.rounds)} so far" if claim.rounds else "no round has both times"
        return names.clean(claim.note) if claim.note else f"{few}: give a larger --budget"
    remedy = "a larger --budget narrows it" if claim.runs == 1 else "more runs narrow it (--repeat)"
    return f"the interval holds {value(claim, claim.threshold)}: {remedy}"


def main(claims: Sequence[Claim]) -> list[Claim]:
    """Those of the short report: all if they are few, else one for each experiment and what is declared."""
    if len(claims) <= AT_MOST:
        return list(claims)
    return [claim for claim in claims if claim.main]


def ordered(summary: Summary) -> list[Claim]:
    """All claims, the squares and what removes them first, then as the experiments stand in the catalogue."""
    families = ("square", "cured", "gil", "models", "party")

    def place(claim: Claim) -> int:
        family = claim.experiment.partition(".")[0]
        return families.index(family) if family in families else len(families)

    return sorted(summary.claims, key=place)


def tally(claims: Sequence[Claim]) -> str:
    """ "12 of 15 claims are settled (4 roughly, 1 against the source)"; and how rare a mode may be."""
    count = len(claims)
    still = sum(claim.verdict == "open" for claim in claims)
    contrary = sum(claim.verdict == "contradicts the source" for claim in claims)
    text = f"{count - still} of {count} claims {'is' if count - still == 1 else 'are'} settled"
    known = {"roughly": sum(map(rough, claims)), "against the source": contrary}
    parts = ", ".join(f"{number} {how}" for how, number in known.items() if number)
    unseen = [claim.unseen for claim in claims if claim.verdict != "open" and (claim.unseen or 0) > FAR]
    rare = f"; {_unseen(max(filter(None, unseen)))}" if unseen else ""
    return f"{text}{f' ({parts})' if parts else ''}{rare}"


def machine(summary: Summary) -> str:
    """What was measured on what and when, in one line."""
    there = summary.environment
    cores, beside = there.get("cores"), there.get("beside")
    parts = [
        names.value(there.get("processor")) if there.get("processor") else names.value(there.get("machine")),
        f"{cores} core{'s' * (cores != 1)}" if cores else "",
        f"quota {there['quota']:g} cores" if isinstance(there.get("quota"), int | float) else "",
        names.value(there.get("kernel")) if there.get("kernel") else "",
        f"beside {names.value(beside)} busy process{'es' * (beside != 1)}" if beside else "",
    ]
    roster = names.Roster(summary.series)
    labels = [one.label for one in roster]
    listed = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
    place = ", ".join(part for part in parts if part and part != units.NOTHING)
    more = f" ({summary.environments} environments)" if summary.environments > 1 else ""
    fairlead = f"fairlead {names.value(there['fairlead'])}" if "fairlead" in there else ""
    when = names.moment(summary.started).partition(" ")[0] if summary.started else ""
    return "; ".join(filter(None, (f"{place}{more}", listed, ", ".join(filter(None, (fairlead, when))))))


def conditions(summary: Summary) -> str:
    """What disturbed the run, in one line: "quiet: load 2 %, core speed ± 20 %, stolen 0 %, ..."."""
    return f"{mood(summary.conditions)}{'; '.join(_parts(summary))}"


def mood(found: Conditions) -> str:
    """ "quiet: " or "busy: "; nothing where it is not known."""
    if found.highest_load is None:
        return ""
    busy = found.highest_load > DISTURBED or (found.stolen or 0) > DISTURBED or bool(found.throttled_s)
    return "busy: " if busy else "quiet: "


def _parts(summary: Summary) -> Iterator[str]:
    found = summary.conditions
    told = []
    if found.other_load is not None and found.highest_load is not None:
        high = f" (5 % of samples above {units.percent(found.highest_load)})"
        told.append(f"load {units.percent(found.other_load)}{high if found.highest_load > DISTURBED else ''}")
    if found.speed_varied is not None:
        told.append(f"core speed ± {units.percent(found.speed_varied)}")
    if found.stolen is not None:
        told.append(f"stolen {units.percent(found.stolen)}")
    if found.throttled_s is not None:
        told.append(f"throttled {units.seconds(found.throttled_s)}")
    if told:
        yield ", ".join(told)
    noun = "sample" if summary.samples == 1 else "samples"
    yield f"{units.count(summary.samples)} {noun}{f', {found.rejected} rejected' if found.rejected else ''}"
    if found.wrong_clock:
        yield f"the clock was wrong: {names.moment(found.wrong_clock)}"
    if found.warm_up:
        yield f"{', '.join(map(names.clean, found.warm_up))}: each sample includes the JIT's warm-up"


def first(claims: Sequence[Claim]) -> Claim | None:
    """The one that a page begins with: a settled one, if possible of the convoy."""
    convoy = [claim for claim in claims if claim.topic == "convoy"]
    return next((claim for claim in (*convoy, *claims) if claim.verdict != "open"), None)


def headline(summary: Summary) -> str:
    """The title of a page: its first claim, or what to do."""
    claims = ordered(summary)
    if claim := first(claims):
        return f"{said(claim)}: {figure(claim)}"
    if claims:
        return "Nothing is settled yet: a larger --budget narrows the intervals"
    if any(map(words.measured, summary.series)):
        return "Measured: see the tables"
    if summary.series:
        return "Nothing could be measured: see the reasons"
    return "There is nothing to show: the run holds no sample. Start one with: fairlead lab run"

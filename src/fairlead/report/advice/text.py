"""An advice in the terminal: the answer first, then the figures behind it, then code to paste."""

from __future__ import annotations

from fairlead.record.advice import NAMES, Advice, AdvicePlan, Candidate, headline
from fairlead.report.advice import words
from fairlead.report.common import console, names, units

WIDTH = 100
_LATENCY = slice(6, 8)
"""The cells of a row for which a terminal has no room: of the choice, the reasons have them."""


def render(advice: Advice, *, width: int = WIDTH, colour: bool = False) -> str:
    """The whole of it.

    Raises:
        MissingExtraError: rich is not installed.
    """
    page = console.Page(width, colour)
    page.line(names.clean(headline(advice)), style="bold")
    for line in caveats(advice):
        page.line(line)
    for reason in advice.choice.reasons:
        page.line(f"- {names.clean(reason)}", indent=2)
    page.gap()
    page.line(names.clean(subject(advice)))
    table = console.table(
        "<way", "workers", "time", "speed-up", "<", "start", "CPU", "memory", "rounds",
    )  # fmt: skip
    for one in advice.candidates:
        if one.total_s is not None:
            cells = row(one, advice)
            console.add_row(table, *cells[: _LATENCY.start], *cells[_LATENCY.stop :])
    page.table(table, indent=2)
    for one in advice.candidates:
        if one.reason:
            page.line(f"{label(one, advice)}: {names.clean(one.reason)}", indent=2)
    page.gap()
    page.line("In code", style="bold")
    page.lines(map(plain, advice.code.splitlines()), indent=2)
    page.gap()
    page.line("Ask again", style="bold")
    for when in advice.again:
        page.line(f"- {names.clean(when)}", indent=2)
    page.gap()
    for note in advice.notes:
        page.line(names.clean(note))
    return page.text()


def render_plan(plan: AdvicePlan, *, width: int = WIDTH, colour: bool = False) -> str:
    """What ``--dry-run`` shows.

    Raises:
        MissingExtraError: rich is not installed.
    """
    most = "as many as there is time for" if plan.max_calls is None else f"at most {plan.max_calls:,} in all"
    page = console.Page(width, colour)
    page.line(
        f"Plan for {names.clean(plan.target)}: {_calls(plan.requests)}, {_items(plan.items)}, budget "
        f"{units.seconds(plan.budget_s)}. Nothing has been called."
    )
    for step in (
        "1. Look at first calls, one at a time, twice over: what they do with their time, what they share.",
        "2. Measure, each in processes of its own, the faster half of them again and again:",
    ):
        page.line(step, indent=2)
    shown: dict[tuple[str, str], list[str]] = {}
    for kind, workers, interpreter in plan.ways:
        shown.setdefault((NAMES[kind], interpreter), []).append(str(workers))
    for (name, interpreter), counts in shown.items():
        how_many = "" if name == NAMES["sequential"] else f", {_listed(counts)} workers"
        page.line(f"{name}{how_many} on {names.clean(interpreter)}", indent=7)
    for refused, why in plan.refused.items():
        page.line(f"not {refused}: {names.clean(why)}", indent=5)
    page.line("The first calls may rule out more of them.", indent=5)
    page.line(f"Calls of the function: {most}. Whatever it writes, sends or deletes happens as often.")
    return page.text()


def subject(advice: Advice) -> str:
    """What was measured, where, and for how much."""
    cores = "1 core" if advice.cores == 1 else f"{advice.cores} cores"
    bound = "" if advice.memory_mib is None else f", at most {advice.memory_mib} MiB"
    return (
        f"{advice.target}: {_calls(advice.requests)}, {_items(advice.items)}; {advice.python}, {cores}"
        f"{bound}; measured for {units.seconds(advice.used_s)}"
    )


def row(one: Candidate, advice: Advice) -> tuple[str, ...]:
    """A candidate's figures: way, workers, time, speed-up, its interval, start with first calls, p50, p99,
    CPU, memory, rounds."""
    low_high = "" if one.kind == "sequential" else units.interval(one.low, one.high)
    return (
        label(one, advice),
        str(one.workers),
        units.seconds(one.total_s),
        units.factor(one.speedup),
        low_high,
        units.seconds(one.parts[0]),
        units.seconds(one.p50_s),
        units.seconds(one.p99_s),
        units.percent(one.cpu),
        units.memory(one.memory_kib),
        str(len(one.rounds)) if one.status == "measured" else one.status,
    )


def caveats(advice: Advice) -> list[str]:
    """What belongs under the headline: other load, too few rounds, and what the choice may cost."""
    pick = advice.choice
    chosen = next(c for c in advice.candidates if (c.kind, c.workers) == (pick.kind, pick.workers))
    taken = max((one.foreign for one in advice.candidates if one.foreign is not None), default=None)
    lines = [busy] if (busy := words.busy(taken)) else []
    if len([one for one in advice.candidates if one.total_s is not None]) > 1:
        first = advice.candidates[0]
        rounds = min(len(chosen.rounds), len(first.rounds))
        lines.append(words.loss(pick.loss, rounds, "ways", "time"))
    return lines


def label(one: Candidate, advice: Advice) -> str:
    """The way's name; the interpreter's with it, where that is another."""
    if one.kind == "free-threaded" and one.status != "refused":
        return f"threads, {names.clean(one.interpreter)}"
    name = NAMES[one.kind]
    return f"{name} *" if (one.kind, one.workers) == (advice.choice.kind, advice.choice.workers) else name


def plain(line: str) -> str:
    """A line of code with its indentation, and nothing in it that a terminal would obey."""
    body = line.lstrip(" ")
    return " " * (len(line) - len(body)) + names.clean(body)


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _calls(requests: int) -> str:
    return "1 call" if requests == 1 else f"{requests:,} calls"


def _items(items: int) -> str:
    return "1 item" if items == 1 else f"{items:,} items"

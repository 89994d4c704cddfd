"""The advice about a server in the terminal: the answer, what bounds it, the table, and the command."""

from __future__ import annotations

from fairlead.record import server_advice
from fairlead.record.server_advice import GOALS, ServerAdvice, ServerCandidate
from fairlead.report.advice import words
from fairlead.report.common import console, names, units

WIDTH = 100


def render(advice: ServerAdvice, *, width: int = WIDTH, colour: bool = False) -> str:
    """The whole of it.

    Raises:
        MissingExtraError: rich is not installed.
    """
    page = console.Page(width, colour)
    page.line(server_advice.headline(advice), style="bold")
    measured = [one for one in advice.candidates if one.rounds]
    if busy := words.busy(advice.foreign):
        page.line(busy)
    chosen = advice.candidates[advice.choice]
    if len(measured) > 1:
        page.line(words.loss(advice.loss, len(chosen.rounds), "setups", GOALS[advice.goal]))
    for reason in advice.reasons:
        page.line(f"- {reason}", indent=2)
    page.gap()
    page.line(
        names.clean(f"{advice.server}: {advice.cores} cores; measured for {units.seconds(advice.used_s)}")
    )
    table = console.table("<setup", "p99", "requests/s", "load", "gain", "<", "memory", "start", "rounds")
    for one in measured:
        mark = " *" if one is chosen else ""
        console.add_row(
            table, f"{one.setup.name}{mark}", units.seconds(one.p99_s),
            "-" if one.rate is None else units.count(one.rate), units.seconds(one.load_s),
            units.factor(one.gain), _bounds(one), units.memory(one.memory_kib), units.seconds(one.start_s),
            str(len(one.rounds)),
        )  # fmt: skip
    page.table(table, indent=2)
    for one in advice.candidates:
        if one.reason:
            page.line(f"{one.setup.name}: {names.clean(one.reason)}", indent=2)
    page.gap()
    page.line("Command", style="bold")
    page.line(names.clean(advice.command), indent=2)
    return page.text()


def _bounds(one: ServerCandidate) -> str:
    return "" if one.low == one.high else units.interval(one.low, one.high)

"""``fairlead demo``."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from fairlead.errors import UnsupportedInterpreterError
from fairlead.gil.observe.access import why_not
from fairlead.lab.demo import REQUESTS_PER_S, SERVER, WAYS, Demonstration, demonstrate
from fairlead.lab.isolation.stop import Stop
from fairlead.record.sample import DISTURBED
from fairlead.report.common.units import digits, seconds

INTRODUCTION = (
    f"A thread computes beside a threaded server, which gets {REQUESTS_PER_S} requests a second at",
    "random times, and beside a thread that hashes 16 kB again and again, in C. Each",
    "runs in three ways, in turns. How soon are short requests answered? How much",
    "does the thread compute, as a share of the most that it did?",
    "",
)
_BAR = 8
_HEAD = "99 of 100 within"
_WIDE = 80
"""A line that a narrower terminal wraps could not be drawn over."""
_UP = "\x1b[{}F\x1b[J"


@click.command(short_help="Show what scheduling the GIL gains and what it costs, in some 20 seconds.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="How often each way is measured.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
def demo(rounds: int, form: str) -> None:
    """Show on this machine what scheduling the GIL gains, and what it costs.

    A server with 16 threads answers requests on the loopback interface that arrive at random times, and one
    more thread computes all the time. In a second program, a thread computes beside one that makes short C
    calls. Both run on CPython as it is, with a short switch interval, and with the GIL scheduled, in turns.
    """
    if (why := why_not()) is not None:
        raise UnsupportedInterpreterError(
            f"{why}; `fairlead lab run {SERVER}` measures other interpreters of this machine"
        )
    shown, drawn = 0, form == "text" and _can_draw()
    if form == "text":
        click.echo("\n".join(INTRODUCTION))
    with Stop() as stop:
        for seen in demonstrate(rounds, stop):
            if drawn:
                lines = list(picture(seen))
                click.echo((_UP.format(shown) if shown else "") + "\n".join(lines))
                shown = len(lines)
    if form == "json":
        click.echo(json.dumps(asdict(seen), indent=2))
        return
    click.echo("\n".join([*([] if drawn else picture(seen)), "", *conclusion(seen)]))


def _can_draw() -> bool:
    """Whether a picture can be drawn over the one before."""
    return (
        sys.stdout.isatty()
        and os.environ.get("TERM", "dumb") != "dumb"
        and shutil.get_terminal_size().columns >= _WIDE
    )


def picture(seen: Demonstration) -> Iterator[str]:
    """A row for each way, with a bar: the p99 of the short requests."""
    width = max(len(name) for name in WAYS)
    longest = max(way.p99_s for way in seen.ways)
    most = max(way.steps_per_s for way in seen.ways)
    most_beside_calls = max(way.steps_beside_calls_per_s for way in seen.ways)
    yield f"{'':{width}}  {'beside the server':37}  beside C calls"
    yield f"{'':{width}}  {_HEAD:{_BAR + 9}}  half in   computed  calls/s  computed"
    for way in seen.ways:
        bar = "█" * max(1, round(_BAR * way.p99_s / longest))
        yield (
            f"{way.name:{width}}  {f'{bar} {seconds(way.p99_s)}':{_BAR + 9}}"
            f"  {seconds(way.median_s):8}  {way.steps_per_s / most * 100:6.0f} %"
            f"  {way.calls_per_s:7,.0f}  {way.steps_beside_calls_per_s / most_beside_calls * 100:6.0f} %"
        )


def conclusion(seen: Demonstration) -> Iterator[str]:
    """What that says, how far to believe it, and what to do next."""
    stock, *_, scheduled = seen.ways
    times = stock.p99_s / scheduled.p99_s
    if times > 1.1:
        yield f"Scheduled, 99 of 100 short requests are answered {times:.1f} times sooner."
    elif times < 1 / 1.1:
        yield f"Scheduled, 99 of 100 short requests took {1 / times:.1f} times as long; try more --rounds."
    else:
        yield "Scheduled or not, this server is as quick here."
    computed = scheduled.steps_beside_calls_per_s / stock.steps_beside_calls_per_s
    called = scheduled.calls_per_s / stock.calls_per_s
    yield f"Scheduled, the thread beside the C calls computes {digits(computed)} times as much, and"
    yield f"{digits(called)} times as many calls are made."
    if seen.other_load is None:
        yield "How busy the machine was with other programs is not known."
    elif seen.other_load > DISTURBED:
        yield (
            f"Other programs used {seen.other_load * 100:.0f} % of this machine meanwhile:"
            " a quiet one tells more."
        )
    yield ""
    yield "Your own program:          fairlead run -- python app.py"
    yield "Before and after:          fairlead advise --server ... --load ..."
    yield "Which thread waits for it: fairlead record -- python app.py"

"""A battle for the GIL in words and as a picture: its holder, its waiters, what happens at each switch."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fairlead.record.gil_trace import GilTrace, TraceEvent
from fairlead.report.common import names, units

SWITCHES = 8
"""So many are drawn; each looks like the next."""
LINES = 16
"""So many events are listed in the terminal."""
COLUMNS = 64


def summary(trace: GilTrace) -> Iterator[str]:
    """What happened how often, and at each switch: one sentence each."""
    counts = trace.counts
    switches = counts.get("switch", 0)
    order = ("want", "busy", "request", "forced drop", "drop", "take", "hand-over")
    kinds = [kind for kind in order if kind in counts]
    listed = ", ".join(f"{units.count(counts.get(kind, 0))} x {kind}" for kind in kinds)
    yield f"{units.count(switches)} switches at n = {trace.n}: {listed}."
    if switches:
        each = ", ".join(f"{counts.get(kind, 0) / switches:.2f} {kind}" for kind in kinds)
        yield f"At each switch: {each}."
    if trace.answer_us is not None and trace.gap_us is not None:
        answer, gap = units.seconds(trace.answer_us / 1e6), units.seconds(trace.gap_us / 1e6)
        yield f"A request was answered after {answer}, and then no thread had the GIL for {gap} (medians)."


def strip(trace: GilTrace) -> Iterator[str]:
    """One line for each thread over the first switches: "#" holds, "." waits; below them how long that is."""
    end = _end(trace)
    if not end:
        return
    label = max(len(names.clean(name)) for name in trace.threads)
    for index, name in enumerate(trace.threads):
        cells = [" "] * COLUMNS
        for mark, spans in ((".", trace.waits()), ("#", trace.holds())):
            for thread, start, stop in spans:
                if thread == index and start < end:
                    first, last = int(start / end * COLUMNS), int(min(stop, end) / end * COLUMNS)
                    cells[first : max(last, first + 1)] = mark * (max(last, first + 1) - first)
        yield f"{names.clean(name):{label}}  {''.join(cells[:COLUMNS]).rstrip()}"
    yield f"{'':{label}}  {'0':<{COLUMNS - 10}}{units.seconds(end / 1e6):>10}"


def events(trace: GilTrace) -> list[tuple[str, str, str, str]]:
    """(when, thread, what, more) of the first events."""
    return [
        (
            units.seconds(event.t_us / 1e6),
            names.clean(trace.threads[event.thread]),
            event.kind,
            _more(trace, event),
        )
        for event in trace.events[:LINES]
    ]


def _more(trace: GilTrace, event: TraceEvent) -> str:
    other = names.clean(trace.threads[event.other]) if event.other is not None else ""
    long = units.seconds(event.value_us / 1e6)
    match event.kind:
        case "want":
            return f"held by {other}" if other else ""
        case "request":
            return f"of {other or 'the holder'}, after waiting {long}"
        case "busy":
            return f"taken again by {other}, after waiting {long}"
        case "take":
            return f"after waiting {long}" if event.value_us else "it was free"
        case "hand-over":
            return f"to {other}" if other else ""
        case _:
            return f"held for {long}"


def _end(trace: GilTrace) -> float:
    """The moment up to which is drawn, in us."""
    takes = [event.t_us for event in trace.events if event.kind == "take"]
    ends = [event.t_us for event in trace.events if event.kind in ("drop", "forced drop")]
    if not ends:
        return 0.0
    return next((t for t in ends if sum(take < t for take in takes) > SWITCHES), ends[-1])


_LEFT, _ROW, _BAR, _WIDTH, _TOP = 84.0, 52.0, 22.0, 900.0, 30.0


def svg(trace: GilTrace) -> str:
    """The first switches as a picture: holds, waits, requests and hand-overs; empty without a drop."""
    end = _end(trace)
    if not end:
        return ""

    def x(t_us: float) -> float:
        return round(_LEFT + min(t_us, end) / end * (_WIDTH - _LEFT - 10), 2)

    def middle(thread: int) -> float:
        return _TOP + thread * _ROW + _BAR / 2

    height = _TOP + len(trace.threads) * _ROW + 8
    switches = sum(event.kind == "hand-over" and event.t_us <= end for event in trace.events)
    parts = [
        f'<svg class="battle" viewBox="0 0 {_WIDTH:g} {height:g}" role="img"'
        f' aria-label="The holder of the GIL and its waiters in the first {units.seconds(end / 1e6)}:'
        f' {switches} hand-overs.">'
    ]
    for step in range(5):
        t_us = end * step / 4
        anchor = "end" if step == 4 else "start"
        label = units.seconds(t_us / 1e6)
        parts.append(f'<text class="head" x="{x(t_us)}" y="12" text-anchor="{anchor}">{label}</text>')
    for index, name in enumerate(trace.threads):
        parts.append(
            f'<text class="row" x="{_LEFT - 10}" y="{middle(index)}">{escape(names.clean(name))}</text>'
        )
    for kind, spans, thickness in (("waiting", trace.waits(), 8.0), ("hold", trace.holds(), _BAR)):
        for thread, start, stop in spans:
            if start < end:
                title = (
                    f"{'waits' if kind == 'waiting' else 'holds'} for {units.seconds((stop - start) / 1e6)}"
                )
                parts.append(
                    f'<rect class="{kind}" x="{x(start)}" y="{middle(thread) - thickness / 2}"'
                    f' width="{max(0.5, x(stop) - x(start)):.2f}" height="{thickness}">'
                    f"<title>{escape(names.clean(trace.threads[thread]))} {title}</title></rect>"
                )
    for event in trace.events:
        if event.t_us > end or event.kind not in ("request", "hand-over") or event.other is None:
            continue
        kind = "asks" if event.kind == "request" else "gives"
        parts.append(
            f'<line class="{kind}" x1="{x(event.t_us)}" x2="{x(event.t_us)}" y1="{middle(event.thread)}"'
            f' y2="{middle(event.other)}"><title>{escape(names.clean(trace.threads[event.thread]))}:'
            f" {event.kind}</title></line>"
        )
    return "".join([*parts, "</svg>"])

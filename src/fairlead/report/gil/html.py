"""A recording of the GIL as one HTML page: what it means, which thread held the GIL when, and which waited
for which.

The page loads nothing and needs no library: the timeline is drawn on a canvas by a script of its own,
everything else is HTML. Names come from the recorded program, so the template escapes all text, and the
page's content policy lets only that one script run. Of several processes it has one
timeline, on which the threads of each stand together, and tables for each.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from fairlead.record.gil_summary import HISTOGRAM_BUCKETS, GilSummary
from fairlead.record.gil_timeline import Lane, Timeline
from fairlead.report.common import names, units
from fairlead.report.common.assets import asset, inert_json, page
from fairlead.report.gil.text import (
    MEANINGS,
    answer,
    circumstances,
    evidence_pairs,
    loop_rows,
    process_line,
    thread_names,
    title,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MATRIX = 12
"""Rows and columns of the blame matrix; what is beyond is summed up."""
HISTOGRAMS = 6
THREADS = 100
NARROWEST = 0.004
"""Share of all waiting below which a bar of the flame graph is left out."""


def render(summary: GilSummary, timeline: Timeline) -> str:
    """The page, for light and dark, from 360 pixels of width upwards.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    name = thread_names(summary)
    script = asset("gil.js")
    return page(
        "gil.html",
        f"GIL of {title(summary)}",
        styles=["gil.css"],
        scripts=[script],
        trusted={"data": inert_json(_timeline(timeline, summary, name)), "script": script},
        filters={"evidence": evidence_pairs},
        summary=summary,
        title=title(summary),
        headline=names.clean(summary.findings[0].title) if summary.findings else None,
        answer=list(answer(summary)),
        circumstances=circumstances(summary),
        meanings=MEANINGS,
        name=name,
        tables=_tables(summary),
        matrices=[
            {**_matrix(summary, gil.gil, name), "gil": summary.gil_name(gil.gil)}
            for gil in summary.gils
            if _waited(summary, gil.gil)
        ],
        flame=_flame(summary, name),
        caught=any(loss.holder_frames for loss in summary.stacks),
        histograms=[_histograms(thread, name) for thread in summary.threads[:HISTOGRAMS]],
        loops=loop_rows(summary),
        left_out=timeline.left_out,
        drawn=len(timeline.lanes),
    )


def _tables(summary: GilSummary) -> list[dict[str, Any]]:
    """The threads of each process; of one process without a heading."""
    groups = [
        (process_line(process), process.gils, process.wall_seconds, process.meta)
        for process in summary.processes
    ] or [("", tuple(gil.gil for gil in summary.gils), summary.wall_seconds, summary.process)]
    tables = []
    for heading, gils, wall, facts in groups:
        mine = [thread for thread in summary.threads if thread.gil in gils]
        tables.append(
            {
                "heading": heading,
                "gils": {gil: gil - gils[0] for gil in gils} if len(gils) > 1 else {},
                "wall": wall,
                "facts": facts,
                "threads": mine[:THREADS],
                "hidden": max(0, len(mine) - THREADS),
            }
        )
    return tables


def _waited(summary: GilSummary, gil: int) -> float:
    return sum(cell.seconds for cell in summary.blame if cell.gil == gil)


def _matrix(summary: GilSummary, gil: int, name: dict[int, str]) -> dict[str, Any]:
    """Waiters down, holders across, dearest first, each with the rest summed up; "no thread" comes last."""
    cells = {(c.waiter, c.holder): c.seconds for c in summary.blame if c.gil == gil}
    by_waiter: defaultdict[int, float] = defaultdict(float)
    by_holder: defaultdict[int, float] = defaultdict(float)
    for (waiter, holder), seconds in cells.items():
        by_waiter[waiter] += seconds
        by_holder[holder] += seconds
    free = by_holder.pop(0, 0.0)
    waiters = sorted(by_waiter, key=lambda serial: -by_waiter[serial])[:MATRIX]
    holders = sorted(by_holder, key=lambda serial: -by_holder[serial])[:MATRIX]
    others = len(by_holder) > len(holders)
    dearest = max(cells.values(), default=0.0)
    rows = []
    for waiter in waiters:
        behind = [cells.get((waiter, holder), 0.0) for holder in holders]
        if others:
            behind.append(max(0.0, by_waiter[waiter] - sum(behind) - cells.get((waiter, 0), 0.0)))
        behind.append(cells.get((waiter, 0), 0.0))
        rows.append(
            {
                "waiter": name.get(waiter, f"thread {waiter}"),
                "cells": [{"seconds": s, "heat": round(s / dearest, 3) if dearest else 0} for s in behind],
                "sum": by_waiter[waiter],
            }
        )
    heads = [name.get(holder, f"thread {holder}") for holder in holders]
    return {
        "heads": heads + (["others"] if others else []) + ["no thread (free)"],
        "rows": rows,
        "hidden": len(by_waiter) - len(waiters),
        "free": free,
    }


def _flame(summary: GilSummary, name: dict[int, str]) -> list[dict[str, Any]]:
    """Bars of a flame graph of time lost to waiting: by holder, then by its stack from the outermost frame
    in."""
    total = sum(loss.seconds for loss in summary.stacks)
    root: dict[str, Any] = {"children": {}, "seconds": total}
    for loss in summary.stacks:
        path = [name.get(loss.holder, f"thread {loss.holder}")]
        path += [
            f"{names.clean(f)} ({names.clean(file)}:{line})" for f, file, line in reversed(loss.holder_frames)
        ]
        if not loss.holder_frames and loss.holder:
            path.append("no stack: waits under the threshold")
        node = root
        for step in path:
            node = node["children"].setdefault(step, {"children": {}, "seconds": 0.0})
            node["seconds"] += loss.seconds
    bars: list[dict[str, Any]] = []

    def place(node: dict[str, Any], left: float, depth: int) -> None:
        for label, child in sorted(node["children"].items(), key=lambda item: -item[1]["seconds"]):
            width = child["seconds"] / total
            if width >= NARROWEST:
                bars.append(
                    {
                        "label": label,
                        "seconds": child["seconds"],
                        "share": width,
                        "left": round(left * 100, 3),
                        "width": round(width * 100, 3),
                        "depth": depth,
                        "kind": _bar_kind(label, depth),
                    }
                )
                place(child, left, depth + 1)
            left += width

    if total > 0:
        place(root, 0.0, 0)
    return bars


def _bar_kind(label: str, depth: int) -> str:
    if depth == 0:
        return "thread"
    return "none" if label.startswith("no stack") else "frame"


def _histograms(thread: Any, name: dict[int, str]) -> dict[str, Any]:
    """Waits and holds of one thread by duration, in bars over the buckets that either has."""
    waits = thread.wait_histogram or (0,) * HISTOGRAM_BUCKETS
    holds = thread.held_histogram or (0,) * HISTOGRAM_BUCKETS
    used = [k for k in range(HISTOGRAM_BUCKETS) if waits[k] or holds[k]]
    first, last = (used[0], used[-1]) if used else (0, 0)
    most = max((*waits, *holds, 1))
    return {
        "thread": name[thread.serial],
        "gil": thread.gil,
        "bars": [
            {
                "k": k - first,
                "from": units.seconds(2.0**k / 1e9),
                "to": units.seconds(2.0 ** (k + 1) / 1e9),
                "waits": waits[k],
                "holds": holds[k],
                "wait_height": round(46 * waits[k] / most, 2),
                "hold_height": round(46 * holds[k] / most, 2),
            }
            for k in range(first, last + 1)
        ],
        "empty": not used,
        "low": units.seconds(2.0**first / 1e9),
        "high": units.seconds(2.0 ** (last + 1) / 1e9),
    }


def _timeline(timeline: Timeline, summary: GilSummary, name: dict[int, str]) -> dict[str, Any]:
    """What the script draws: numbers as base64 of little-endian arrays, times in units that 32 bits can
    hold. The threads of one process stand together."""
    unit = max(1, -(-timeline.end_ns // (2**32 - 1)))
    process = {gil: place for place, one in enumerate(summary.processes) for gil in one.gils}
    several = len(summary.gils) > 1 and not summary.processes
    return {
        "end": timeline.end_ns,
        "unit": unit,
        "bin": timeline.bin_ns,
        "shortest": timeline.shortest_ns,
        "lanes": [
            {
                "name": name.get(lane.serial, f"thread {lane.serial}")
                + (f" · GIL {lane.gil}" if several else ""),
                "gil": lane.gil,
                "group": process.get(lane.gil, 0),
                **_lane(lane, timeline.bin_ns, unit),
            }
            for lane in sorted(timeline.lanes, key=lambda lane: process.get(lane.gil, 0))
        ],
    }


def _lane(lane: Lane, bin_ns: int, unit: int) -> dict[str, str]:
    return {
        "held": _base64(lane.held * 65535 // bin_ns, "<u2"),
        "waited": _base64(lane.waited * 65535 // bin_ns, "<u2"),
        "holds": _base64(lane.holds // unit, "<u4"),
        "waits": _base64(lane.waits // unit, "<u4"),
    }


def _base64(values: NDArray[np.int64], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()

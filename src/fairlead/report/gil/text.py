"""A recording of the GIL in the terminal: first the answer (what is the matter, who waits for it, what to do,
and what it is not), then the threads, the findings in full, the figures behind them, and how far to trust
them."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fairlead.record import places
from fairlead.record.gil_summary import (
    SERIALS_OF_A_PROCESS,
    Finding,
    GilProcess,
    GilSummary,
    GilThread,
    StackLoss,
)
from fairlead.record.recording import Frames
from fairlead.report.common import names, units

ROWS = 12
"""How many threads, cells and stacks are shown; the rest is counted."""

BESIDES = 2
"""How many findings are named after the first, before everything else."""
WAITERS = 3
PLACE = 48
"""Characters of a path; a longer one loses its beginning."""

MEANINGS = {
    "convoy": "Convoy",
    "thread-start": "Start of threads",
    "import": "Import",
    "switch-interval": "Switch interval",
    "collection": "Garbage collection",
    "callback": "Callback of a loop",
    "lock": "Lock",
    "long-hold": "Long hold",
    "destruction": "Destruction",
    "lock-square": "Lock square",
    "starvation": "Starvation",
    "no-core": "No core",
    "switch-storm": "Switch storm",
    "saturation": "Saturation",
    "unexplained": "Unexplained",
    "not-the-gil": "Not the GIL",
}


def render(summary: GilSummary, width: int = 100) -> str:
    """The report as plain text in lines of at most so many characters, ending without a newline."""
    return "\n".join(_lines(summary, max(40, width)))


def circumstances(summary: GilSummary) -> str:
    """Under which policy, and beside what else, in a few words."""
    policies = " then ".join(map(names.clean, summary.policies)) or "policy not recorded"
    if summary.policies:
        policies = f"policy {policies}"
    if summary.watchdog_tripped:
        policies += " (the watchdog switched the scheduler off)"
    if summary.other_load is None:
        return policies
    return f"{policies}, other programs used {units.percent(summary.other_load)} of {summary.cores} cores"


def title(summary: GilSummary) -> str:
    """Which program, for how long."""
    process = summary.process
    program = " ".join(map(str, process.get("argv", ()))) or "a Python program"
    return names.shorten(names.clean(program), 80)


def thread_names(summary: GilSummary) -> dict[int, str]:
    """A name for each thread by its serial, unlike all others; 0 is none."""
    given = {thread.serial: names.clean(thread.name) for thread in summary.threads}
    for thread in summary.threads:
        if process := summary.process_of(thread.gil):
            given[thread.serial] = f"{names.clean(thread.name)} ({process.name})"
    taken = list(given.values())
    return {
        0: "no thread (free)",
        **{
            serial: name if taken.count(name) == 1 else f"{name} #{serial % SERIALS_OF_A_PROCESS}"
            for serial, name in given.items()
        },
    }


def process_line(process: GilProcess) -> str:
    """Which one of several processes, when it was recorded, and how its GIL fared."""
    program = names.shorten(names.clean(" ".join(map(str, process.meta.get("argv", ())))), 60)
    parent = process.meta.get("parent_pid")
    origin = f"forked by {parent}, " if parent else ""
    return (
        f"{process.name}, {program}: {origin}{units.seconds(process.wall_seconds)} from"
        f" {units.seconds(process.start_seconds)} on, GIL held {units.seconds(process.held_seconds)},"
        f" waited for {units.seconds(process.waited_seconds)}"
    )


def frame(frames: Frames) -> str:
    """The user's own line, and what it had called: "encode < export (shop/app.py:31)"."""
    function, file, line = places.own(frames) or frames[0]
    inner = places.short(frames[0][0])
    called = "" if frames[0] == (function, file, line) else f"{names.clean(inner)} < "
    return f"{called}{names.clean(places.short(function))} ({places.tail(names.clean(file), PLACE)}:{line})"


def waited(finding: Finding) -> str:
    """Who waited for it, and for how long each."""
    said = [f"{names.clean(name)} {units.seconds(seconds)}" for name, seconds in finding.waiters[:WAITERS]]
    rest = finding.waiters[WAITERS:]
    if rest:
        said.append(f"{len(rest)} more {units.seconds(sum(seconds for _, seconds in rest))}")
    return ", ".join(said)


def by_holder(stacks: Iterable[StackLoss]) -> dict[tuple[int, Frames], float]:
    """Seconds of others' waiting by (holder, its stack), dearest first; without what has no stack."""
    sums: defaultdict[tuple[int, Frames], float] = defaultdict(float)
    for loss in stacks:
        if loss.holder_frames:
            sums[loss.holder, loss.holder_frames] += loss.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def answer(summary: GilSummary) -> Iterator[tuple[str, str]]:
    """After the title of the first finding: who waited, what to do, what it is not, and the next findings."""
    if not summary.findings:
        return
    first, *others = summary.findings
    for label, text in (
        ("Waited", waited(first)),
        ("Do", first.advice),
        ("Not", "; ".join(summary.excluded)),
        *(("Besides", finding.title) for finding in others[:BESIDES]),
    ):
        if text:
            yield label, names.clean(text)


def evidence(values: dict[str, float | int | str]) -> str:
    """The numbers behind a finding in one line: "mean wait 5.1 ms, waits 188"."""
    return ", ".join(" ".join(pair) for pair in evidence_pairs(values))


def evidence_pairs(values: dict[str, float | int | str]) -> Iterator[tuple[str, str]]:
    """What each number is, and the number with its unit."""
    for key, value in values.items():
        for suffix, scale in (("_ms", 1e-3), ("_us", 1e-6), ("_seconds", 1.0)):
            if key.endswith(suffix) and not isinstance(value, str):
                yield key.removesuffix(suffix).replace("_", " "), units.seconds(value * scale)
                break
        else:
            label = key.replace("_", " ")
            if isinstance(value, str):
                yield label, names.clean(value)
            elif "share" in key:
                yield label, units.percent(value)
            else:
                yield label, units.count(value) if value >= 100 else f"{value:.3g}"


def loop_rows(summary: GilSummary) -> list[tuple[str, ...]]:
    """Each watched event loop, then the callbacks that made others late; the head first."""
    head = ("event loop", "late", "of", "own callbacks", "waiting for GIL", "no core")
    loops = [
        (
            names.shorten(names.clean(loop.name), 40),
            units.count(loop.late),
            units.count(loop.beats),
            units.seconds(loop.own_seconds),
            units.seconds(loop.gil_seconds),
            units.seconds(loop.core_seconds),
        )
        for loop in summary.loops
    ]
    callbacks = [
        (f"  {names.shorten(names.clean(name), 60)}", "", "", units.seconds(seconds), "", "")
        for name, seconds in summary.callbacks[:ROWS]
    ]
    return [head, *loops, *callbacks]


def _lines(summary: GilSummary, width: int) -> Iterator[str]:
    process = summary.process
    version = f"{process.get('implementation', 'Python')} {process.get('python_version', '')}".strip()
    for problem in summary.problems:
        yield from _wrapped(f"Problem: {names.clean(problem)}", width, 0)
    yield from _answer(summary, width)
    yield ""
    yield names.shorten(f"The GIL of {title(summary)}", width)
    name = thread_names(summary)
    lasted = units.seconds(summary.wall_seconds)
    which = f"{len(summary.processes)} processes" if summary.processes else f"pid {process.get('pid')}"
    about = f"{names.clean(version)}, {which}, {lasted}, {summary.events:,} events"
    yield from _wrapped(f"{about}; {circumstances(summary)}", width, 2)
    if not summary.processes:
        yield "\nThreads"
        yield from _threads(summary.threads, summary.wall_seconds, name, width)
    for one in summary.processes:
        yield ""
        yield from _wrapped(f"Threads of {process_line(one)}", width, 0, 2)
        mine = [thread for thread in summary.threads if thread.gil in one.gils]
        yield from _threads(mine, one.wall_seconds, name, width)
    for number, finding in enumerate(summary.findings, start=1):
        yield ""
        yield from _wrapped(f"{number}. {finding.kind}: {names.clean(finding.summary)}", width, 0, 3)
        yield from _wrapped(f"Evidence: {evidence(finding.evidence)}.", width, 3)
        if number > 1:
            yield from _wrapped(f"Advice: {names.clean(finding.advice)}", width, 3)
    if summary.blame:
        yield "\nWhich thread waited behind which"
        cells = [
            (
                name[cell.waiter],
                "behind",
                name.get(cell.holder, f"thread {cell.holder}"),
                units.seconds(cell.seconds),
            )
            for cell in summary.blame[:ROWS]
        ]
        yield from _table(cells, width)
        yield from _more(len(summary.blame))
    caught = by_holder(summary.stacks)
    if caught:
        yield "\nWhat holders were doing meanwhile (waits over the threshold)"
        for (holder, frames), seconds in list(caught.items())[:ROWS]:
            who = name.get(holder, f"thread {holder}")
            yield from _wrapped(f"{units.seconds(seconds):>8}  {who}: {frame(frames)}", width, 2, 12)
        yield from _more(len(caught))
    if summary.loops:
        yield "\nHow late event loops were (delays over the threshold)"
        yield from _table(loop_rows(summary), width)
        yield from _more(len(summary.callbacks))
    yield ""
    yield from _wrapped(f"Trust: {summary.trust.statement}", width, 0)


def _answer(summary: GilSummary, width: int) -> Iterator[str]:
    if not summary.findings:
        yield "No thread took the GIL while this was recorded."
        return
    yield from _wrapped(f"{names.clean(summary.findings[0].title)}.", width, 0)
    for label, text in answer(summary):
        yield from _wrapped(f"{label + ':':9}{text}", width, 2, 11)


def _wrapped(text: str, width: int, indent: int, further: int | None = None) -> Iterator[str]:
    """Lines that keep a number and its unit together."""
    bound = units.bound(text)
    yield from (
        line.replace("\u00a0", " ")
        for line in textwrap.wrap(
            bound,
            width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (indent if further is None else further),
            break_on_hyphens=False,
        )
    )


def _threads(
    threads: Sequence[GilThread], wall_seconds: float, name: dict[int, str], width: int
) -> Iterator[str]:
    """Those of one process."""
    wall = wall_seconds or 1.0
    gils = sorted({thread.gil for thread in threads})
    head = (
        "thread",
        "held",
        "",
        "off CPU",
        "waited",
        "",
        "longest wait",
        "turns",
        "waits",
        "forced",
        "requests",
    )
    rows = [
        (
            names.shorten(name[thread.serial], 32)
            + (f" on GIL {thread.gil - gils[0]}" if len(gils) > 1 else ""),
            units.seconds(thread.held_seconds),
            units.percent(thread.held_seconds / wall),
            units.seconds(thread.held_off_cpu_seconds),
            units.seconds(thread.waited_seconds),
            units.percent(thread.waited_seconds / wall),
            units.seconds(thread.max_wait_seconds),
            units.count(thread.acquisitions),
            units.count(thread.contended),
            units.count(thread.forced_drops),
            units.count(thread.requests),
        )
        for thread in threads[:ROWS]
    ]
    kept = list(range(len(head)))
    for least in ("requests", "forced", "off CPU", "turns", "waits", "longest wait"):
        if 2 + sum(max(len(row[at]) for row in (head, *rows)) + 2 for at in kept) - 2 <= width:
            break
        kept.remove(head.index(least))
    yield from _table([tuple(row[at] for at in kept) for row in (head, *rows)], width)
    yield from _more(len(threads))


def _more(count: int) -> Iterator[str]:
    if count > ROWS:
        yield f"  ... and {count - ROWS} more (--format json has all)"


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Columns of text to the left, of numbers to the right; a line that is too long loses its middle."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [
        all(not cell or cell[0].isdigit() or cell == units.NOTHING for cell in column[1:])
        for column in columns
    ]
    right[0] = False
    for row in rows:
        cells = (
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, size, to_right in zip(row, widths, right, strict=True)
        )
        yield names.shorten(("  " + "  ".join(cells)).rstrip(), width)

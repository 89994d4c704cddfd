"""The answers of a report, before its details: one sentence for each question that the run can answer.

Everything in them is computed from the summary. An answer is about one interpreter, the first that has the
figures; what the others say to the same stands beside it in a few characters. It is as sure as the least sure
figure in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.record.summary import Cell, Ranking, Series, Subject, Summary, Verdict
from fairlead.report import names, units, words

_SURENESS: tuple[Verdict, ...] = ("stable", "noisy", "bimodal", "undecided")
"""The verdicts, the surest first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, answered."""

    topic: str
    """What it is about, in a few words: "I/O"."""
    text: str
    """One or two sentences."""
    verdict: Verdict
    """Of the least sure figure in it."""
    experiment: str
    """The id, or the group, whose section has the evidence."""
    interpreter: str
    """Which one it is about."""
    figures: dict[str, float | str]
    """The same for programs: seconds, ratios, KiB, names."""
    others: tuple[tuple[str, str], ...] = ()
    """What other interpreters say: which, and what."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What one interpreter says to a question."""

    text: str
    short: str
    cells: Sequence[Cell | Verdict]
    figures: dict[str, float | str]


class _Interpreter:
    """What was measured on one interpreter, by experiment and by what its variants differ in."""

    def __init__(self, label: str, series: Sequence[Series], rankings: Sequence[Ranking]) -> None:
        self.label = label
        self.rankings = rankings
        self._series = series

    def series(self, experiment: str, **wanted: Any) -> Series | None:
        """The first measured series of the experiment whose variant has these values, where it has them."""
        for one in self._series:
            fits = all(one.variant.get(name, value) == value for name, value in wanted.items())
            if one.experiment == experiment and fits and words.measured(one):
                return one
        return None

    def cell(self, experiment: str, *, least: bool = False, **wanted: Any) -> Cell | None:
        """The cell of the greatest n, or of the least, of that series."""
        one = self.series(experiment, **wanted)
        measured = [cell for cell in one.cells if cell.median is not None] if one else []
        return (measured[0] if least else measured[-1]) if measured else None


def answers(summary: Summary) -> tuple[Answer, ...]:
    """What the run says: which model for which work, what threads cost, what the GIL does, the square."""
    roster = names.Roster(summary.series)
    measured = [
        _Interpreter(
            who.label,
            [one for one in summary.series if roster.of(one) == who],
            [one for one in summary.rankings if roster.of(one.places[0].series) == who],
        )
        for who in roster
    ]
    subjects = {subject.id: subject for subject in summary.subjects}
    groups = dict.fromkeys(ranking.group for ranking in summary.rankings)
    asked: list[tuple[str, str, Callable[[_Interpreter], _Said | None]]] = [
        (words.work(group, subjects), group, lambda on, group=group: _best(on, group, subjects))  # type: ignore[misc]
        for group in sorted(groups, key=words.work_order)
    ]
    asked += _QUESTIONS
    return tuple(
        found
        for topic, experiment, question in asked
        if (found := _asked(topic, experiment, question, measured))
    )


def _asked(
    topic: str,
    experiment: str,
    question: Callable[[_Interpreter], _Said | None],
    measured: Iterable[_Interpreter],
) -> Answer | None:
    said = [(on.label, found) for on in measured if (found := question(on))]
    if not said:
        return None
    (label, first), *rest = said
    verdicts = [one if isinstance(one, str) else one.verdict for one in first.cells]
    return Answer(
        topic=topic,
        text=first.text,
        verdict=max(verdicts, key=_SURENESS.index),
        experiment=experiment,
        interpreter=label,
        figures=first.figures,
        others=tuple((other, found.short) for other, found in rest),
    )


# ---- which model, which method


def _best(on: _Interpreter, group: str, subjects: dict[str, Subject]) -> _Said | None:
    """The place that is best in the ranking with the most tasks."""
    rankings = sorted((one for one in on.rankings if one.group == group), key=lambda one: one.n)
    if not rankings:
        return None
    places = rankings[-1].places
    best = next((place for place in places if place.standing == "best"), None)
    fastest = best or min(places, key=lambda place: place.times)
    base = next((place for place in places if place.case.endswith("sequential")), None)
    cell, way = fastest.cell, words.way(fastest, subjects)
    case = fastest.case.removeprefix("free-threaded ")  # which the interpreter's name says
    verb = "Best" if best else "Nothing is sure yet; the fastest was"
    text = (
        f"{verb}: {way}. {cell.n} tasks take {units.seconds(cell.median)} and "
        f"{units.seconds(cell.cpu_s)} of processor time"
    )
    figures: dict[str, float | str] = {"best": case, "tasks": cell.n, "seconds": cell.median or 0.0}
    cells: list[Cell | Verdict] = [cell] if best else [cell, "undecided"]
    short = f"{case} ({units.seconds(cell.median)})"
    if base and base is not fastest and base.cell.median and cell.median:
        times = base.cell.median / cell.median
        figures["times_faster_than_sequential"] = times
        text += f", {units.digits(times)} times faster than one after the other"
        cells.append(base.cell)
        short = f"{case} ({units.factor(times)})"
    return _Said(f"{text}.", short, cells, figures)


# ---- what the GIL does


def _thread(on: _Interpreter) -> _Said | None:
    """What a thread costs, alone and beside one that computes."""
    alone = on.cell("gil.thread-cost", beside=0, stack_kb="default", scheduler="off")
    if alone is None or alone.median is None:
        return None
    costs = [f"{units.seconds(alone.median)} to start"]
    if (end := alone.metrics.get("end_s")) is not None:
        costs.append(f"{units.seconds(end)} to join")
    if memory := alone.metrics.get("memory_kb"):
        costs.append(f"{units.memory(memory)} of memory")
    text = f"One costs {', '.join(costs[:-1])}{' and ' if costs[:-1] else ''}{costs[-1]}"
    cells, figures = [alone], {"start_s": alone.median}
    beside = on.cell("gil.thread-cost", beside=1, stack_kb="default", scheduler="off")
    if beside and beside.median:
        times = beside.median / alone.median
        text += f"; beside a thread that computes {units.seconds(beside.median)} to start, {_times(times)}"
        cells.append(beside)
        figures |= {"start_beside_cpu_thread_s": beside.median, "times": times}
    return _Said(f"{text}.", units.seconds(alone.median), cells, dict(figures))


def _convoy(on: _Interpreter) -> _Said | None:
    """How many times longer a request takes beside a computing thread."""

    def request(beside: str, scheduler: str = "off") -> Cell | None:
        return on.cell(
            "gil.convoy", least=True, beside=beside, scheduler=scheduler, computing=1, interval_ms=5
        )

    alone = on.cell("gil.convoy", least=True, beside="nothing")
    thread, process, scheduled = request("threads"), request("processes"), request("threads", "interactive")
    if not (alone and thread and alone.median and thread.median):
        return None
    times = thread.median / alone.median
    text = (
        f"A request takes {units.seconds(alone.median)} to a server that is alone, and "
        f"{units.seconds(thread.median)} beside a thread that computes: {_times(times)}"
    )
    cells, figures = [alone, thread], {"alone_s": alone.median, "beside_s": thread.median, "times": times}
    for cell, what, key in (
        (process, "beside a process that computes", "beside_process_s"),
        (scheduled, "with the GIL scheduled by fairlead", "scheduled_s"),
    ):
        if cell and cell.median:
            text += f"; {what} {units.seconds(cell.median)}"
            cells.append(cell)
            figures[key] = cell.median
    return _Said(f"{text}.", units.factor(times), cells, dict(figures))


def _shared(experiment: str, work: str) -> Callable[[_Interpreter], _Said | None]:
    """How many times faster several threads do what one does."""

    def question(on: _Interpreter) -> _Said | None:
        one = on.series(experiment, scheduler="off") or on.series(experiment)
        cells = [cell for cell in one.cells if cell.median] if one else []
        if len(cells) < 2 or cells[0].n != 1:
            return None
        alone = cells[0]
        fastest = min(cells[1:], key=lambda cell: cell.median or 0.0)
        times = (alone.median or 0.0) / (fastest.median or 1.0)
        what = f"{fastest.n} threads {work}"
        text = (
            f"{what} {units.digits(times)} times as fast as one"
            if times >= _SAME
            else f"{what} no faster than one ({units.seconds(fastest.median)} and "
            f"{units.seconds(alone.median)})"
        )
        return _Said(
            f"{text}.",
            units.factor(times),
            [alone, fastest],
            {"threads": fastest.n, "times": times},
        )

    return question


_SAME = 1.1
"""Less than this many times faster is no faster."""


def _battle(on: _Interpreter) -> _Said | None:
    cell = on.cell("gil.battle", cores="all", count="nothing")
    slower = cell.metrics.get("slower") if cell else None
    if cell is None or slower is None:
        return None
    text = f"Two threads take {_times(slower)} as long as one that does the work of both, one after the other"
    return _Said(f"{text}.", units.factor(slower), [cell], {"times": slower})


def _signal(on: _Interpreter) -> _Said | None:
    first = on.cell("gil.signal", least=True, scheduler="off", interval_ms=5)
    last = on.cell("gil.signal", scheduler="off", interval_ms=5)
    if first is None or last is None or first.median is None or last.median is None:
        return None
    text = (
        f"A handler in Python runs {units.seconds(first.median)} after its signal beside {_threads(first.n)}"
    )
    if last.n > first.n:
        text += f", {units.seconds(last.median)} after it beside {last.n}"
    figures: dict[str, float | str] = {"threads": last.n, "seconds": last.median}
    return _Said(f"{text}.", units.seconds(first.median), [first, last], figures)


def _threads(n: int) -> str:
    return "1 computing thread" if n == 1 else f"{n} computing threads"


def _times(times: float) -> str:
    return f"{units.digits(times)} times"


# ---- the square

_SQUARES = {
    "square.mutex": "passing a lock",
    "square.thread-start": "starting threads",
    "square.semaphore": "waking them with a semaphore",
    "square.process-start": "starting processes",
    "square.process-mutex": "passing a lock between processes",
}


_PLAIN = {"policy": "other", "cores": "all", "scheduler": "off"}


def _square(on: _Interpreter) -> _Said | None:
    """The exponent of every square that has one."""
    found = [
        (what, one)
        for experiment, what in _SQUARES.items()
        if (one := on.series(experiment, **_PLAIN) or on.series(experiment)) and one.fit.exponent is not None
    ]
    if not found:
        return None
    listed = [f"{what} {words.power(one.fit.exponent)}" for what, one in found]
    text = f"{', '.join(listed[:-1])}{' and ' if listed[:-1] else ''}{listed[-1]}"
    figures: dict[str, float | str] = {one.experiment: one.fit.exponent or 0.0 for _, one in found}
    return _Said(
        f"With n of them the time grows so: {text}.",
        words.power(found[0][1].fit.exponent),
        [one.fit.verdict for _, one in found],
        figures,
    )


_CURES = {
    "mutex": ("passing a lock", "with a CombiningLock"),
    "thread-start": ("starting them", "behind a StartGate"),
    "semaphore": ("waking them", "in a chain"),
}


def _cure(on: _Interpreter) -> _Said | None:
    """What the cures leave of each square, at the greatest size that both have."""
    told: list[str] = []
    cells: list[Cell | Verdict] = []
    figures: dict[str, float | str] = {}
    for name, (what, how) in _CURES.items():
        plain = on.series(f"square.{name}", **_PLAIN)
        cures = (
            ("", how, on.series(f"cured.{name}", **_PLAIN)),
            ("scheduled ", "with the GIL scheduled", on.series(f"square.{name}", scheduler="interactive")),
        )
        for key, cure, cured in cures:
            both = _both(plain, cured) if plain and cured and plain is not cured else None
            if both is None:
                continue
            one, other = both
            begin = (
                f"{what} takes {units.seconds(one.median)} with {one.n} threads"
                if one not in cells
                else f"at {one.n}"
            )
            told.append(f"{begin}, {cure} {units.seconds(other.median)}")
            cells += [one, other]
            figures[f"{key}square.{name}"] = (one.median or 0.0) / (other.median or 1.0)
    if not told:
        return None
    text = "; ".join(told)
    short = ", ".join(units.factor(float(times)) for times in figures.values())
    return _Said(f"{text[:1].upper()}{text[1:]}.", short, cells, figures)


def _both(one: Series, other: Series) -> tuple[Cell, Cell] | None:
    """Their cells at the greatest size that both have."""
    by_size = {cell.n: cell for cell in other.cells if cell.median}
    both = [(cell, by_size[cell.n]) for cell in one.cells if cell.median and cell.n in by_size]
    return both[-1] if both else None


_QUESTIONS: list[tuple[str, str, Callable[[_Interpreter], _Said | None]]] = [
    ("a thread", "gil.thread-cost", _thread),
    ("the convoy", "gil.convoy", _convoy),
    ("threads that compute", "gil.countdown", _shared("gil.countdown", "count down")),
    ("threads that hash", "gil.sha256", _shared("gil.sha256", "hash")),
    ("the battle", "gil.battle", _battle),
    ("signals", "gil.signal", _signal),
    ("the square", "square.mutex", _square),
    ("its cure", "cured.mutex", _cure),
]


def lines(found: Iterable[Answer]) -> Iterator[tuple[str, str]]:
    """Topic and sentence, with what is not sure about it and what other interpreters say."""
    for answer in found:
        doubt = "" if answer.verdict == "stable" else f" [{answer.verdict}]"
        others = "; ".join(f"{who}: {what}" for who, what in answer.others)
        yield answer.topic, f"{answer.text}{doubt}{f' ({others})' if others else ''}"

"""What ``fairlead advise`` found: the pure data between the measuring and the reports, and its file.

Times are seconds, memory is KiB. ``None`` means "not measured", never zero.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fairlead.errors import OutputError, RecordError

SCHEMA = 5
"""Of the file; a reader refuses a newer one."""

Kind = Literal["sequential", "threads", "processes", "interpreters", "async", "free-threaded"]
"""Ways of making the calls. sequential: one after another, without a pool. free-threaded: threads of another
interpreter, one without a GIL that was found on this machine."""

CandidateStatus = Literal["measured", "refused", "failed", "wrong"]
"""refused: not run, because it cannot be or must not be. failed: it was run and did not come to an end.
wrong: its results are not those of the sequential run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the function does with its time, seen over ``looked_at`` calls, one at a time."""

    looked_at: int
    call_s: float
    """Mean time of a call."""
    shortest_s: float
    longest_s: float
    gil: float
    """Share of the time on a core with the GIL."""
    free: float
    """Share of the time on a core without the GIL."""
    waiting: float
    """Share of the time that is neither."""
    gil_from: Literal["observation", "naps", "none"]
    """How the share with the GIL is known: exactly, from naps of a thread beside it, or there is no GIL."""
    coroutines: bool
    cannot_be_sent: str | None
    """Why a call or its result cannot go to another process or interpreter; None if it can."""
    argument_bytes: float | None
    """Mean size of a call, pickled."""
    result_bytes: float | None
    cannot_load: Mapping[str, str]
    """Modules that interpreters with a GIL of their own cannot import, and what is said of each."""
    accumulates: tuple[str, ...]
    """Shared state that every call changes."""
    caches: tuple[str, ...]
    """Shared state that only the first call with an item changes."""
    guarded: bool
    """Whether it knows a lock."""
    changes_items: bool
    varies: bool
    """The same calls give other results in another process, so that results could not be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way of making the calls, and how it did."""

    kind: Kind
    workers: int
    interpreter: str
    """ "CPython 3.14.0"."""
    status: CandidateStatus
    reason: str | None = None
    """Why it was refused, how it failed, or what is wrong with its results."""
    total_s: float | None = None
    """Time of all the calls, starts and first calls counted: that of calls in turn divided by ``speedup``. It
    is ``start_s`` + ``once_s`` + requests x ``call_s``."""
    rounds: tuple[tuple[int, float], ...] = ()
    """(number, seconds of all the calls) of each round that it was measured in, with a process of its own."""
    speedup: float | None = None
    """Against calls in turn: the median of the ratios of the rounds that both ran in; ``low`` and ``high``
    bound it at 95 %, from three rounds on."""
    low: float | None = None
    high: float | None = None
    start_s: float | None = None
    """From asking for the pool until every worker had loaded the function, and its end."""
    once_s: float | None = None
    """What the workers' first calls take longer than others: imports and caches."""
    call_s: float | None = None
    """Between the ends of two calls."""
    calls: int = 0
    """In all its processes."""
    cpu: float | None = None
    """Cores kept busy during the passes: 1.93 of 2."""
    cpu_call_s: float | None = None
    """Processor time of a call, the pool's own share counted."""
    memory_kib: float | None = None
    """The most of all its processes together, shared pages counted once (Pss)."""
    p50_s: float | None = None
    """Median time of a single call, from its begin in its worker to its end."""
    p99_s: float | None = None
    """What 99 of 100 calls take at most; None where fewer than a hundred were timed."""
    foreign: float | None = None
    """The share of the cores that other programs took meanwhile."""

    @property
    def parts(self) -> tuple[float, float]:
        """(seconds once, seconds a call) that its time is made of.

        Raises:
            ValueError: it was not measured.
        """
        if self.start_s is None or self.once_s is None or self.call_s is None:
            raise ValueError("not measured")
        return self.start_s + self.once_s, self.call_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How many calls a second a kind makes, over its workers."""

    kind: Kind
    points: tuple[tuple[int, float], ...]
    """(workers, calls a second), starts and first calls not counted; calls in turn are one worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What to do."""

    kind: Kind
    workers: int
    speedup: float | None
    """That of the candidate, and its bounds."""
    low: float | None
    high: float | None
    break_even: float | None
    """Calls from which on a pool is worth having: the choice, or the first of the pools where there is none.
    None: no number of calls makes one of them worth it."""
    loss: float | None
    """What taking this rather than the best of the others is expected to cost, as a share of the time. None
    with fewer than three rounds: it is not known."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All that was found out of one function."""

    target: str
    """ "module:function", or the name of what was given in code."""
    made: str
    """When, ISO 8601."""
    python: str
    cores: int
    gil: bool
    environment: Mapping[str, Any]
    requests: int
    """Calls that the advice is for."""
    items: int
    memory_mib: int | None
    """The most memory that the choice may take; None: no bound was given."""
    budget_s: float
    used_s: float
    calls: int
    """How often the function was called to find it out."""
    work: Work
    choice: Pick
    candidates: tuple[Candidate, ...]
    curves: tuple[Curve, ...]
    code: str
    again: tuple[str, ...]
    """When to ask again."""
    notes: tuple[str, ...]
    """What else there is to know."""

    def __str__(self) -> str:
        """One sentence: what to do, and why."""
        return f"{headline(self)}: {'; '.join(self.choice.reasons)}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which ``fairlead report`` and ``load`` read.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(dumps(self), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{path}: cannot be written ({error.strerror}); choose another place"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePlan:
    """What a measuring would do, as far as it is known before the function has been called."""

    target: str
    items: int
    requests: int
    budget_s: float
    max_calls: int | None
    ways: tuple[tuple[Kind, int, str], ...]
    """(kind, workers, interpreter) that would be measured. What calls do may rule some out, or add counts."""
    refused: Mapping[str, str]
    """Kinds that would not, and why."""


NAMES: dict[Kind, str] = {
    "sequential": "no pool",
    "threads": "ThreadPool",
    "processes": "ProcessPool",
    "interpreters": "InterpreterPool",
    "async": "AsyncPool",
    "free-threaded": "threads without a GIL",
}
"""What each kind is called in a sentence."""


def in_workers(count: int) -> str:
    """ "1 worker", "2 workers"."""
    return "1 worker" if count == 1 else f"{count} workers"


def headline(advice: Advice) -> str:
    """ "InterpreterPool, 2 workers: 1.8x (1.7 to 1.9)", or "No pool"."""
    pick = advice.choice
    if pick.kind == "sequential":
        return "No pool: make the calls one after another"
    count = in_workers(pick.workers)
    gain = ""
    if pick.speedup is not None and pick.low is not None and pick.high is not None:
        gain = f": {pick.speedup:.1f}x ({pick.low:.1f} to {pick.high:.1f})"
    elif pick.speedup is not None:
        gain = f": {pick.speedup:.1f}x"
    return f"{NAMES[pick.kind]}, {count}{gain}"


def dumps(advice: Advice) -> str:
    """As JSON; docs/reference/advice.md tells every field."""
    return json.dumps({"schema": SCHEMA, **asdict(advice)}, indent=1, allow_nan=False) + "\n"


def is_advice(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like one of these, and not like a recording."""
    try:
        with Path(path).open("rb") as file:
            return file.read(16).lstrip().startswith(b"{")
    except OSError:
        return False


def load(path: str | os.PathLike[str]) -> Advice:
    """Read what ``save`` or ``--format json`` wrote.

    Raises:
        RecordError: it cannot be read, is no advice, or was written by a newer fairlead.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise RecordError(f"{path}: not an advice of fairlead (not valid JSON)") from error
    if not isinstance(data, dict) or "choice" not in data or "candidates" not in data:
        raise RecordError(f"{path}: not an advice of fairlead; fairlead advise -o FILE writes one")
    if data.get("schema") != SCHEMA:
        raise RecordError(f"{path}: written by another version of fairlead (schema {data.get('schema')})")
    try:
        made: Advice = _made(Advice, data)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path}: a damaged advice ({error})") from error
    return made


def _made(kind: Any, value: Any) -> Any:
    """``value``, from JSON, as the type that an annotation names."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: _made(hints[field.name], value[field.name]) for field in fields(kind)})  # type: ignore[operator]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"a list was expected, not {value!r:.40}")
        if arguments[-1] is Ellipsis:
            return tuple(_made(arguments[0], entry) for entry in value)
        return tuple(_made(one, entry) for one, entry in zip(arguments, value, strict=True))
    if origin in (Union, types.UnionType):
        return None if value is None else _made(arguments[0], value)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{value!r:.40} is not known")
        return value
    if kind in (int, float, str, bool) and not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{kind.__name__} was expected, not {value!r:.40}")
    return value

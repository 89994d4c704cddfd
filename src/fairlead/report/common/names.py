"""Names of interpreters and variants, made safe to show and unlike each other.

A name or a path comes from a results file, which may come from anywhere. It may hold a terminal's escape
codes, marks that turn the direction of the text round it, or half of a character. ``clean`` makes any string
harmless as text; what else a format needs (HTML's or CSV's escapes) is that format's own business.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.record.summary import Series

# other controls, invisible format marks (those that turn text round are among them), lone surrogates, private
# use, unassigned, and the two separators that count as ends of lines
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: object) -> str:
    """``text`` as one line in which every character is visible; whatever is not becomes U+FFFD."""
    line = " ".join(str(text).split())
    return "".join("\ufffd" if unicodedata.category(c) in _UNSAFE else c for c in line)


def shorten(text: str, width: int) -> str:
    """``text`` with its middle left out when it is longer than ``width`` characters (at least 5)."""
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


@dataclass(frozen=True, slots=True)
class Named:
    """One interpreter of a report."""

    label: str
    """"CPython 3.13.0", "CPython 3.13.1 free-threaded": unique in the report, and clean."""
    index: int
    """Its place in the order of first appearance; colours and marks follow it."""
    record: dict[str, Any]


def _key(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, default=str)


def label(record: dict[str, Any]) -> str:
    """What an interpreter is called by its own record; another one can be called the same."""
    words = [
        str(record.get("implementation") or "Python"),
        str(record.get("version") or record.get("name") or "?"),
    ]
    if record.get("free_threaded"):
        words.append("free-threaded")
        if record.get("gil"):
            words.append("with GIL")
    if record.get("jit") and record.get("implementation") == "CPython":
        words.append("JIT")
    return clean(" ".join(words))


class Roster:
    """The interpreters of a report in the order of their first appearance, each with a label of its own."""

    def __init__(self, series: Iterable[Series]) -> None:
        records = {_key(s.interpreter): s.interpreter for s in series}
        labels = {key: label(record) for key, record in records.items()}
        for field in ("name", "path"):
            taken = Counter(labels.values())
            for key, record in records.items():
                if taken[labels[key]] > 1 and record.get(field):
                    labels[key] = f"{labels[key]} ({clean(record[field])})"
        taken = Counter(labels.values())
        self._subjects = {
            key: Named(label if taken[label] == 1 else f"{label} #{index + 1}", index, records[key])
            for index, (key, label) in enumerate(labels.items())
        }

    def __iter__(self) -> Iterator[Named]:
        return iter(self._subjects.values())

    def __len__(self) -> int:
        return len(self._subjects)

    def of(self, series: Series) -> Named:
        """The interpreter that ``series`` ran on."""
        return self._subjects[_key(series.interpreter)]


def value(thing: object) -> str:
    """A parameter's or an environment's value in few characters: "yes", "0, 1", "0.123", "a: 1, b: 2"."""
    match thing:
        case None:
            return "-"
        case bool():
            return "yes" if thing else "no"
        case float():
            return f"{thing:.4g}"
        case dict():
            return ", ".join(f"{clean(k)}: {value(v)}" for k, v in thing.items()) or "-"
        case list() | tuple():
            return ", ".join(value(v) for v in thing) or "-"
        case _:
            return clean(thing)


def moment(text: str) -> str:
    """A time stamp (ISO 8601) as "2026-03-02 10:14 UTC"; as it stands if it is none."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return clean(text)
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def variant(series: Series) -> str:
    """The label of the series' variant, "plain" for the one without."""
    return clean(series.label) or "plain"


def parameters(variant: dict[str, Any]) -> str:
    """Parameters in one line: "work sleep0, policy rr"."""
    return ", ".join(f"{clean(k).replace('_', ' ')} {value(v)}" for k, v in variant.items())

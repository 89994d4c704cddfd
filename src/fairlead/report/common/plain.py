"""JSON and CSV of plain data, safe for any reader: no NaN, no text that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from fairlead.report.common import names

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def finite_json(thing: Any) -> str:
    """JSON of plain data in which every number is finite, indented, with a line end at the end."""
    return json.dumps(_finite(thing), indent=2, allow_nan=False) + "\n"


def _finite(thing: Any) -> Any:
    match thing:
        case float():
            return thing if math.isfinite(thing) else None
        case dict():
            return {str(key): _finite(value) for key, value in thing.items()}
        case list() | tuple():
            return [_finite(value) for value in thing]
        case None | str() | int():
            return thing
        case _:
            return str(thing)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows of plain things below a head, each field made safe for spreadsheets; lines ended by CR LF."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([[_field(thing) for thing in row] for row in rows])
    return out.getvalue()


def _field(thing: Any) -> str | float | int:
    match thing:
        case None:
            return ""
        case float():
            return thing if math.isfinite(thing) else ""
        case int():
            return thing
        case dict():
            return _safe(json.dumps(thing, sort_keys=True, default=str))
        case _:
            return _safe(str(thing))


def _safe(text: str) -> str:
    line = names.clean(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line

"""The JSON Schema of what ``fairlead lab report --format json`` prints.

    python tools/site/results_schema.py    prints it

The types come from the records of ``fairlead.record.summary``; how a report puts them together is said here.
"""

from __future__ import annotations

import json
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fairlead.record import summary
from fairlead.report.summary.json import VERSION

TEXT: dict[str, Any] = {"type": "string"}
OBJECT: dict[str, Any] = {"type": "object"}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
"""A number that was not measured, or is not finite, is null."""
NAMES = {str: TEXT, int: {"type": "integer"}, float: NUMBER, bool: {"type": "boolean"}, Any: {}}


def schema() -> dict[str, Any]:
    head = {"experiment": TEXT, "interpreter": TEXT, "label": TEXT}
    left_out = {**head, "params": OBJECT, "reason": TEXT}
    cell = {name: one for name, one in members(summary.Cell).items() if name not in ("params", "n")}
    subject = members(summary.Subject)
    told = ("id", "title", "question", "explanation", "size_name", "metrics", "references")
    place = members(summary.Place)
    place = {name: one for name, one in place.items() if name not in ("series", "cell")}
    result = {
        **head, "params": OBJECT, "n": NAMES[int], "samples": NAMES[int], **cell, "fit": record(summary.Fit)
    }  # fmt: skip
    parts = {
        "version": {"const": VERSION},
        "environment": OBJECT,
        "environments": NAMES[int],
        "runs": NAMES[int],
        "started": {"type": ["string", "null"]},
        "finished": {"type": ["string", "null"]},
        "samples": NAMES[int],
        "interpreters": {"type": "object", "additionalProperties": OBJECT},
        "results": several(closed(result)),
        "claims": several(closed({**members(summary.Claim), "interpreter": TEXT})),
        "conditions": record(summary.Conditions),
        "experiments": several(closed({"family": TEXT, **{name: subject[name] for name in told}})),
        "rankings": several(
            closed(
                {
                    "group": TEXT, "n": NAMES[int], "interpreter": TEXT,
                    "places": several(
                        closed({"experiment": TEXT, "label": TEXT, "median": NUMBER, **place})
                    ),
                }
            )
        ),
        "skipped": several(closed(left_out)),
        "failures": several(closed(left_out)),
        "problems": several(TEXT),
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A summary of runs of fairlead's lab",
        "description": "What fairlead lab report --format json prints. src/fairlead/report/summary/json.py "
        "says what each field means.",
        **closed(parts),
    }


def closed(parts: dict[str, Any]) -> dict[str, Any]:
    """An object of exactly these."""
    return {"type": "object", "properties": parts, "required": sorted(parts), "additionalProperties": False}


def several(one: Any) -> dict[str, Any]:
    return {"type": "array", "items": one}


def record(kind: type) -> dict[str, Any]:
    return closed(members(kind))


def members(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: of(hints[field.name]) for field in fields(kind)}  # type: ignore[arg-type]


def of(kind: Any) -> dict[str, Any]:
    """The schema of an annotation."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (one,) = (of(argument) for argument in arguments if argument is not type(None))
        return one if one == NUMBER or not one else {"anyOf": [one, {"type": "null"}]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return several(of(arguments[0]))
        return {"type": "array", "prefixItems": [of(one) for one in arguments], "items": False}
    if origin is dict:
        return {"type": "object", "additionalProperties": of(arguments[1])}
    if is_dataclass(kind):
        return record(kind)  # type: ignore[arg-type]
    return NAMES[kind]


def text() -> str:
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(text(), end="")

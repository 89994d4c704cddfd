"""What a one-file page is put together from: its template, a head that lets nothing load, and text that is
safe inside a script element."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fairlead.report.common import names, units
from fairlead.report.common.extra import needed_for

_TEMPLATES = Path(__file__).parents[1] / "templates"

_FILTERS: dict[str, Callable[..., Any]] = {
    "seconds": units.seconds,
    "count": units.count,
    "factor": units.factor,
    "percent": units.percent,
    "bound": units.bound,
    "memory": units.memory,
    "clean": names.clean,
    "moment": names.moment,
    "value": names.value,
}


def page(
    template: str,
    page_title: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    trusted: Mapping[str, str] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """A page of its template, in which all text is escaped but what is ``trusted``.

    It loads nothing: its content policy lets only these ``scripts`` run, and no request leave it. ``styles``
    are names of assets, beside the style sheet of all pages.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    with needed_for("the HTML report"):
        import jinja2
        from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS | dict(filters or {})
    return environment.get_template(template).render(
        values,
        **{name: Markup(text) for name, text in (trusted or {}).items()},
        page_title=page_title,
        style=Markup("".join(asset(name) for name in ("page.css", *styles))),
        hashes=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
    )


@cache
def asset(name: str) -> str:
    """A file of ``templates/``."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The hash by which a content policy lets exactly this script run."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def inert_json(data: Any) -> str:
    """JSON that can stand in a script element: no character in it can end the element or open a tag."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

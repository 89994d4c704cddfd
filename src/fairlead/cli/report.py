"""``fairlead report``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.errors import OutputError

if TYPE_CHECKING:
    from fairlead.record.gil_summary import GilSummary

SUFFIXES = {
    "text": None,
    "json": None,
    "html": ".html",
    "perfetto": ".perfetto-trace",
    "firefox": ".firefox.json",
    "speedscope": ".speedscope.json",
    "collapsed": ".folded",
}
"""Where a report goes without -o: to the terminal, or into a file beside the recording with this suffix."""


@click.command(short_help="Show what a recording of the GIL, or a saved advice, says.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SUFFIXES)),
    default="text",
    show_default=True,
    help="Form of the report.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Where to write it. [default: the terminal, or beside FILE]",
)
def report(file: Path, form: str, out: Path | None) -> None:
    """Show what a recording of the GIL says: who held it, who waited, who blocked whom, and what to do.

    FILE is what "fairlead record" wrote. text and json go to the terminal unless -o is given; html is one
    page that works offline; perfetto is a trace for https://ui.perfetto.dev, and firefox is one for
    https://profiler.firefox.com; speedscope (for https://speedscope.app) and collapsed are stacks for flame
    graphs of which thread waited for which. FILE may also be what "fairlead advise" saved, as text, json or
    html.
    """
    pieces = _render(file, form)
    suffix = SUFFIXES[form]
    if out is None and suffix is None:
        click.echo(b"".join(pieces), nl=False)
        return
    target = out or file.with_name(file.name + str(suffix))
    try:
        with target.open("wb") as opened:
            opened.writelines(pieces)
    except OSError as error:
        raise OutputError(
            f"{target} cannot be written: {error.strerror}; name another place with -o"
        ) from error
    click.echo(f"wrote {target}", err=True)


def _render(file: Path, form: str) -> Iterable[bytes]:
    from fairlead.record.advice import is_advice

    if is_advice(file):
        return _advice(file, form)
    from fairlead.gil.observe.analysis import analyse
    from fairlead.gil.observe.timeline import TimelineCollector
    from fairlead.record.recording import Recording
    from fairlead.report.gil import gecko as gil_gecko
    from fairlead.report.gil import html as gil_html
    from fairlead.report.gil import json as gil_json
    from fairlead.report.gil import perfetto as gil_perfetto
    from fairlead.report.gil import stacks as gil_stacks
    from fairlead.report.gil import text as gil_text

    recording = Recording(file)
    if form == "perfetto":
        return gil_perfetto.render(recording)
    if form == "firefox":
        return gil_gecko.render(recording)
    collector = TimelineCollector()
    summary = analyse(recording, watch=collector.watch if form == "html" else None)
    if form == "html":
        page = gil_html.render(summary, collector.timeline(round(summary.wall_seconds * 1e9)))
    else:
        forms: dict[str, Callable[[GilSummary], str]] = {
            "text": lambda summary: gil_text.render(summary, _width()),
            "json": gil_json.render,
            "speedscope": gil_stacks.speedscope,
            "collapsed": gil_stacks.collapsed,
        }
        page = forms[form](summary)
    return [page.encode(), b"\n"]


def _width() -> int:
    """The terminal's; what goes elsewhere has lines that fit most."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100


def _advice(file: Path, form: str) -> Iterable[bytes]:
    from importlib import import_module

    from fairlead.errors import UsageError
    from fairlead.record.advice import load

    advice = load(file)
    if form not in ("text", "json", "html"):
        raise UsageError(f"{file} is an advice, and has no trace: choose text, json or html")
    return [import_module(f"fairlead.report.advice.{form}").render(advice).encode()]

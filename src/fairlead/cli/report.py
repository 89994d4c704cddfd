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
    "perfetto": ".perfetto-trace",
    "firefox": ".firefox.json",
    "speedscope": ".speedscope.json",
    "collapsed": ".folded",
    "html": ".html",
    "json": ".json",
    "text": ".txt",
}
"""How a file's name says its form; the longer suffixes come first."""
TO_THE_TERMINAL = ("text", "json")
"""Without -o; the other forms go into a file beside the recording."""


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SUFFIXES)),
    help="Format of the report. [default: by the name of PATH, else text]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Where to write it. [default: the terminal, or beside the first FILE]",
)
def report(files: tuple[Path, ...], form: str | None, out: Path | None) -> None:
    """Show what a recording of the GIL says: which thread held it, which waited for it, and what to do.

    FILE is a recording of "fairlead record"; those of the program's children, which lie beside it
    (FILE.PID), are read with it. They make one report, on one time axis, with a table for each process. So do
    recordings of programs that ran at the same time on one machine. text and json go to the terminal unless
    -o is given; html is one page that works offline; perfetto is a trace for https://ui.perfetto.dev, and
    firefox is one for https://profiler.firefox.com; speedscope (for https://speedscope.app) and collapsed are
    stacks for flame graphs of which thread waited for which. FILE may also be a run that "fairlead advise"
    kept; its formats are text, json and html.
    """
    if form is None:
        form = next((form for form, suffix in SUFFIXES.items() if out and out.name.endswith(suffix)), "text")
    pieces = _render(files, form)
    if out is None and form in TO_THE_TERMINAL:
        click.echo(b"".join(pieces), nl=False)
        return
    target = out or files[0].with_name(files[0].name + SUFFIXES[form])
    try:
        with target.open("wb") as opened:
            opened.writelines(pieces)
    except OSError as error:
        raise OutputError(
            f"{target} cannot be written: {error.strerror}; name another place with -o"
        ) from error
    click.echo(f"wrote {target}", err=True)


def _render(files: tuple[Path, ...], form: str) -> Iterable[bytes]:
    from fairlead.record.advice import is_advice

    if len(files) == 1 and is_advice(files[0]):
        return _advice(files[0], form)
    from fairlead.gil.analysis.timeline import TimelineCollector
    from fairlead.gil.analysis.together import analyse_together, in_order, with_children
    from fairlead.record.recording import Recording
    from fairlead.report.gil import gecko as gil_gecko
    from fairlead.report.gil import html as gil_html
    from fairlead.report.gil import json as gil_json
    from fairlead.report.gil import perfetto as gil_perfetto
    from fairlead.report.gil import stacks as gil_stacks
    from fairlead.report.gil import text as gil_text

    recordings = in_order(with_children([Recording(file) for file in files]))
    if form == "perfetto":
        return gil_perfetto.render(*recordings)
    if form == "firefox":
        return gil_gecko.render(*recordings)
    collector = TimelineCollector()
    summary = analyse_together(recordings, watch=collector.watch if form == "html" else None)
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

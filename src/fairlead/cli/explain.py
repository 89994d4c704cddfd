"""``fairlead explain``."""

from __future__ import annotations

import re
from importlib.resources import files
from textwrap import indent

import click

from fairlead.cli.table import columns
from fairlead.cli.words import near
from fairlead.errors import UsageError


@click.command()
@click.argument("error", required=False)
def explain(error: str | None) -> None:
    """Say why an error of fairlead is raised, and what to do.

    ERROR is the name of its class, as WaitTimeoutError. Without one, all are listed.
    """
    sections = _sections()
    if error is None:
        formatter = click.HelpFormatter(width=columns())
        with formatter.indentation():
            formatter.write_dl([(name, _first_sentence(text)) for name, text in sections.items()])
        click.echo(formatter.getvalue().rstrip())
        return
    name = _meant(error, sections)
    click.echo(f"{name}\n\n{_plain(sections[name])}")


def _sections() -> dict[str, str]:
    """Each section of docs/reference/errors.md by its title, the name of an error's class."""
    page = files("fairlead.cli").joinpath("errors.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, re.M | re.S))


def _meant(word: str, sections: dict[str, str]) -> str:
    """The title for a word: the class as a traceback names it, or without its module, its end or capitals."""
    short = word.rpartition(".")[2].lower()
    for name in sections:
        if short in (name.lower(), re.sub("(error|warning)$", "", name.lower())):
            return name
    raise UsageError(f"fairlead has no error {word!r}{near(word, list(sections))} (see: fairlead explain)")


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split()).removeprefix("A warning: ")
    return re.split(r"[.:](?:\s|$)", sentence, maxsplit=1)[0]


def _plain(text: str) -> str:
    """Markdown for a terminal: paragraphs as wide as that is, examples indented, links by their names."""
    parts = re.split(r"^```\w*\n(.*?)^```\n", text, flags=re.M | re.S)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = indent(part, "    ")
        else:
            prose = re.sub(r"\[(.+?)\]\((.+?)\)", r"\1 (docs/reference/\2)", part)
            parts[place] = click.wrap_text(prose.strip(), columns(), preserve_paragraphs=True)
    return "\n\n".join(part.rstrip() for part in parts if part.strip())

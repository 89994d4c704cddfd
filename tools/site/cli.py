"""The command's own account of itself, as a page of the site and as man pages.

python tools/site/cli.py DIRECTORY    writes the man pages; the build of a wheel does so
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import click

from fairlead.cli.root import root


def contexts(command: click.Command = root, parent: click.Context | None = None) -> Iterator[click.Context]:
    """The command and all below it, each in the context that it would be called in."""
    name = "fairlead" if parent is None else command.name
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from contexts(found, context)


def usage(context: click.Context) -> str:
    return " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def paragraphs(context: click.Context) -> Iterator[tuple[bool, str]]:
    """(as it stands, text) of each paragraph of a command's help."""
    text = inspect.cleandoc(context.command.help or "")
    for part in re.split(r"\n\s*\n", text):
        fixed, part = part.startswith("\b"), part.removeprefix("\b\n")
        yield fixed, part if fixed else " ".join(part.split())


def options(context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield record[0], " ".join(record[1].split())


def children(context: click.Context) -> list[tuple[str, str]]:
    if not isinstance(context.command, click.Group):
        return []
    group = context.command
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [
        (name, command.get_short_help_str(200)) for name, command in found if command and not command.hidden
    ]


def page() -> str:
    """The reference of the command line in Markdown."""
    lines = [
        "# Reference: the command line\n",
        "Every command and option, as `fairlead COMMAND --help` prints them.",
        "Exit status: 0 success, 1 an error, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM.\n",
    ]
    for context in contexts():
        lines += [f"## {context.command_path}\n", f"```console\n$ {usage(context)}\n```\n"]
        for fixed, text in paragraphs(context):
            lines.append(f"```text\n{text}\n```\n" if fixed else cell(text) + "\n")
        for title, rows in (("command", children(context)), ("option", list(options(context)))):
            if rows:
                lines += [f"| {title} | |", "|---|---|"]
                lines += [*(f"| `{name}` | {cell(text)} |" for name, text in rows), ""]
    return "\n".join(lines)


def cell(text: str) -> str:
    return re.sub(r"([|<*_])", r"\\\1", text)


def troff(text: str) -> str:
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def man(context: click.Context) -> str:
    name = context.command_path.replace(" ", "-")
    lines = [
        f'.TH "{name.upper()}" "1" "" "fairlead" "fairlead manual"',
        ".SH NAME",
        f"{troff(name)} \\- {troff(context.command.get_short_help_str(200).rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {troff(context.command_path)}",
        troff(" ".join(context.command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for fixed, text in paragraphs(context):
        lines += [".PP", *([".nf", troff(text), ".fi"] if fixed else [troff(text)])]
    for title, rows in (("COMMANDS", children(context)), ("OPTIONS", list(options(context)))):
        if rows:
            lines.append(f".SH {title}")
            for option, text in rows:
                lines += [".TP", f".B {troff(option)}", troff(text)]
    below = [f"{name}-{child}" for child, _ in children(context)]
    above = context.parent.command_path.replace(" ", "-") if context.parent else None
    see = [*([above] if above else []), *below]
    if see:
        lines += [".SH SEE ALSO", ", ".join(f"\\fB{troff(other)}\\fR(1)" for other in see)]
    return "\n".join(lines) + "\n"


def man_pages() -> dict[str, str]:
    """The text of each man page by its file's name."""
    return {f"{context.command_path.replace(' ', '-')}.1": man(context) for context in contexts()}


def main(directory: Path) -> None:
    # Nothing of the core is called here. A build may have none that this interpreter can load: not yet, or,
    # if it is for another processor, never.
    sys.modules["fairlead._native"] = MagicMock()
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in man_pages().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

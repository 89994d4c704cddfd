"""What users write on the command line, read: times, sizes, cores. Callbacks for click's options."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click
from click.core import ParameterSource

from fairlead.errors import UsageError

_UNITS_S = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A time such as 500us, 1ms, 60s, 5m or 1h; in seconds."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value)
    if match is None or match[2] not in _UNITS_S or float(match[1]) <= 0:
        raise click.BadParameter(
            f"{value!r} is not a time; write it as 500us, 1ms, 60s, 5m or 1h", context, option
        )
    return float(match[1]) * _UNITS_S[match[2]]


def size(context: click.Context, option: click.Parameter, value: str) -> int:
    """A size such as 500kB, 200MB or 2GB; in bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(kB|MB|GB)\s*", value)
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{value!r} is not a size; write it as 500kB, 200MB or 2GB", context, option)
    return round(float(match[1]) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[match[2]])


def sizes(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Sizes such as 50,100,200."""
    from fairlead.lab.catalogue import registry  # only a command with sizes waits for it

    try:
        return None if value is None else registry.parse_sizes(value)
    except UsageError as error:
        raise click.BadParameter(str(error), context, option) from error


def settings(
    context: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Parameters such as interval_ms=0.5, each a pair."""
    found = []
    for word in value:
        name, equals, text = word.partition("=")
        if not (name and equals and text):
            raise click.BadParameter(f"{word!r} is not a setting; write NAME=VALUE", context, option)
        found.append((name, text))
    return tuple(found)


def cores(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Core numbers such as 0,1 or 0-3."""
    if value is None:
        return None
    found: set[int] = set()
    for word in value.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", word)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(
                f"{word.strip()!r} is not a core; write them as 0,1 or 0-3", context, option
            )
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def near(word: str, known: Sequence[str]) -> str:
    """A hint at what was probably meant, to be put behind the wrong word; empty if nothing is near."""
    from difflib import get_close_matches  # only a wrong word waits for it

    found = get_close_matches(word, known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def program(command: Sequence[str], verb: str) -> list[str]:
    """The command with its interpreter.

    Raises:
        UsageError: there is none, or it begins with what was meant for us.
    """
    if not command or not command[0].strip():
        raise UsageError(f"name the program after --: fairlead {verb} -- python app.py")
    if command[0].startswith("--"):
        known = [name for option in click.get_current_context().command.params for name in option.opts]
        meant = near(command[0].partition("=")[0], known)
        raise UsageError(f"fairlead {verb} has no option {command[0]}{meant} (see: fairlead {verb} --help)")
    if command[0].startswith("-") or command[0].endswith(".py"):
        return [sys.executable, *command]
    return list(command)


def share_for(context: click.Context, policy: str | None, cpu_share: float) -> float:
    """The CPU share, unless it was given with a policy that has none."""
    if policy != "interactive" and context.get_parameter_source("cpu_share") == ParameterSource.COMMANDLINE:
        raise UsageError("--cpu-share goes with --policy interactive only")
    return cpu_share

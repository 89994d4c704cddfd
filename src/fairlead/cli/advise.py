"""``fairlead advise``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.cli import words
from fairlead.cli.progress import shown
from fairlead.errors import OutputError, UsageError

if TYPE_CHECKING:
    from fairlead.record.advice import Advice
    from fairlead.record.server_advice import Goal

FORMS = ("text", "json")


def _counts(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Counts such as 1,4,16."""
    try:
        return tuple(int(word) for word in value.split(",")) if value else ()
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not a list of counts; write it as 1,4,16", context, option
        ) from error


@click.command()
@click.argument("target", metavar="[MODULE:FUNCTION]", required=False)
@click.option(
    "--items",
    metavar="MODULE:NAME",
    help="The function's arguments, one for each call: an iterable, MODULE:NAME() if a function makes it, or "
    "an expression with MODULE's names, as 'range(100)'.",
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The same from a file: one JSON value a line.",
)
@click.option(
    "--requests",
    type=int,
    metavar="N",
    help="The number of calls that the advice is for. [default: one for each item]",
)
@click.option(
    "--budget",
    "budget_s",
    callback=words.duration,
    metavar="TIME",
    default="30s",
    show_default=True,
    help="About how long the measurement may take.",
)
@click.option("--max-calls", type=int, metavar="N", help="The most calls of the function in all.")
@click.option(
    "--kinds",
    metavar="KIND,...",
    help="Measure only these: threads,processes,interpreters,async,free-threaded.",
)
@click.option(
    "--memory",
    "memory_mib",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="The most memory, of all processes together, that the recommended way may take.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be measured, and call nothing.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="text",
    show_default=True,
    help="Format of the output; fairlead report makes a page of the kept run.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file in which to keep the run, as JSON. [default: advise-runs/TIME.json; for a server, none]",
)
@click.option(
    "--server",
    metavar="COMMAND",
    help="Measure a whole server instead: the command that starts it, in which {port}, {threads} and"
    " {workers} are filled in.",
)
@click.option(
    "--load",
    metavar="COMMAND",
    help="The command that puts it under load, and prints its p99 latency or requests a second.",
)
@click.option(
    "--threads", callback=_counts, metavar="N,...", help="Values of {threads}; the first is today's."
)
@click.option(
    "--workers", callback=_counts, metavar="N,...", help="Values of {workers}; the first is today's."
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The port on which a server without {port} listens."
)
@click.option("--goal", type=click.Choice(["p99", "rate", "time"]), help="The figure to improve.")
def advise(
    target: str | None,
    items: str | None,
    inputs: Path | None,
    requests: int | None,
    budget_s: float,
    max_calls: int | None,
    kinds: str | None,
    memory_mib: int | None,
    dry_run: bool,
    form: str,
    out: Path | None,
    server: str | None,
    load: str | None,
    threads: tuple[int, ...],
    workers: tuple[int, ...],
    port: int | None,
    goal: Goal | None,
) -> None:
    """Say which kind of pool, and how many workers, suit a function of yours, by measuring it under each.

    The function IS CALLED MANY TIMES, in processes of its own: whatever it writes, sends or deletes happens
    as often. --dry-run shows the plan, --max-calls bounds the calls.

    With --server and --load a whole server is measured instead: stock and scheduled by fairlead run, with
    other thread counts and worker processes.
    """
    from fairlead.advice.session import Session
    from fairlead.advice.target import named

    if server is not None or load is not None:
        of_functions = (target, items, inputs, requests, max_calls, kinds, memory_mib)
        if server is None or load is None:
            raise UsageError("--server and --load go together: the one is measured under the other")
        if any(given is not None for given in of_functions) or dry_run:
            raise UsageError(
                "--server goes with --load, --threads, --workers, --port, --goal, --budget, -o and --format"
            )
        if out is not None:
            _try_out(out)
        _advise_server(server, load, threads, workers, port, goal, budget_s, form, out)
        return
    if threads or workers or port is not None or goal is not None:
        raise UsageError("--threads, --workers, --port and --goal go with --server")
    if target is None:
        raise UsageError("name a function as module:function, or a server with --server")
    if dry_run and form != "text":
        raise UsageError("--dry-run shows its plan as text: leave out --format")
    if not dry_run:
        _try_out(out or _by_time())
    chosen = None if kinds is None else [kind.strip() for kind in kinds.split(",")]
    with named(target, items, inputs, requests) as found, shown("measurements") as progress:
        session = Session(
            found, budget_s, max_calls=max_calls, kinds=chosen, memory_mib=memory_mib, report=progress
        )
        if dry_run:
            from fairlead.cli.lab import results
            from fairlead.report.advice import text as advice_text

            click.echo(advice_text.render_plan(session.plan(), **results.terminal()), nl=False)
            return
        advice = session.run()
    out = out or _by_time()
    try:
        advice.save(out)
    finally:
        # what keeps it from being kept does not cost what was found
        _show(advice, form)
    click.echo(f"Saved: {out} (fairlead report shows it again)", err=True)


def _by_time() -> Path:
    return Path("advise-runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"


def _try_out(out: Path) -> None:
    """Has what cannot be written said before minutes of measuring. Leaves neither a file nor a directory."""
    made = [one for one in out.parents if not one.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if not out.exists():
            out.touch()
            out.unlink()
        elif out.is_file() or out.is_dir():
            out.open("ab").close()
        for directory in made:
            directory.rmdir()
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be written ({error.strerror}); name another file with -o"
        ) from error


def _advise_server(
    server: str, load: str, threads: tuple[int, ...], workers: tuple[int, ...], port: int | None,
    goal: Goal | None, budget_s: float, form: str, out: Path | None,
) -> None:  # fmt: skip
    from fairlead.advice.servers import Servers, Service
    from fairlead.cli.lab import results
    from fairlead.record import server_advice
    from fairlead.report.advice import server_text

    service = Service(server, load, threads, workers, port, goal)
    with shown("loads") as progress:
        advice = Servers(service, budget_s, progress).run()
    try:
        if out is not None:
            results.write(out, server_advice.dumps(advice))
    finally:
        if form == "json":
            content = server_advice.dumps(advice)
        else:
            content = server_text.render(advice, **results.terminal())
        click.echo(content, nl=False)


def _show(advice: Advice, form: str) -> None:
    """Print it."""
    from importlib import import_module

    from fairlead.cli.lab import results

    module = import_module(f"fairlead.report.advice.{form}")
    content = module.render(advice, **(results.terminal() if form == "text" else {}))
    click.echo(content, nl=not content.endswith("\n"))

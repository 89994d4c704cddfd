"""``fairlead lab run``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from fairlead.cli import words
from fairlead.cli.lab import results
from fairlead.cli.lab.cluster import run_on
from fairlead.cli.progress import shown
from fairlead.errors import FairleadError, MissingExtraError, RecordError, RunInterruptedError, UsageError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.documents import PREFIX
from fairlead.lab.catalogue.interpreters import choose_interpreters
from fairlead.lab.doctor import missing_extras
from fairlead.lab.isolation import other_load, subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import runner
from fairlead.lab.run.environment import environment
from fairlead.lab.run.measure import LOOK
from fairlead.lab.run.pilots import prepared
from fairlead.lab.run.plan import BUDGETS_S, FILE_NAME, Plan, Request, RunOptions, forget
from fairlead.record.sample import Sample
from fairlead.report.summary import html

_KINDS_NAMED = 3
_WITH_RESUME = {"out", "budget_s", "resume", "detail"}


@click.command(short_help="Measure experiments and write a report.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--interpreter",
    "asked",
    metavar="X",
    multiple=True,
    help="Measure this interpreter, a path or a name: 3.13, 3.13t, 2.7, pypy.",
)
@click.option(
    "--all-interpreters", "all_found", is_flag=True, help="Measure every interpreter that is found."
)
@click.option(
    "--contrast",
    "contrasted",
    is_flag=True,
    help="Measure the running interpreter, and one of each other kind that is found.",
)
@click.option(
    "--sizes", metavar="N,N,...", callback=words.sizes, help="Sizes instead of the experiments' own."
)
@click.option(
    "--work",
    type=click.Choice(["sleep0", "yield", "spin"]),
    help="How threads that have passed keep running: time.sleep(0), sched_yield() or Python code"
    " [default: the experiment's variants].",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=words.settings,
    help="A parameter of the experiments that have it, as interval_ms=0.5; see fairlead lab list ID.",
)
@click.option("--variant", "variants", metavar="LABEL", multiple=True, help="Only the variants of this name.")
@click.option(
    "--cpus", metavar="N,N,...", callback=words.cores, help="The cores to use, as 0,1 [default: all]."
)
@click.option(
    "--kernel-class",
    "policy",
    type=click.Choice(["other", "rr"]),
    help="The kernel's scheduling class of everything measured: time sharing or, real-time, round robin"
    " [default: the experiment's variants].",
)
@click.option(
    "--budget",
    "budget_s",
    metavar="TIME",
    callback=words.duration,
    help="The time the run may take, as 60s or 5m [default, for each interpreter: 1m with --quick, 1h with"
    " --full, else 5m].",
)
@click.option(
    "--repeat",
    metavar="N",
    type=click.IntRange(1, 100),
    default=1,
    help="Carry out N runs, one after the other, each with the budget: what differs from run to run shows"
    " between runs only.",
)
@click.option(
    "--beside",
    metavar="N",
    type=click.IntRange(1, 100),
    help="Have N busy processes run beside each sample, on its cores [default: none].",
)
@click.option("--quick", is_flag=True, help="Small sizes, about a minute (the default without ID).")
@click.option("--full", is_flag=True, help="The sizes of the references, up to an hour.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Directory of the run [default: lab-runs/TIME]."
)
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@results.verbose
@click.option(
    "--on",
    "scheduler",
    metavar="ADDRESS",
    help="Measure on every machine of the Dask cluster with this scheduler, as tcp://10.0.0.1:8786;"
    " --out gets a run for each.",
)
@click.pass_context
def run(
    context: click.Context,
    ids: tuple[str, ...],
    asked: tuple[str, ...],
    all_found: bool,
    contrasted: bool,
    sizes: tuple[int, ...] | None,
    work: str | None,
    settings: tuple[tuple[str, str], ...],
    variants: tuple[str, ...],
    cpus: tuple[int, ...] | None,
    policy: str | None,
    budget_s: float | None,
    repeat: int,
    beside: int | None,
    quick: bool,
    full: bool,
    out: Path | None,
    resume: bool,
    detail: int,
    scheduler: str | None,
) -> None:
    """Measure experiments (all, if none is named), show the results, and write a report.

    An ID is an experiment, a family of them, such as square, a document, such as document:square (see
    fairlead lab list), or a file with an experiment of your own, such as ./my_scaling.py.
    """
    if missing := missing_extras()["lab"]:
        raise MissingExtraError(f'the lab needs {", ".join(missing)}: pip install "fairlead[lab]"')
    if quick and full:
        raise UsageError("--quick and --full exclude each other: give one of them")
    given = Counter([*(name for name, _ in settings), *(["work"] if work else [])])
    if twice := [name for name, times in given.items() if times > 1]:
        raise UsageError(f"{twice[0]} is set {given[twice[0]]} times: give one value (--work is --set work)")
    with Stop() as stop:
        if resume:
            plan, out = _continued(context, out, budget_s, stop)
        else:
            options = RunOptions(
                ids=ids,
                mode="full" if full else "quick" if quick or not ids else _usual_mode(ids),
                sizes=sizes,
                work=work,
                cpus=cpus,
                policy=policy,
                budget_s=budget_s,
                parameters=settings,
                variants=variants,
                repeat=repeat,
                beside=beside or 0,
            )
            out = out or Path("lab-runs") / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            if scheduler is not None:
                if own := list(filter(registry.is_file, ids)):
                    raise UsageError(f"{own[0]} is on this machine only: --on takes experiments of the lab's")
                wished = {"asked": asked, "all_found": all_found, "contrasted": contrasted}
                run_on(scheduler, options, wished, out, stop)
                return
            request = Request(options=options, asked=asked, all_found=all_found, contrasted=contrasted)
            runner.check_free(out)
            made = request.save(out)
            plan = _begun(request, out, made, stop)
        with shown() as progress, subprocess_runner.adopting() as adopt:
            meter = other_load.Meter(adopt=adopt)
            tally = runner.run(plan, out, stop=stop, report=progress, meter=meter)
    summary, problems = results.summary([out])
    page = out / "report.html"
    try:
        results.write(page, html.render(summary))
    finally:
        # whatever keeps one of the two from being shown does not cost the other
        results.show(summary, detail)
    click.echo(f"Report: {page}")
    if problems:
        raise RecordError(problems)
    if tally.failures:
        raise FairleadError(_failed(tally.samples, tally.failures))


def _usual_mode(ids: Sequence[str]) -> str:
    """A document's tables take as long as they took its author."""
    return "full" if any(one.startswith(PREFIX) for one in ids) else "standard"


def _continued(
    context: click.Context, out: Path | None, budget_s: float | None, stop: Stop
) -> tuple[Plan, Path]:
    """The plan of the run that is to go on."""
    if out is None:
        raise UsageError("--resume needs to know which run: give its directory with --out")
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _WITH_RESUME and source is not click.core.ParameterSource.DEFAULT:
            raise UsageError(
                "a run that is continued keeps its plan: with --resume give only --out, --budget and -v"
            )
    request = None if (out / FILE_NAME).exists() else Request.load(out)
    plan = _begun(request, out, (), stop) if request else runner.continued(out, environment(), stop)
    if budget_s is not None:
        plan = replace(plan, budget_s=budget_s)
        plan.save(out)
    return plan, out


def _begun(request: Request, out: Path, made: tuple[Path, ...], stop: Stop) -> Plan:
    """The plan of a new run, in its directory; until it is there, the request is. If there can be none, the
    directories that were ``made`` for it go."""
    try:
        chosen = choose_interpreters(request.asked, request.all_found, request.contrasted, stop)
        plan = prepared(request.options, chosen, stop)
    except RunInterruptedError as error:
        command = shlex.join(["fairlead", "lab", "run", "--resume", "--out", str(out)])
        raise RunInterruptedError(
            f"stopped before the first sample; begin again with: {command}", error.signum
        ) from None
    except FairleadError:
        forget(out, made)
        raise
    plan.save(out)
    forget(out)
    each_s = BUDGETS_S[request.options.mode]
    if request.options.budget_s is None and plan.budget_s > each_s:
        many = f"{plan.budget_s / each_s:.0f} interpreters"
        click.echo(f"the budget is {plan.budget_s:g} s, {each_s:g} s for each of {many}", err=True)
    return plan


def _failed(count: int, failures: Sequence[Sample]) -> str:
    """One line on what went wrong, with the first reason of each kind."""
    kinds = Counter((sample.interpreter["name"], sample.status) for sample in failures)
    listed = [f"{number} {status} on {name}" for (name, status), number in kinds.most_common(_KINDS_NAMED)]
    if more := kinds.total() - sum(number for _, number in kinds.most_common(_KINDS_NAMED)):
        listed.append(f"{more} others")
    # the command that shows it again is long: it stands in the report
    reason = (failures[0].reason or "").partition(LOOK)[0]
    return f"{len(failures)} of {count} samples were not measured: {', '.join(listed)}; the first: {reason}"

"""``fairlead lab run --on``: the machines of a cluster, and what came back from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairlead.cli.lab import results
from fairlead.cli.progress import Machines
from fairlead.errors import FairleadError
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import dask_cluster
from fairlead.lab.run.plan import RunOptions
from fairlead.report.common.names import clean
from fairlead.report.comparison import html as comparison_html
from fairlead.report.comparison import text as comparison_text
from fairlead.report.summary import html, text


def run_on(scheduler: str, options: RunOptions, interpreters: dict[str, Any], out: Path, stop: Stop) -> None:
    """Measure on every machine, show them side by side, and write the pages.

    Raises:
        FairleadError: a machine took no part, or was lost; said after all others have been shown.
    """
    from fairlead.lab.analysis.compare import compare  # needs numpy, which not every command does

    gathered = dask_cluster.run_on(scheduler, options, interpreters, out, stop=stop, report=Machines())
    for line in gathered.lost:
        click.echo(f"! {clean(line)}", err=True)
    if gathered.runs:
        together, _ = results.summary(gathered.runs)
        results.write(out / "report.html", html.render(together))
        if len(gathered.runs) > 1:
            compared = compare([(str(run), results.summary([run])[0]) for run in gathered.runs])
            results.write(out / "comparison.html", comparison_html.render(compared))
            click.echo(comparison_text.render(compared, **results.terminal()), nl=False)
            click.echo(f"Comparison: {out / 'comparison.html'}")
        else:
            click.echo(text.render(together, **results.terminal()), nl=False)
        click.echo(f"Report: {out / 'report.html'}")
    if gathered.lost:
        count = len(gathered.lost) + len(gathered.runs)
        raise FairleadError(f"{len(gathered.lost)} of {count} machines have no run: {gathered.lost[0]}")

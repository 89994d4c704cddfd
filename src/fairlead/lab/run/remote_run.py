"""A run of the lab on behalf of another machine: what a worker of a Dask cluster is asked to do.

It comes and goes as plain data (JSON types and bytes), so that client, scheduler and worker need not run the
same version of Python.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairlead.errors import RunInterruptedError
from fairlead.lab.catalogue.interpreters import choose_interpreters
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import runner
from fairlead.lab.run.pilots import prepared
from fairlead.lab.run.plan import FILE_NAME, RunOptions
from fairlead.record import results

TOPIC = "fairlead-lab"
"""Of dask's events: a worker tells how far it is, as [the run's key, the machine, its Progress]."""

_EVERY = 8
"""One in so many steps is told."""

_stops: dict[str, Stop] = {}
"""The runs that are being carried out in this process, by their keys."""
_lock = threading.Lock()


def carry_out(
    key: str, machine: str, options: dict[str, Any], interpreters: dict[str, Any]
) -> dict[str, bytes]:
    """Measure here; the run directory's files by name.

    A run that is stopped gives what it has measured so far.

    Args:
        key: by which it can be stopped.
        machine: what the caller calls this machine.
        options: those of ``Options``.
        interpreters: the arguments of ``interpreters.choose_interpreters``.

    Raises:
        FairleadError: it cannot be begun here: an unknown interpreter, a core that is not there.
    """
    tell = _teller(key, machine)
    with tempfile.TemporaryDirectory(prefix="fairlead-lab-") as place, Stop() as stop:
        directory = Path(place)
        with _lock:
            _stops[key] = stop
        try:
            chosen = choose_interpreters(stop=stop, **interpreters)
            plan = prepared(RunOptions(**options), chosen, stop)
            runner.begin(plan, directory)
            runner.run(plan, directory, stop=stop, report=tell)
        except RunInterruptedError:
            pass  # what there is goes back
        finally:
            with _lock:
                del _stops[key]
        names = (FILE_NAME, results.FILE_NAME)
        return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


def stop(key: str, signum: int) -> None:
    """Stop the run with this key, if it is carried out in this process."""
    with _lock:
        if key in _stops:
            _stops[key].request(signum)


def _teller(key: str, machine: str) -> Callable[[runner.RunProgress], None]:
    """Tells the cluster how far the run is, now and then; does nothing outside of a worker."""
    try:
        from distributed import get_worker

        worker = get_worker()
    except (ImportError, ValueError):
        return lambda _: None
    steps = 0

    def tell(progress: runner.RunProgress) -> None:
        nonlocal steps
        if steps % _EVERY == 0 or progress.said:
            worker.log_event(TOPIC, [key, machine, asdict(progress)])
        steps += 1

    return tell

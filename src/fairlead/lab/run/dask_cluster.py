"""The lab on every machine of a Dask cluster: each measures for itself, and the runs are gathered here.

One worker of each machine is asked; the others of the same address would measure the same cores at the same
time. A machine that cannot take part is named with the reason, and so is one that is lost on the way; the
rest goes on. Tasks for one named worker only are kept by dask's scheduler for ever when that worker has gone,
so whether it is there is looked at here.

What is sent is the pickle of a call, to be loaded: scheduler and workers see a function of the standard
library and bytes, whatever versions of Python they run, and only the process that loads it needs fairlead.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.errors import FairleadError, MissingExtraError, OutputError, RunInterruptedError
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import remote_run
from fairlead.lab.run.plan import RunOptions
from fairlead.lab.run.runner import RunProgress
from fairlead.record import results

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 30
GRACE_S = 30
"""What workers that were stopped may take to end their samples."""
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came back."""

    runs: tuple[Path, ...]
    """A run directory for each machine that measured something."""
    lost: tuple[str, ...]
    """One line for each machine that did not: which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the cluster."""

    name: str
    """Its address without the port, made fit for a directory."""
    worker: str
    """The address of the worker that measures."""


class _Call:
    """Becomes, when its pickle is loaded, the result of a call."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._call = function, args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def run_on(
    scheduler: str,
    options: RunOptions,
    interpreters: dict[str, Any],
    directory: Path,
    *,
    stop: Stop,
    report: Callable[[str, RunProgress], None],
) -> Gathered:
    """Carry out the same plan on every machine, and put each one's run into a directory of its own.

    Args:
        scheduler: its address, as "tcp://10.0.0.1:8786".
        interpreters: the arguments of ``interpreters.choose_interpreters``, which is asked on each machine.
        report: told now and then how far a machine is; called from another thread.

    Raises:
        MissingExtraError: distributed is not installed.
        FairleadError: there is no scheduler at the address, or it has no workers.
        RunInterruptedError: ``stop`` was set; what had been measured until then is in the directory.
        OutputError: the runs cannot be written.
    """
    with _connected(scheduler) as client:
        machines = _machines(client, scheduler)
        able, lost = _able(client, machines)
        key = uuid.uuid4().hex

        def told(event: tuple[float, Any]) -> None:
            whose, machine, progress = event[1]
            if whose == key:
                report(machine, RunProgress(**progress))

        client.subscribe_topic(remote_run.TOPIC, told)
        waiting = {
            machine: client.submit(
                pickle.loads,
                pickle.dumps(
                    _Call(remote_run.carry_out, key, machine.name, asdict(options), interpreters), protocol=4
                ),
                workers=[machine.worker],
                allow_other_workers=False,
                key=f"fairlead-lab-{key}-{machine.name}",
                pure=False,
                retries=0,
            )
            for machine in able
        }
        runs: list[Path] = []
        try:
            for machine, outcome in _ended(client, waiting, key, stop):
                if isinstance(outcome, str):
                    lost.append(f"{machine.name}: {outcome}")
                else:
                    runs.append(_kept(directory / machine.name, outcome))
        finally:
            client.unsubscribe_topic(remote_run.TOPIC)
        if stop.signum is not None:
            kept = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
            raise RunInterruptedError(f"stopped: {kept} kept in {directory}", stop.signum)
        return Gathered(tuple(sorted(runs)), tuple(sorted(lost)))


@contextlib.contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("--on needs dask.distributed: pip install 'fairlead[dask]'") from error
    try:
        # a client that was refused its address is not closed within a minute
        distributed.comm.resolve_address(scheduler)
        client = distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise FairleadError(
            f"no scheduler of dask's is reached at {scheduler} ({error}): start one with "
            "`dask scheduler`, and give the address that it prints"
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError, OSError):
            client.close()


def _machines(client: Client, scheduler: str) -> list[Machine]:
    """One worker of each address, the same one every time."""
    found: dict[str, Machine] = {}
    for worker in sorted(client.nthreads()):
        host = re.sub(r"^\w+://|:\d+$", "", worker)
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", host).strip("-")
        found.setdefault(name, Machine(name, worker))
    if not found:
        raise FairleadError(
            f"the cluster at {scheduler} has no workers: start one on each machine with "
            f"`dask worker {scheduler}`"
        )
    return list(found.values())


def _able(client: Client, machines: list[Machine]) -> tuple[list[Machine], list[str]]:
    """The machines that have the lab, and a line for each of the others."""
    answers = client.run(
        # of the standard library, so that a worker without fairlead can run it and say so
        importlib.import_module,
        remote_run.__name__,
        workers=[machine.worker for machine in machines],
        on_error="return",
    )
    able, lost = [], []
    for machine in machines:
        answer = answers.get(machine.worker)
        if isinstance(answer, ImportError):
            lost.append(f"{machine.name}: its worker lacks the lab ({answer}): pip install fairlead there")
        elif isinstance(answer, BaseException) or answer is None:
            lost.append(f"{machine.name}: its worker cannot be asked ({answer!r}); is it alive?")
        else:
            able.append(machine)
    return able, lost


def _ended(
    client: Client, waiting: dict[Machine, Any], key: str, stop: Stop
) -> Iterator[tuple[Machine, dict[str, bytes] | str]]:
    """Each machine with its files, or with the reason why there are none, as they come."""
    deadline: float | None = None
    while waiting:
        if deadline is None and stop.signum is not None:
            deadline = time.monotonic() + GRACE_S
            _tell_to_stop(client, waiting, key, stop.signum)
        there = _there(client)
        for machine, future in list(waiting.items()):
            if future.done():
                del waiting[machine]
                yield machine, _outcome(future)
            elif machine.worker not in there:
                del waiting[machine]
                future.cancel()
                yield machine, "its worker was lost; what it had measured went with it"
            elif deadline is not None and time.monotonic() > deadline:
                del waiting[machine]
                future.cancel()
                yield machine, f"did not stop within {GRACE_S} s"
        if waiting:
            if stop.signum is None:
                stop.wait(_LOOK_S)
            else:
                time.sleep(_LOOK_S)


def _there(client: Client) -> set[str]:
    """The workers that the scheduler knows; none when it has gone itself."""
    try:
        return set(client.nthreads())
    except (OSError, TimeoutError):
        return set()


def _outcome(future: Any) -> dict[str, bytes] | str:
    if future.status == "finished":
        files: dict[str, bytes] = future.result()
        return files if files.get(results.FILE_NAME) else "nothing was measured"
    if future.status == "error":
        error = future.exception()
        return str(error) if isinstance(error, FairleadError) else f"{type(error).__name__}: {error}"
    return f"the cluster says {future.status}"


def _tell_to_stop(client: Client, waiting: dict[Machine, Any], key: str, signum: int) -> None:
    call = pickle.dumps(_Call(remote_run.stop, key, signum), protocol=4)
    workers = [machine.worker for machine in waiting]
    with contextlib.suppress(OSError, TimeoutError):
        client.run(pickle.loads, call, workers=workers, on_error="ignore")


def _kept(directory: Path, files: dict[str, bytes]) -> Path:
    """The run's files, in a directory of its own."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (directory / Path(name).name).write_bytes(content)
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot be written ({error.strerror}); choose another --out"
        ) from error
    return directory

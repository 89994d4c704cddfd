"""Taking one sample: a probe in isolation, and what it printed and cost as a ``Sample``."""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fairlead.errors import RecordError
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.identify import how_it_ended
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.sample import Sample, SampleStatus, parse

GRACE_S = 5.0
"""What a sample gets beyond its time-out for starting its interpreter; a probe keeps the time-out itself."""

LOOK = "; to see for yourself: "
"""Between the reason of a failure and the command that shows it again."""

_MEASURES = (
    "wall_s",
    "user_s",
    "sys_s",
    "cpu_percent",
    "ctx_voluntary",
    "ctx_involuntary",
    "max_rss_kb",
    "sum_rss_kb",
    "details",
)
# a probe asks the kernel to end it: after its time, or when its CPU time shows that its alarm went astray
_OWN_TIMEOUT = (-signal.SIGALRM, -signal.SIGXCPU)


def measure(
    cell: PlannedCell, interpreter: Interpreter, environment: dict[str, Any], mark: str, stop: Stop
) -> Sample | None:
    """Run the probe of a cell once. Failure is a sample too: its status and reason say how.

    Returns None when ``stop`` was set before it ended. What a single run cannot know, its round and its
    foreign share, is left to the caller.
    """
    series = cell.series
    params = {"n": cell.n, **series.params}
    experiment = registry.catalogue()[series.experiment]
    env = subprocess_runner.clean_environment(free_threaded=interpreter.free_threaded)
    if experiment.foreign:
        env["PYTHONPATH"] = str(registry.DIRECTORY)  # where probe.py is
    argv = [interpreter.path, str(experiment.path), json.dumps({**params, "timeout_s": series.timeout_s})]
    sample = Sample(
        experiment=series.experiment,
        params=params,
        interpreter=interpreter.as_record(),
        environment=environment,
        status="skipped",
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    try:
        outcome = subprocess_runner.run(
            argv,
            env=env,
            timeout_s=series.timeout_s + GRACE_S,
            mark=mark,
            stop=stop,
            policy=series.policy,
            cpus=series.cpus,
        )
    except OSError as error:
        why = f"{interpreter.path} cannot be started ({error.strerror}); see `fairlead doctor`"
        return replace(sample, status="crashed", reason=why, elapsed_s=0.0)
    if outcome.ended == "stopped":
        return None
    status, reason, values = _judge(outcome, series.timeout_s)
    look = f"{LOOK}{shlex.join(argv)}"
    if reason and status != "skipped":
        reason += look
    sample = replace(sample, status=status, reason=reason, elapsed_s=outcome.elapsed_s)
    if status != "ok":
        return sample
    try:
        measured = replace(sample, **values)
        measured.to_json()
    except RecordError as error:
        reason = f"printed a result that is none ({error})"
        return replace(sample, status="garbage", reason=reason + look)
    return measured


def _judge(
    outcome: subprocess_runner.Outcome, timeout_s: float
) -> tuple[SampleStatus, str | None, dict[str, Any]]:
    """The status of a sample, the reason for it if it is not "ok", and the values if it is."""
    if outcome.ended == "timeout" or outcome.returncode in _OWN_TIMEOUT:
        return "timeout", f"not done after {timeout_s:g} s; choose smaller sizes", {}
    if outcome.returncode != 0:
        return "crashed", how_it_ended(outcome), {}
    _, _, last_line = outcome.stdout.rstrip().rpartition(b"\n")
    try:
        answer = parse(last_line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return "garbage", "ended well, but printed no result", {}
    if "skipped" in answer:
        return "skipped", str(answer["skipped"]), {}
    if "failed" in answer:
        return "failed", str(answer["failed"]), {}
    return "ok", None, {name: answer[name] for name in _MEASURES if name in answer}

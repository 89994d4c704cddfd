"""Measured programs in processes of their own: how each is started, and what it says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from subjects.steps import count_to

SUBJECTS = Path(__file__).parent / "subjects"
FIGURES = dict[str, float]
SWITCH_INTERVAL_S = 0.0005


@dataclass(frozen=True)
class Way:
    """How a measured program's threads get the GIL: what stands before its command, its settings, and the
    interpreter that runs it."""

    command: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    python: str = sys.executable


STOCK = Way()


def scheduled(*options: str) -> Way:
    """`fairlead run` with these options."""
    return Way((str(Path(sys.executable).with_name("fairlead")), "run", *options, "--"))


def ways() -> dict[str, Way]:
    """Stock, the short switch interval that programs set to help themselves, and `fairlead run`."""
    interval = Way(settings={"switch_interval": SWITCH_INTERVAL_S})
    return {"stock": STOCK, "interval": interval, "fairlead": scheduled()}


@contextmanager
def subject(
    name: str, way: Way = STOCK, **settings: Any
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A program of subjects/ in a process of its own, and the line of JSON that it begins with."""
    command = [*way.command, way.python, str(SUBJECTS / f"{name}.py")]
    with program(*command, **settings, **way.settings) as started:
        yield started


@contextmanager
def program(*command: str, **settings: Any) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The same with a program that is no script of subjects/."""
    with subprocess.Popen(
        [*command, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, answer(process)
        finally:
            process.kill()


@contextmanager
def cpu_bound_process(count: int = 1) -> Iterator[None]:
    """What the yardstick is measured beside: the same work, with a GIL of its own. Or so many."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(subject("busy"))
        yield


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that the subject prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the subject ended without an answer")
    result: dict[str, Any] = json.loads(line)
    return result


def steps_per_ms() -> float:
    """How many steps of work a core does in a millisecond just now."""
    steps, rates = 20_000, []
    for _ in range(51):
        begin = time.thread_time_ns()
        count_to(steps)
        rates.append(steps / (time.thread_time_ns() - begin) * 1e6)
    return median(rates)


def work_seconds(facts: Mapping[str, Any]) -> float:
    """Seconds of work that a server's CPU-bound threads have done, as their own count says: what they use a
    core for while they wait is not in it."""
    done = Path(facts["work"]).read_bytes()
    return sum(memoryview(done).cast("q")) / 1e9


def request_cpu_seconds(facts: Mapping[str, Any]) -> float:
    """Seconds of a core that a server's threads have used, but for those that only compute."""
    pid = facts["pid"]
    spun = (Path(f"/proc/{pid}/task/{thread}/schedstat") for thread in facts.get("spinners", ()))
    everything = time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    return everything - sum(int(one.read_text().split()[0]) for one in spun) / 1e9


def load(facts: Mapping[str, Any], **settings: Any) -> FIGURES:
    """Puts load on a server, which said these facts of itself, and says how it was answered, and what part of
    the time its CPU-bound threads worked meanwhile."""
    with subject("load", port=facts["port"], **settings) as (process, _):
        return watched(process, facts)


def watched(process: subprocess.Popen[str], facts: Mapping[str, Any]) -> FIGURES:
    """The next line that a program prints, which said these facts of itself; and what part of the time until
    then its CPU-bound threads worked, if it has any."""
    if "work" not in facts:
        return answer(process)
    begin, done = time.monotonic(), work_seconds(facts)
    figures = answer(process)
    return {**figures, "CPU share": (work_seconds(facts) - done) / (time.monotonic() - begin)}

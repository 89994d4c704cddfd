"""The yield probe: does giving up the processor give up anything here?

``time.sleep(0)`` is a real sleep of some 70 microseconds on CPython from 3.11 on, a bare system call
before, and no switch at all under SCHED_RR, where the thread then spins for its whole slice. What work
"sleep0" means in a sample can only be read together with this.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.identify import how_it_ended
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.plan import Plan
from fairlead.record.sample import parse

_PROGRAM = registry.DIRECTORY / "probe_yield.py"
_TIMEOUT_S = 15.0


def yield_probe(interpreter: Interpreter, policy: str, stop: Stop) -> dict[str, Any]:
    """What the probe prints on an interpreter under a scheduling policy.

    For "sleep0" and "yield" each, the microseconds of a call alone and beside a rival, and whether it
    ``yields`` (None where that cannot be told). A probe that fails gives ``{"failed": reason}``.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    try:
        outcome = subprocess_runner.run(
            [interpreter.path, str(_PROGRAM), "{}"],
            env=subprocess_runner.clean_environment(free_threaded=interpreter.free_threaded),
            timeout_s=_TIMEOUT_S,
            mark=uuid.uuid4().hex,
            stop=stop,
            policy=policy,
        )
    except OSError as error:
        return {"failed": str(error.strerror)}
    stop.check("stopped before the first sample; nothing was measured")
    if outcome.ended == "timeout" or outcome.returncode != 0:
        return {"failed": how_it_ended(outcome)}
    try:
        answer = parse(outcome.stdout)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"failed": "printed no result"}


def with_yield_probes(plan: Plan, stop: Stop) -> Plan:
    """The plan with the yield probe of every interpreter and policy in it, in its environment.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    found: dict[str, dict[str, Any]] = {}
    interpreters = {interpreter.name: interpreter for interpreter in plan.interpreters}
    for name, policy in dict.fromkeys((s.interpreter, s.policy) for s in plan.series if not s.skipped):
        found.setdefault(name, {})[policy] = yield_probe(interpreters[name], policy, stop)
    return replace(plan, environment={**plan.environment, "yield_probe": found})

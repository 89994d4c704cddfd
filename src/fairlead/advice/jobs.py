"""One job in a process of its own: whatever the function does there, this process goes on."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.advice import child
from fairlead.advice.child.worker import PROGRESS_BYTES
from fairlead.advice.target import Target
from fairlead.errors import AdviceError, UsageError
from fairlead.lab.catalogue.identify import how_it_ended
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.runner import RunProgress

Report = Callable[[RunProgress], None]

_OWN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from fairlead.advice.child.worker import main
main(sys.argv[2])
"""
_FOREIGN = """
import importlib.util, json, sys
sys.path[:0] = json.loads(sys.argv[1])
place = sys.argv[3]
spec = importlib.util.spec_from_file_location(
    "fairlead_child", place + "/__init__.py", submodule_search_locations=[place]
)
package = sys.modules["fairlead_child"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from fairlead_child.worker import main
main(sys.argv[2])
"""


@dataclass(frozen=True, slots=True)
class Died:
    """A job that gave no answer."""

    how: str
    """ "ended with status 3", "was ended by SIGSEGV"."""
    late: bool
    """It was ended because its time was up."""
    doing: str
    """The word of the worker's progress."""
    item: int
    """The place of the item that the function was last called with, where it was called one by one."""


class Bench:
    """Runs jobs for one target, one after another."""

    def __init__(self, target: Target, stop: Stop) -> None:
        self.target = target
        self._stop = stop
        self._mark = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._jobs = 0

    def run(
        self, stage: str, timeout_s: float, interpreter: Interpreter | None = None, **words: Any
    ) -> dict[str, Any] | Died:
        """The answer to a job; None of its processes is left.

        Args:
            interpreter: another one than that which runs fairlead.

        Raises:
            UsageError: the function or its items cannot be had.
            AdviceError: the function cannot be called as asked.
            RunInterruptedError: it was stopped from outside.
        """
        self._jobs += 1
        answer = self.target.directory / f"answer-{self._jobs}"
        progress = self.target.directory / "progress"
        progress.write_bytes(b"\0" * PROGRESS_BYTES)
        job = self.target.directory / "job"
        words |= {"stage": stage, "target": self.target.function, "items": self.target.items}
        begin = time.monotonic()
        words |= {"answer": str(answer), "progress": str(progress), "begin_s": begin}
        job.write_text(json.dumps(words), encoding="utf-8")
        path = list(self.target.path)
        if interpreter is None:
            argv = [sys.executable, "-P", "-c", _OWN, json.dumps(path), str(job)]
            environment = dict(os.environ)
        else:
            path = [entry for entry in path if not _belongs_to_python(entry)]
            place = str(Path(child.__file__).parent)
            argv = [interpreter.path, "-P", "-c", _FOREIGN, json.dumps(path), str(job), place]
            environment = subprocess_runner.clean_environment(free_threaded=interpreter.free_threaded)
        outcome = subprocess_runner.run(
            argv, env=environment, timeout_s=timeout_s, mark=self._mark, stop=self._stop
        )
        self._stop.check("stopped: nothing is left of what was measured")
        if answer.exists():
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            answer.unlink()
            found["elapsed_s"] = time.monotonic() - begin
            if "refused" in found and interpreter is None:
                raise (AdviceError if found["called"] else UsageError)(found["refused"])
            return found
        with progress.open("r+b") as file, mmap.mmap(file.fileno(), PROGRESS_BYTES) as seen:
            doing = seen[16:].rstrip(b"\0").decode()
            item = int.from_bytes(seen[:8], "little")
        late = outcome.ended == "timeout" or outcome.returncode == -signal.SIGALRM
        return Died(how_it_ended(outcome), late, doing, item)


def _belongs_to_python(entry: str) -> bool:
    """Whether a directory of ``sys.path`` holds modules of this interpreter, of no use to another."""
    return not entry or any(
        entry.startswith(prefix) for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}
    )

"""Open-loop load on a server of this machine: requests that arrive whether the server keeps up or not.

The generator is C (openloop.c, which says what it does) and is compiled on first use, so that it is never
the bottleneck and takes little of the cores that the server is measured on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
BUILD = Path(__file__).parents[2] / "build" / "load"


@dataclass(frozen=True)
class Requests:
    """One class of requests: how many arrive per second on average, and what a request needs by itself."""

    name: str
    rate: float
    service_ms: float
    text: str
    """What is sent: a line, a message, or the path of a GET."""


def program() -> Path:
    """The generator's executable, compiled unless this version of the source has been before."""
    text = b"".join(source.read_bytes() for source in SOURCES)
    path = BUILD / f"openloop-{hashlib.sha256(text).hexdigest()[:12]}"
    if not path.exists():
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise SystemExit("the load generator needs a C compiler: install gcc, or name one in CC")
        BUILD.mkdir(parents=True, exist_ok=True)
        parts = [source for source in SOURCES if source.suffix == ".c"]
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        subprocess.run(
            [*compiler.split(), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", unfinished, *parts, "-lm"],
            check=True,
        )
        unfinished.replace(path)
    return path


def openloop(
    port: int,
    classes: Sequence[Requests],
    *,
    seconds: float,
    warm_up: float = 1.0,
    drain: float = 5.0,
    seed: int = 1,
    protocol: str = "http",
    connections: int = 256,
    open_first: int = 0,
    at_begin: Callable[[], None] = lambda: None,
    at_end: Callable[[], None] = lambda: None,
) -> Mapping[str, Any]:
    """What the generator has seen. `at_begin` is called when the warm-up is over, and `at_end` when the last
    request has arrived."""
    command = [str(program()), "--port", str(port), "--protocol", protocol, "--seed", str(seed)]
    command += ["--seconds", str(seconds), "--warm-up", str(warm_up), "--drain", str(drain)]
    command += ["--connections", str(connections), "--open", str(open_first)]
    for one in classes:
        command += ["--class", one.name, str(one.rate), str(one.service_ms), one.text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                if "begin" in said:
                    at_begin()
                elif "end" in said:
                    at_end()
                else:
                    return dict(said)
        finally:
            if process.poll() is None:
                process.kill()
    raise SystemExit("the load generator ended without an answer; its message is above")

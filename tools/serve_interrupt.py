"""Does a published web server end on Ctrl-C while it serves? Stock and scheduled, at once.

    python tools/serve_interrupt.py [--rounds 60] [--rate 200] [--seed 1]

Each round starts the two servers of serve_soak.py (gunicorn, two processes of eight threads, a computing
thread in each), puts both under load, and after a random time sends SIGINT to all their processes, as a
terminal does. A server that has not ended 10 s later is stuck, and its workers say where their threads are.

Exit status 0: the scheduled server was stuck in no more rounds than stock, within what chance makes of such
counts.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from serve_soak import Requests, Server, openloop, prepared, together

STUCK_S = 10.0
NAMES = ("stock", "scheduled")
SIGNIFICANT = 0.01
CONFIG = """
import faulthandler, signal
def post_worker_init(worker):
    faulthandler.register(signal.SIGUSR2, all_threads=True)
"""


def interrupt(server: Server, rate: float, seed: int) -> float | None:
    """Seconds until it ended; None: it did not."""
    load = threading.Thread(
        target=openloop,
        args=(server.port, [Requests("orders", rate, 0.2, "/orders")]),
        kwargs={"seconds": 1.0, "warm_up": 0.0, "drain": 0.5, "seed": seed},
    )
    load.start()
    time.sleep(random.Random(seed).uniform(0.1, 1))
    os.killpg(server.process.pid, signal.SIGINT)
    began = time.monotonic()
    try:
        server.process.wait(STUCK_S)
    except subprocess.TimeoutExpired:
        for pid in server.workers():
            os.kill(pid, signal.SIGUSR2)
        time.sleep(1)
        print(f"{server.name} is stuck:\n{server.log.read_text()}", flush=True)
        return None
    finally:
        load.join()
    return time.monotonic() - began


def play(python: str, options: argparse.Namespace, seed: int) -> dict[str, float | None]:
    """A round: how long each server took to end."""
    took: dict[str, float | None] = {}
    with tempfile.TemporaryDirectory(prefix="fairlead-interrupt-") as place, ExitStack() as stack:
        config = Path(place) / "gunicorn.conf.py"
        config.write_text(CONFIG)
        further = ("--config", str(config))
        servers = [Server(name, python, options, Path(place), *further) for name in NAMES]
        for server in servers:
            stack.enter_context(server.running())

        def ends(server: Server) -> None:
            took[server.name] = interrupt(server, options.rate, seed)

        together(servers, ends)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rate", type=float, default=200, help="requests a second, of each server")
    parser.add_argument("--cpu-threads", type=int, default=1, help="computing threads in each worker")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    python = prepared()
    rounds: list[dict[str, float | None]] = []
    for number in range(options.rounds):
        rounds.append(play(python, options, options.seed * 10_000 + number))
        ended = (f"{name} {'stuck' if (s := rounds[-1][name]) is None else f'{s:.1f} s'}" for name in NAMES)
        print(f"{number + 1}/{options.rounds}: {', '.join(ended)}", flush=True)
    stuck = {name: sum(took[name] is None for took in rounds) for name in NAMES}
    for name in NAMES:
        longest = max((took[name] or 0 for took in rounds), default=0)
        print(f"{name}: stuck in {stuck[name]} of {options.rounds} rounds; else at most {longest:.1f} s")
    every = sum(stuck.values())
    chance = sum(math.comb(every, count) for count in range(stuck["scheduled"], every + 1)) / 2**every
    return chance < SIGNIFICANT


if __name__ == "__main__":
    sys.exit(main())

"""A Flask application beside a thread that pickles a large object again and again.

`pickle.dumps` is one call of C that keeps the GIL to its end. No scheduler can take it away: what helps is to
know which thread and which function it is, and to move it into another process.
"""

from __future__ import annotations

import pickle
import threading
import time

import beside
from flask import Flask

app = Flask("example")


@app.get("/orders")
def orders() -> list[dict[str, object]]:
    beside.query()
    beside.query()
    return [{"order": number, "state": "sent"} for number in range(20)]


def save_snapshots(snapshot: list[tuple[int, str]]) -> None:
    while True:
        pickle.dumps(snapshot)
        time.sleep(0.05)


beside.shorten_switch_interval()
threading.Thread(
    target=save_snapshots, args=([(n, str(n)) for n in range(100_000)],), name="snapshots", daemon=True
).start()

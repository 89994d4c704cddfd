"""A Flask application: an endpoint with two database queries, and one that computes for 2 ms."""

from __future__ import annotations

import beside
from flask import Flask

app = Flask("example")


@app.get("/orders")
def orders() -> list[dict[str, object]]:
    beside.query()
    beside.query()
    return [{"order": number, "state": "sent"} for number in range(20)]


@app.get("/work")
def work() -> str:
    beside.work(2)
    return "done"


beside.compute()

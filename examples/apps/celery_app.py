"""A Celery application whose task has two database queries. The task reports when it was done."""

from __future__ import annotations

import os
import time
from typing import Any

import beside
import redis
from celery import Celery
from celery.signals import worker_ready

URL = f"redis://127.0.0.1:{os.environ['EXAMPLE_REDIS_PORT']}/0"
app = Celery("example", broker=URL)
app.conf.task_ignore_result = True
app.conf.worker_hijack_root_logger = False
results = redis.Redis.from_url(URL)


@app.task
def order(number: int) -> None:
    beside.query()
    beside.query()
    results.rpush("done", f"{number} {time.monotonic()}")


@worker_ready.connect
def start(**_: Any) -> None:
    beside.compute()

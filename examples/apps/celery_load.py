"""Sends tasks to the Celery worker when they are due, and takes when they were done from Redis."""

from __future__ import annotations

import measure
from celery_app import order, results

order.delay(-1)
assert results.blpop("done", timeout=30), "the worker does not answer"
seen = measure.Latencies()
for due in measure.arrivals():
    measure.sleep_until(due)
    seen.ask(due)
    order.delay(len(seen.asked) - 1)
while seen.open() and (answer := results.blpop("done", timeout=5)):
    number, done = answer[1].split()
    seen.answer(seen.asked[int(number)], float(done))
measure.say(requests=seen)

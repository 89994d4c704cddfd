"""Four threads that ask Redis with a time-out of 10 ms, beside threads of the same process that compute.

The time-out may fire while the answer lies in the socket already, if the thread does not get the GIL in time.
"""

from __future__ import annotations

import os
import threading

import beside
import measure
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

THREADS = 4
PORT = int(os.environ["EXAMPLE_REDIS_PORT"])
client = redis.Redis(
    port=PORT, socket_timeout=0.01, socket_connect_timeout=5, retry=Retry(NoBackoff(), retries=0)
)
seen = [measure.Latencies() for _ in range(THREADS)]


def ask(stream: int) -> None:
    for due in measure.arrivals(stream, THREADS):
        measure.sleep_until(due)
        seen[stream].ask(due)
        try:
            client.get("order")
        except redis.TimeoutError:
            seen[stream].fail(due)
        else:
            seen[stream].answer(due)


beside.compute()
threads = [threading.Thread(target=ask, args=(stream,), name=f"asks-{stream}") for stream in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
total = measure.Latencies()
for one in seen:
    total.add(one)
measure.say(requests=total)

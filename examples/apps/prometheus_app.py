"""A process that computes and offers its metrics to Prometheus, by the client library's own server."""

from __future__ import annotations

import os
import threading

import beside
from prometheus_client import Counter, start_http_server

orders = Counter("orders", "Orders by shop", ["shop"])
for shop in range(50):
    orders.labels(f"shop-{shop}").inc()
start_http_server(int(os.environ["EXAMPLE_PORT"]), addr="127.0.0.1")
beside.compute()
threading.Event().wait()

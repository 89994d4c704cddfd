"""A FastAPI application: one endpoint in a thread of the pool and on the loop, and one that computes."""

from __future__ import annotations

import asyncio

import beside
from fastapi import FastAPI

app = FastAPI()


@app.get("/orders")
def orders() -> list[dict[str, object]]:
    beside.query()
    beside.query()
    return [{"order": number, "state": "sent"} for number in range(20)]


@app.get("/orders-async")
async def orders_async() -> list[dict[str, object]]:
    for _ in range(2):
        beside.work(0.1)
        await asyncio.sleep(0.002)
    return [{"order": number, "state": "sent"} for number in range(20)]


@app.get("/work")
def work() -> str:
    beside.work(2)
    return "done"


beside.compute()

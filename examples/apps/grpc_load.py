"""Calls the gRPC server when a call is due."""

from __future__ import annotations

import asyncio
import os
import time

import grpc
import measure


async def main() -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{os.environ['EXAMPLE_PORT']}") as channel:
        method = channel.unary_unary("/example.Shop/Order")
        await method(b"first", wait_for_ready=True, timeout=30)
        seen = measure.Latencies()

        async def call(due: float) -> None:
            seen.ask(due)
            try:
                await method(b"order", timeout=10)
            except grpc.RpcError:
                seen.fail(due)
            else:
                seen.answer(due)

        calls = []
        for due in measure.arrivals():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            calls.append(asyncio.create_task(call(due)))
        await asyncio.gather(*calls)
        measure.say(requests=seen)


asyncio.run(main())

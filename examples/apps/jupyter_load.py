"""Lets a cell of a Jupyter kernel start threads that compute, and then runs cells when they are due, and has
the kernel's heartbeat answered."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import measure
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient

CELL = {
    "code": "1 + 1",
    "silent": False,
    "store_history": False,
    "user_expressions": {},
    "allow_stdin": False,
}


async def heartbeats(client: AsyncKernelClient, seen: measure.Latencies) -> None:
    socket = zmq.asyncio.Context.instance().socket(zmq.REQ)
    socket.connect(f"tcp://127.0.0.1:{client.hb_port}")
    for due in measure.arrivals(1, 2):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        seen.ask(due)
        await socket.send(b"alive?")
        await socket.recv()
        seen.answer(due)
    socket.close()


async def cells(client: AsyncKernelClient, seen: measure.Latencies) -> None:
    due: dict[str, float] = {}

    async def answers() -> None:
        while True:
            reply = await client.get_shell_msg()
            seen.answer(due[reply["parent_header"]["msg_id"]])

    reading = asyncio.create_task(answers())
    for at in measure.arrivals(0, 2):
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        seen.ask(at)
        asked = client.session.msg("execute_request", CELL)
        due[asked["header"]["msg_id"]] = at
        # client.execute() sends past the socket's event loop, which then misses an answer that came
        # meanwhile, and all after it
        await client.shell_channel.socket.send_multipart(client.session.serialize(asked))
    give_up = time.monotonic() + 5
    while seen.open() and time.monotonic() < give_up:
        await asyncio.sleep(0.01)
    reading.cancel()


async def main() -> None:
    file = Path(os.environ["EXAMPLE_DIRECTORY"]) / "kernel.json"
    while not file.exists() or not file.read_text().endswith("}"):
        await asyncio.sleep(0.05)
    client = AsyncKernelClient(connection_file=str(file))
    client.load_connection_file()
    client.start_channels()
    await client.wait_for_ready(timeout=30)
    await client.execute_interactive("import beside; beside.compute()", store_history=False, timeout=30)
    seen = {"a cell": measure.Latencies(), "heartbeat": measure.Latencies()}
    await asyncio.gather(cells(client, seen["a cell"]), heartbeats(client, seen["heartbeat"]))
    measure.say(**seen)
    client.stop_channels()


asyncio.run(main())

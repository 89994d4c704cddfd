"""An asyncio echo server on streams, with CPU-bound threads beside its loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext, suppress

import subject


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, sock=listener)
    work = subject.spinners()
    subject.say(port=listener.getsockname()[1], **work)
    priority = nullcontext()
    if "priority" in subject.SETTINGS:
        import fairlead.gil  # which not every interpreter that is measured has

        priority = fairlead.gil.priority(subject.SETTINGS["priority"])
    with priority:
        await server.serve_forever()


subject.set_switch_interval()
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
subject.fork_workers()
asyncio.run(main())

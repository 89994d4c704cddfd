"""An asyncio echo server on streams, with CPU-bound threads beside its loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import subject

import fairlead.gil


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    work = subject.spinners()
    subject.say(port=server.sockets[0].getsockname()[1], **work)
    with fairlead.gil.priority(subject.SETTINGS.get("priority", "normal")):
        await server.serve_forever()


subject.set_switch_interval()
asyncio.run(main())

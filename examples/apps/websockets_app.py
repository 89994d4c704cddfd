"""An echo server of websockets.sync: a thread for each connection."""

from __future__ import annotations

import os

import beside
from websockets.sync.server import ServerConnection, serve


def echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


server = serve(echo, "127.0.0.1", int(os.environ["EXAMPLE_PORT"]))
beside.compute()
server.serve_forever()

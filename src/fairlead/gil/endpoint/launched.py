"""In a program that is to answer over HTTP from its start: begins that before the first line."""

from __future__ import annotations

import os
import sys

from fairlead.errors import FairleadError
from fairlead.gil.endpoint.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def begin(wanted: dict[str, Any]) -> str | None:
    """Serve, or say why that cannot be.

    Args:
        wanted: address, token_file, stalled_after, busy_after and pid. Only the process of that number
            serves: another Python that it starts would ask for the same port.
    """
    if wanted["pid"] != os.getpid():
        return None
    try:
        server = Server(
            wanted["address"],
            read_token(wanted["token_file"]),
            wanted["stalled_after"],
            wanted["busy_after"],
        )
    except (FairleadError, OSError) as error:
        return str(error)
    if wanted["token_file"] is None and sys.stderr is not None:
        header = f"-H 'Authorization: Bearer {server.token}'"
        said = f"fairlead: serving {server.url}/healthz and /metrics; /holder and /threads need a token:"
        sys.stderr.write(f"{said} curl {header} {server.url}/holder\n")
        sys.stderr.flush()
    return None


def read_token(file: str | None) -> str | None:
    """The first line of a file."""
    if file is None:
        return None
    with open(file, encoding="utf-8") as content:  # noqa: PTH123
        return content.readline().strip()

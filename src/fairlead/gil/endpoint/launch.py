"""What ``fairlead run --serve`` has the program begin with."""

from __future__ import annotations

import os
from pathlib import Path

from fairlead.errors import UsageError
from fairlead.gil.endpoint.launched import read_token
from fairlead.gil.endpoint.server import check_token, checked_ns, is_loopback, parse_address
from fairlead.gil.observe.programs.starting import Action


def serve_action(
    address: str, token_file: Path | None, stalled_after: float, busy_after: float | None
) -> Action:
    """Serve in the process that this one becomes.

    Raises:
        UsageError: the program could not serve like that.
    """
    host, _ = parse_address(address)
    checked_ns("--stalled-after", stalled_after)
    checked_ns("--busy-after", busy_after)
    if token_file is None and not is_loopback(host):
        raise UsageError(f"other machines can reach {host}: give --token-file, or serve at 127.0.0.1")
    if token_file is not None:
        try:
            token = read_token(str(token_file))
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise UsageError(f"no token can be read from {token_file}: {reason}") from error
        check_token(token or "")
    return Action(
        "fairlead.gil.endpoint.launched",
        {
            "address": address,
            "token_file": None if token_file is None else str(token_file.resolve()),
            "stalled_after": stalled_after,
            "busy_after": busy_after,
            "pid": os.getpid(),
        },
    )

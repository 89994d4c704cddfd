"""What ``serve()`` and ``fairlead run --serve`` are asked for, before anything listens."""

from __future__ import annotations

import os
import socket
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import fairlead.gil
from fairlead.errors import OutputError, UnsupportedInterpreterError, UsageError
from fairlead.gil.endpoint import launched
from fairlead.gil.endpoint.launch import serve_action
from fairlead.gil.endpoint.server import current, parse_address
from fairlead.gil.observe.access import why_not

observable = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("127.0.0.1:9911", ("127.0.0.1", 9911)),
        ("9911", ("127.0.0.1", 9911)),
        ("localhost:1", ("127.0.0.1", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
    ],
)
def test_addresses_are_read(address: str, place: tuple[str, int]) -> None:
    assert parse_address(address) == place


@pytest.mark.parametrize(
    "address", ["", ":80", "::1:80", "example.org:80", "127.0.0.1:65536", "127.0.0.1:", "a"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="not an address to serve at"):
        fairlead.gil.serve(address)


def test_address_that_others_reach_takes_a_token() -> None:
    with pytest.raises(UsageError, match="give a token"):
        fairlead.gil.serve("0.0.0.0:0")
    with pytest.raises(UsageError, match="--token-file"):
        serve_action("[::]:0", None, 10, None)


@pytest.mark.parametrize("token", ["", "short", "sixteen characters", "sixteen-charactérs"])
def test_token_that_is_a_guess_or_no_header_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="openssl rand"):
        fairlead.gil.serve("0.0.0.0:0", token=token)


@pytest.mark.parametrize("seconds", [0, -1, 1e10, float("nan")])
def test_limit_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="stalled_after is in seconds"):
        fairlead.gil.serve("0", stalled_after=seconds)
    with pytest.raises(UsageError, match="busy_after is in seconds"):
        fairlead.gil.serve("0", busy_after=seconds)


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="asks a free-threaded build, which has no GIL"
)
@pytest.mark.parametrize("ask", [fairlead.gil.serve, lambda: fairlead.gil.observe().start()])
def test_free_threaded_build_is_refused_with_what_to_use_instead(ask: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedInterpreterError, match=r"free-threaded build.*fairlead\.sync\.waits"):
        ask()


@observable
def test_one_process_serves_once_and_a_taken_port_is_reported() -> None:
    with fairlead.gil.serve("0") as server:
        assert repr(server) == f"<fairlead.gil.Server at http://127.0.0.1:{server.port}, going on>"
        with pytest.raises(UsageError, match=f"already, at {server.url}"):
            fairlead.gil.serve("0")
    server.stop()
    assert "ended" in repr(server)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = str(one.getsockname()[1])
        with pytest.raises(OutputError, match="Address already in use"):
            fairlead.gil.serve(port)
    assert current() is None


def test_action_is_for_one_process_and_names_the_tokens_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\nand what else is in it\n")
    wanted = serve_action("0.0.0.0:9911", file, 5, 60)
    assert wanted.settings["token_file"] == str(file)
    assert "0123456789abcdef" not in repr(wanted.settings)
    assert launched.read_token(str(file)) == "0123456789abcdef"
    assert wanted.settings["pid"] == os.getpid()
    assert launched.begin({**wanted.settings, "pid": os.getpid() + 1}) is None
    assert current() is None


def test_reason_why_a_program_cannot_serve_is_reported() -> None:
    settings = {"address": "0", "token_file": "/no/such/file", "stalled_after": 1, "busy_after": None}
    told = launched.begin({**settings, "pid": os.getpid()})
    assert told is not None
    assert "/no/such/file" in told

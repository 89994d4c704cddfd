"""``fairlead.gil.serve``: liveness and metrics over HTTP, from a native thread that never takes the GIL."""

from __future__ import annotations

import os
from _thread import get_native_id

from fairlead.errors import OutputError, UsageError
from fairlead.gil.observe import names
from fairlead.gil.observe.access import Window, exclusive, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

LEAST_TOKEN = 16
_DIGITS = frozenset("0123456789")
_OF_A_HOST = {"[": _DIGITS | frozenset("abcdefABCDEF:."), "": _DIGITS | {"."}}

_current: Server | None = None
_handlers = False


class Server:
    """An endpoint that goes on until ``stop()`` or the end of the process; also a context manager.

    Attributes:
        host: the address that it listens at.
        port: the port; the one that the system chose, if 0 was asked for.
        token: what a request for names of threads, functions and files needs; random if none was given.
    """

    def __init__(
        self, address: str, token: str | None, stalled_after: float, busy_after: float | None
    ) -> None:
        self.host, self.port = parse_address(address)
        if token is not None:
            check_token(token)
        elif not is_loopback(self.host):
            raise UsageError(f"other machines can reach {self.host}: give a token, or serve at 127.0.0.1")
        self.token = token or os.urandom(16).hex()
        limits = checked_ns("stalled_after", stalled_after), checked_ns("busy_after", busy_after)
        self._window: Window | None = None
        self._begin(token is not None, *limits)

    def _begin(self, for_all: bool, stalled_ns: int | None, busy_ns: int | None) -> None:
        global _current
        require()
        from fairlead import _probe

        with exclusive():
            if _current is not None:
                raise UsageError(f"this process serves already, at {_current.url}: stop that first")
            window = Window(None)
            try:
                self.port = _probe.serve(self.host, self.port, self.token, for_all, stalled_ns or 0, busy_ns)
            except OSError as error:
                window.close()
                raise OutputError(
                    f"{self.host}:{self.port} cannot be served at ({error.strerror}): choose another address"
                ) from error
            except BaseException:
                window.close()
                raise
            self._window = window
            _current = self
        names.follow()
        _handle_forks()

    @property
    def url(self) -> str:
        """Where it answers: ``/healthz``, ``/metrics``, ``/holder`` and ``/threads`` are below it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def stop(self) -> None:
        """Close the socket and all connections. Harmless when it has ended."""
        global _current
        with exclusive():
            window, self._window = self._window, None
            if window is None:
                return
            from fairlead import _probe

            _probe.serve_stop()
            window.close()
            _current = None
        names.unfollow()

    def _end_in_child(self) -> None:
        """After a fork, where the extension has closed the sockets already."""
        window, self._window = self._window, None
        if window is not None:
            window.close()
            names.unfollow()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<fairlead.gil.Server at {self.url}, {'going on' if self._window else 'ended'}>"


def parse_address(address: str) -> tuple[str, int]:
    """HOST:PORT, [HOST]:PORT or PORT; the host in digits, or localhost, and 127.0.0.1 if it is left out.

    Raises:
        UsageError: it is no such address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or host == "localhost":
        host = "127.0.0.1"
    bracket = "[" if host.startswith("[") and host.endswith("]") else ""
    host = host[1:-1] if bracket else host
    is_port = 0 < len(port) <= 5 and _DIGITS.issuperset(port) and int(port) <= 65535
    if not is_port or not host or not _OF_A_HOST[bracket].issuperset(host):
        raise UsageError(
            f"{address!r} is not an address to serve at; write it as 127.0.0.1:9911 or [::1]:9911"
        )
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Only this machine reaches it. The extension makes sure of that by the address's bytes."""
    return host.startswith("127.") or host == "::1"


def check_token(token: str) -> None:
    """Raises UsageError unless it can stand in a header, and be no guess."""
    if len(token) < LEAST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise UsageError(
            f"a token is at least {LEAST_TOKEN} printable ASCII characters without spaces; make one with:"
            " openssl rand -hex 16"
        )


def checked_ns(name: str, seconds: float | None) -> int | None:
    """Raises UsageError unless it is a time."""
    if seconds is None:
        return None
    if not 0.1 <= seconds < 1e9:
        raise UsageError(f"{name} is in seconds, at least 0.1, and not {seconds!r}")
    return round(seconds * 1e9)


def current() -> Server | None:
    """The endpoint of this process."""
    return _current


def _handle_forks() -> None:
    """A fork finds no thread of the endpoint's, so that Python does not warn of a thread that the program did
    not start."""
    global _handlers
    if not _handlers:
        _handlers = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )


def _before_fork() -> None:
    if _current is not None:
        from fairlead import _probe

        _probe.serve_pause()


def _after_in_parent() -> None:
    if _current is not None:
        from fairlead import _probe

        _probe.serve_resume(get_native_id() == os.getpid())


def _after_in_child() -> None:
    global _current
    server, _current = _current, None
    if server is not None:
        server._end_in_child()

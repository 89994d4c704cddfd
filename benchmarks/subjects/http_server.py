"""A web server with CPU-bound threads inside. Settings: kind (waitress, uvicorn)."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import subject

TEXT = "x" * 1000


def waitress(listener: socket.socket) -> Callable[[], None]:
    import flask
    import waitress

    app = flask.Flask("app")

    @app.get("/")
    def index() -> str:
        return TEXT

    logging.getLogger("waitress").setLevel(logging.ERROR)  # that a request had to queue is the load's doing
    return lambda: waitress.serve(app, sockets=[listener], threads=8)


def uvicorn(listener: socket.socket) -> Callable[[], None]:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def answer(_: Request) -> PlainTextResponse:  # not async: it runs in a thread
        return PlainTextResponse(TEXT)

    app = Starlette(routes=[Route("/", answer)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", loop="asyncio", http="h11"))
    return lambda: server.run([listener])


subject.set_switch_interval()
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
# connections inherit it; without, an answer in two parts waits 40 ms for the client's acknowledgement
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
subject.fork_workers()
serve = {"waitress": waitress, "uvicorn": uvicorn}[subject.SETTINGS["kind"]](listener)
work = subject.spinners()  # not before all is imported, which they would slow down
subject.say(port=listener.getsockname()[1], **work)
serve()

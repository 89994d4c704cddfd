"""A web server with CPU-bound threads inside. Settings: kind (waitress, uvicorn)."""

from __future__ import annotations

import logging
import socket

import subject

TEXT = "x" * 1000


def waitress(listener: socket.socket) -> None:
    import flask
    import waitress

    app = flask.Flask("app")

    @app.get("/")
    def index() -> str:
        return TEXT

    logging.getLogger("waitress").setLevel(logging.ERROR)  # that a request had to queue is the load's doing
    waitress.serve(app, sockets=[listener], threads=8)


def uvicorn(listener: socket.socket) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def answer(_: Request) -> PlainTextResponse:  # not async: it runs in a thread
        return PlainTextResponse(TEXT)

    app = Starlette(routes=[Route("/", answer)])
    uvicorn.Server(uvicorn.Config(app, log_level="error", loop="asyncio", http="h11")).run([listener])


subject.schedule()
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
tids = subject.spinners()
subject.say(port=listener.getsockname()[1], tids=tids)
{"waitress": waitress, "uvicorn": uvicorn}[subject.SETTINGS["kind"]](listener)

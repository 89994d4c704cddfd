"""The programs of own_programs.py: how each is started, and what load is put on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """Requests at random times, so many a second on average."""

    rate: float
    path: str = ""
    """Of an HTTP GET; or the text of a websocket message."""
    protocol: str = "http"
    """http, websocket; or python: a program that makes the requests, or the measured program itself."""
    program: str = ""
    """Of apps/, where the protocol is python; without one, the measured program does it itself."""
    connections: int = 256


@dataclass(frozen=True)
class Program:
    """`command` and `beside` are what Python is given; {port} and {apps} are replaced."""

    packages: tuple[str, ...]
    command: str
    load: Load
    cpu_threads: int = 1
    beside: str = ""
    """A program that is started first, and is not scheduled: what the example talks to."""
    redis: bool = False
    workers: str = ""
    """The option by which the server itself starts two processes, if it can."""


FLASK = "-m gunicorn --worker-class gthread --threads 8 --bind 127.0.0.1:{port} --chdir {apps}"
WAITRESS = "-m waitress --listen=127.0.0.1:{port} --threads=8"
UVICORN = "-m uvicorn --port {port} --app-dir {apps} --log-level error fastapi_app:app"

PROGRAMS = {
    "gunicorn-flask": Program(
        ("gunicorn", "flask"),
        f"{FLASK} flask_app:app",
        Load(80, "/orders"),
        workers="--workers 2",
    ),
    "waitress-flask": Program(
        ("waitress", "flask"),
        f"{WAITRESS} flask_app:app",
        Load(80, "/orders"),
    ),
    "waitress-django": Program(
        ("waitress", "django"),
        f"{WAITRESS} django_app:application",
        Load(80, "/orders"),
    ),
    "uvicorn-fastapi-sync": Program(
        ("uvicorn", "fastapi"),
        UVICORN,
        Load(80, "/orders"),
        workers="--workers 2",
    ),
    "uvicorn-fastapi-async": Program(
        ("uvicorn", "fastapi"),
        UVICORN,
        Load(80, "/orders-async"),
        workers="--workers 2",
    ),
    "gunicorn-work": Program(
        ("gunicorn", "flask"),
        f"{FLASK} flask_app:app",
        Load(120, "/work"),
        cpu_threads=0,
        workers="--workers 2",
    ),
    "uvicorn-work": Program(
        ("uvicorn", "fastapi"),
        UVICORN,
        Load(120, "/work"),
        cpu_threads=0,
        workers="--workers 2",
    ),
    "celery": Program(
        ("celery", "redis"),
        "-m celery --app celery_app --quiet worker --pool threads --concurrency 8 --loglevel ERROR"
        " --without-gossip --without-mingle --without-heartbeat",
        Load(30, protocol="python", program="celery_load.py"),
        redis=True,
    ),
    "dask": Program(
        ("distributed",),
        "-m distributed.cli.dask_worker tcp://127.0.0.1:{port_2} --nthreads 2 --no-nanny"
        " --preload dask_preload --dashboard-address 127.0.0.1:0",
        Load(30, protocol="python", program="dask_load.py"),
        cpu_threads=2,
        beside="-m distributed.cli.dask_scheduler --host 127.0.0.1 --port {port_2} --no-show"
        " --dashboard-address 127.0.0.1:0",
    ),
    "redis-py": Program(
        ("redis",),
        "{apps}/redis_client.py",
        Load(120, protocol="python"),
        redis=True,
    ),
    "opentelemetry": Program(
        ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
        "{apps}/otel_app.py",
        Load(100, protocol="python"),
        beside="{apps}/collector.py",
    ),
    "prometheus": Program(
        ("prometheus-client",),
        "{apps}/prometheus_app.py",
        Load(15, "/metrics"),
    ),
    "websockets": Program(
        ("websockets",),
        "{apps}/websockets_app.py",
        Load(100, "twenty characters...", "websocket", connections=64),
    ),
    "grpcio": Program(
        ("grpcio",),
        "{apps}/grpc_app.py",
        Load(80, protocol="python", program="grpc_load.py"),
    ),
    "jupyter": Program(
        ("ipykernel", "jupyter-client"),
        "-m ipykernel_launcher -f {directory}/kernel.json --HistoryManager.enabled=False",
        Load(20, protocol="python", program="jupyter_load.py"),
    ),
    "streamlit": Program(
        ("streamlit",),
        "{apps}/streamlit_app.py",
        Load(50, "/_stcore/health"),
    ),
    "long-c-call": Program(
        ("waitress", "flask"),
        f"{WAITRESS} pickling_app:app",
        Load(50, "/orders"),
        cpu_threads=0,
    ),
}

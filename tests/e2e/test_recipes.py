"""The commands and files of docs/how-to/recipes.md: what they start answers, and is scheduled; and those that
record gunicorn (see-the-gil.md).

`make companions` installs the programs, and runs these tests; a program that is not installed is left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from companions import CLONE
from servers import BIN, ENVIRONMENT, WSGI, Server, free_port, needs, served, started, surroundings

from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule import outside

PAGE = (CLONE / "docs" / "how-to" / "recipes.md").read_text(encoding="utf-8")
RECORDING = (CLONE / "docs" / "how-to" / "see-the-gil.md").read_text(encoding="utf-8")

NO_WAIT_YET = "no thread has waited for the GIL yet"  # of a master, whose threads need not meet

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.long,
    pytest.mark.timeout(120),
]


def blocks(section: str, kind: str) -> list[str]:
    """The fenced blocks of a kind in a section of the page."""
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(section: str) -> list[str]:
    return [line for block in blocks(section, "sh") for line in block.splitlines()]


def test_every_command_of_the_page_is_run_here() -> None:
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    counts = {section: len(commands(section)) for section in sections}
    assert counts == {
        "gunicorn": 2,
        "uWSGI": 1,
        "Celery": 2,
        "Django": 3,
        "FastAPI, Starlette": 2,
        "Launchers: OpenTelemetry, ddtrace": 2,
        "A server that runs already": 1,
        "systemd": 1,
        "Docker": 1,
        "Kubernetes": 1,
    }


def test_gunicorn_has_scheduled_workers_after_a_reload_and_a_renewal_too(tmp_path: Path) -> None:
    needs("gunicorn")
    with served(commands("gunicorn")[0], tmp_path) as server:
        old = server.several(2)
        server.process.send_signal(signal.SIGHUP)
        reloaded = server.first(without=old)
        server.process.send_signal(signal.SIGUSR2)
        renewed = server.first(not_of=server.process.pid)  # a child of a new master
    assert {*old.values(), reloaded.policy, renewed.policy} == {"interactive"}


def test_gunicorn_with_four_workers_is_one_recording_one_page_and_one_trace(tmp_path: Path) -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    needs("gunicorn")
    section = RECORDING.partition("## Several processes")[2].partition("\n## ")[0]
    record, report = re.findall(r"^(fairlead .*)$", section, re.MULTILINE)
    with served(record, tmp_path) as server:
        workers = set(server.several(4))
        server.process.terminate()
        assert server.process.wait(timeout=40) == 0, server.log.read_text()
    for form in ("html", "json -o app.json", "perfetto"):
        command = report.replace("html", form)
        subprocess.run(command, shell=True, cwd=tmp_path, env=surroundings({}), check=True, timeout=100)
    told = json.loads((tmp_path / "app.json").read_text())
    assert told["problems"] == []
    master, *others = told["processes"]
    pids = [one["meta"]["pid"] for one in (master, *others)]
    assert set(pids[1:]) == workers
    assert {one["meta"]["parent_pid"] for one in others} == {pids[0]}
    for one in others:  # on the clock of the master: they began after it, and ended before
        begun = (one["meta"]["start_ns"] - master["meta"]["start_ns"]) / 1e9
        assert one["start_seconds"] == pytest.approx(begun, abs=1e-6)
        assert 0 < begun < begun + one["wall_seconds"] < master["wall_seconds"]
    page = (tmp_path / "app.flrec.html").read_text()
    assert all(str(pid) in page for pid in pids)
    trace = pb.Trace()
    trace.ParseFromString((tmp_path / "app.flrec.perfetto-trace").read_bytes())
    tracks = [one.track_descriptor.process for one in trace.packet if one.HasField("track_descriptor")]
    assert sorted(one.pid for one in tracks if one.pid) == sorted(pids)
    times = [one.timestamp for one in trace.packet if one.HasField("track_event")]
    assert (max(times) - min(times)) / 1e9 <= told["wall_seconds"]


COMPUTES = """
import threading
def compute():
    while True:
        sum(range(500))
def application(environ, start_response):
    if not computing.is_set():
        computing.set()
        threading.Thread(target=compute, daemon=True).start()
    return app(environ, start_response)
computing = threading.Event()
"""


@pytest.mark.parametrize("by", ["command", "application"])
def test_workers_of_uwsgi_are_scheduled(by: str, tmp_path: Path) -> None:
    """Beside a thread that computes, which answers wait for."""
    needs("uwsgi")
    port = free_port()
    [command] = commands("uWSGI")
    command = command.replace("/srv/app", str(ENVIRONMENT.path)).replace(":8000", f"127.0.0.1:{port}")
    [asks] = blocks("uWSGI", "python")
    code = WSGI + COMPUTES
    if by == "application":
        command, code = command.partition(" -- ")[2], code + asks
    (tmp_path / "computing.py").write_text(code)
    with started(command.replace("app.py", "computing.py"), tmp_path, port) as server:
        policies = server.several(2)
        assert set(policies.values()) == {"interactive"}
        for pid in policies:
            seen = outside.send(pid, "status")
            assert (seen.policy, seen.trips) == ("interactive", 0)
        server.several(2)
        assert any(outside.send(pid, "status").waits > 0 for pid in policies)


@pytest.mark.parametrize("command", commands("Celery"), ids=["threads", "prefork"])
def test_tasks_of_celery_run_scheduled(command: str, tmp_path: Path) -> None:
    needs("celery")
    for name in ("queue", "results"):
        (tmp_path / name).mkdir()
    with started(command, tmp_path):
        done = subprocess.run(
            [ENVIRONMENT.python, "-c", "import tasks; print(tasks.policy.delay().get(timeout=60))"],
            cwd=tmp_path,
            env=surroundings({}),
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert (done.returncode, done.stdout) == (0, "interactive\n"), (tmp_path / "log").read_text()


ANSWERING = {
    "gunicorn": ["gunicorn"],
    "Django": ["django", "gunicorn"],
    "FastAPI, Starlette": ["uvicorn", "fastapi"],
    "Launchers: OpenTelemetry, ddtrace": ["gunicorn"],
}
"""What the commands of a section need; each starts a server that answers."""
NO_TRACES = {
    **{f"OTEL_{what}_EXPORTER": "none" for what in ("TRACES", "METRICS", "LOGS")},
    **{"DD_TRACE_ENABLED": "false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false"},
}


@pytest.mark.parametrize(
    ("section", "command"), [(section, one) for section in ANSWERING for one in commands(section)]
)
def test_server_of_the_page_is_scheduled(section: str, command: str, tmp_path: Path) -> None:
    launched = {"opentelemetry-instrument": "opentelemetry-distro", "ddtrace-run": "ddtrace"}
    needs(*ANSWERING[section], *(package for name, package in launched.items() if name in command))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "wsgi.py").write_text(WSGI)
    command = command.replace(" python ", f" {ENVIRONMENT.python} ") if section == "Django" else command
    port = free_port()
    with started(command, tmp_path, port, UVICORN_PORT=str(port), **NO_TRACES) as server:
        assert server.first().policy in {"interactive", *(["stock"] if "--canary" in command else [])}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
@pytest.mark.parametrize("command", [commands("gunicorn")[0], commands("FastAPI, Starlette")[1]])
def test_server_that_runs_already_is_scheduled_with_its_workers_and_given_back(
    command: str, tmp_path: Path
) -> None:
    needs(*(["gunicorn"] if "gunicorn" in command else ["uvicorn", "fastapi"]))
    port = free_port()
    bind = {"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}", "UVICORN_PORT": str(port)}
    with started(command.partition(" -- ")[2], tmp_path, port, **bind) as server:
        before = server.several(2)
        assert set(before.values()) == {"stock"}
        master = server.process.pid
        [order] = commands("A server that runs already")
        words = re.sub(r"\$\(.*?\)", str(master), order.replace(" --for 10m", "")).split()
        done = subprocess.run(words, env=surroundings({}), capture_output=True, text=True, timeout=100)
        if "cannot be attached to" in done.stderr:
            pytest.skip(done.stderr)
        *said, end = done.stdout.splitlines()
        everyone = sorted(f"process {pid}: policy interactive" for pid in (master, *before))
        assert (sorted(said), done.stderr) == (everyone, "")
        assert server.several(2) == dict.fromkeys(before, "interactive")
        if "gunicorn" in command:
            os.kill(next(iter(before)), signal.SIGKILL)
            assert server.first(without=before).policy == "interactive"
        subprocess.run(end.partition(": ")[2].split(), env=surroundings({}), check=True, timeout=100)
        assert set(server.several(2).values()) == {"stock"}


def unit(directory: Path) -> Path:
    """The unit file of the page, whose paths lead to the programs that are here."""
    places = {
        "/srv/app/bin/fairlead": str(BIN / "fairlead"),
        "/srv/app/bin/gunicorn": str(ENVIRONMENT.python.with_name("gunicorn")),
        "=/srv/app": f"={directory}",
    }
    [text] = blocks("systemd", "ini")
    for old, new in places.items():
        text = text.replace(old, new)
    path = directory / "fairlead-recipe.service"
    path.write_text(text)
    return path


def test_unit_of_systemd_is_one(tmp_path: Path) -> None:
    needs("gunicorn")
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine")
    command = ["systemd-analyze", "verify", "--man=no", str(unit(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "fairlead-recipe" not in done.stderr


def test_service_of_systemd_is_scheduled_and_takes_orders(tmp_path: Path) -> None:
    """Its command, in namespaces as those of PrivateTmp, PrivateIPC and ProtectSystem."""
    needs("gunicorn")
    if subprocess.run(["unshare", "--mount", "--ipc", "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not make namespaces")
    [command] = re.findall(r"^ExecStart=(.*)$", unit(tmp_path).read_text(), re.MULTILINE)
    steps = [
        f"mount --bind {CLONE} {CLONE}",  # stays writable: what is imported from there is built there
        "mount -o remount,bind,ro /",
        "mount -t tmpfs none /var/tmp",
        'exec "$@"',
    ]
    confined = f"unshare --mount --ipc sh -c '{' && '.join(steps)}' -"
    with served(f"{confined} {command}", tmp_path, TMPDIR="/var/tmp") as server:
        said = server.first()
        assert said.policy == "interactive"
        [asked] = commands("systemd")
        shown = re.sub(r"\$\(.*\)", str(said.pid), asked)
        done = subprocess.run(shown.split(), env=surroundings({}), capture_output=True, text=True, timeout=99)
        assert done.stdout.startswith(f"process {said.pid}: policy interactive"), done.stderr


def as_process_1(command: list[str]) -> str:
    """As a container starts it: the first process of its space of numbers."""
    if subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")
    words = ["127.0.0.1:{port}" if word == "0.0.0.0:8000" else word for word in command]
    return " ".join(["unshare --pid --fork --mount-proc --kill-child", *words])


def in_it(server: Server, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command as `docker exec` and `kubectl exec` run it."""
    pid = server.process.pid
    [first] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    enter = ["nsenter", "--target", first, "--pid", "--mount", *words]
    return subprocess.run(enter, env=surroundings({}), capture_output=True, text=True, timeout=100)


def built(steps: list[list[str]], directory: Path) -> Path:
    """What the RUN steps of a Dockerfile make, in a virtual environment and not in an image: its programs."""
    made = directory / "image"
    venv.create(made, with_pip=True)
    path = f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = surroundings({"PATH": path, "CFLAGS": "-O0"})  # compiles in half the time
    for verb, step in steps:
        if verb == "RUN":
            here = re.sub(r"\bfairlead\b", str(CLONE), step)  # which no registry has yet
            done = subprocess.run(here, shell=True, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return made / "bin"


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_docker_and_process_1_is_scheduled_and_takes_orders(tmp_path: Path) -> None:
    """No engine builds the image: its steps are taken here, one by one."""
    needs("gunicorn")
    [file] = blocks("Docker", "dockerfile")
    steps = [line.split(maxsplit=1) for line in file.splitlines()]
    assert [verb for verb, _ in steps] == ["FROM", "RUN", "COPY", "CMD"]
    assert steps[2][1] == "app.py ."  # which is there
    port = free_port()
    command = as_process_1(json.loads(steps[3][1])).format(port=port)
    path = f"{built(steps, tmp_path)}{os.pathsep}{os.environ['PATH']}"
    with started(command, tmp_path, port, PATH=path) as server:
        assert server.first().policy == "interactive"
        [asked] = commands("Docker")
        done = in_it(server, asked.removeprefix("docker exec web ").split())
        first, worker = sorted(done.stdout.splitlines(), key=lambda line: not line.startswith("process 1:"))
        assert re.match(f"process 1: (policy interactive|{NO_WAIT_YET})", first), done.stderr
        assert "policy interactive" in worker


def test_kubernetes_takes_the_file_and_its_command_is_switched_off_from_outside(tmp_path: Path) -> None:
    needs("gunicorn")
    [file] = blocks("Kubernetes", "yaml")
    (tmp_path / "web.yaml").write_text(file)
    [words] = re.findall(r"^ *command: (.*)$", file, re.MULTILINE)
    if shutil.which("kubectl"):
        local = ["kubectl", "set", "env", "--local", "-f", "web.yaml", "A=b", "-o", "json"]
        done = subprocess.run(local, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        [container] = json.loads(done.stdout)["spec"]["template"]["spec"]["containers"]
        assert container["command"] == json.loads(words)
    port = free_port()
    with started(as_process_1(json.loads(words)).format(port=port), tmp_path, port) as server:
        assert server.first().policy == "interactive"
        [order] = commands("Kubernetes")
        done = in_it(server, order.partition("kubectl exec {} -- ")[2].split())
        said = rf"process 1: (policy stock \(switched off|{NO_WAIT_YET}; .* obeys: off)"
        assert re.match(said, done.stdout), done.stderr
        worker = server.first()
        assert worker.policy == "stock"
        in_it(server, ["kill", "-KILL", str(worker.pid)])
        assert server.first(without={worker.pid}).policy == "stock"

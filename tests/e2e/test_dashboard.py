"""The Grafana dashboard and the alerts of docs/how-to/liveness.md, asked of a real Prometheus."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from commands import FAIRLEAD
from served import ask
from waiting import until

from fairlead.gil.observe.access import why_not

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(not shutil.which("prometheus"), reason="no prometheus: apt-get install prometheus"),
    pytest.mark.long,  # Prometheus begins to scrape five seconds after its start
]

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (DOCS / "liveness.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((DOCS / "files" / "grafana-gil.json").read_text(encoding="utf-8"))
TOKEN = "0123456789abcdef"
APP = """
import os, threading
from fairlead.gil.endpoint.server import current

def spin():
    while True:
        sum(range(200))

for _ in range(2):
    threading.Thread(target=spin, daemon=True).start()
print(current().port, flush=True)
os.read(0, 1)
"""
CONFIGURATION = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: fairlead
    authorization: {{credentials_file: {directory}/token}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@contextmanager
def served(directory: Path) -> Iterator[int]:
    """The port of a program that two threads compute in."""
    (directory / "app.py").write_text(APP)
    (directory / "token").write_text(TOKEN)
    options = ["--serve", "127.0.0.1:0", "--token-file", str(directory / "token")]
    command = [*FAIRLEAD, "run", *options, "--", sys.executable, str(directory / "app.py")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD")}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


class Prometheus:
    """A server that scrapes one program, asked by its HTTP API."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, **parameters: str) -> Any:
        status, body = ask(self.port, f"/api/v1/{path}?{urlencode(parameters)}")
        answer = json.loads(body)
        assert (status, answer["status"]) == (200, "success"), answer
        return answer["data"]

    def samples(self, expression: str) -> list[tuple[dict[str, str], float]]:
        result = self.ask("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def data(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The samples, once there are some and each is a number."""
        found: list[tuple[dict[str, str], float]] = []

        def there() -> bool:
            found[:] = self.samples(expression)
            return bool(found) and all(math.isfinite(value) for _, value in found)

        try:
            until(there)
        except AssertionError as error:
            error.add_note(f"{expression}: {found}")
            raise
        return found


@contextmanager
def prometheus(target: int, directory: Path) -> Iterator[Prometheus]:
    configuration, log = directory / "prometheus.yml", directory / "log"
    configuration.write_text(CONFIGURATION.format(directory=directory, port=target))
    command = [
        "prometheus",
        f"--config.file={configuration}",
        f"--storage.tsdb.path={directory / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:

        def port() -> str | None:
            """Once it is ready, and says so; which of the two it says first is not settled."""
            assert process.poll() is None, log.read_text()
            said = log.read_text()
            listens = re.search(r'msg="Listening on".* address=127\.0\.0\.1:(\d+)', said)
            return listens[1] if listens and "Server is ready to receive web requests" in said else None

        try:
            until(port)
            listening = port()
            assert listening is not None
            yield Prometheus(int(listening))
        finally:
            process.kill()


def substituted(text: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        text = re.sub(rf"\${name}\b", lambda _, value=value: value, text)
    assert "$" not in text
    return text


def values_of_variables(server: Prometheus) -> dict[str, str]:
    """The dashboard's, by the queries that it has for them, and Grafana's own for intervals."""
    found = {"__rate_interval": "1m", "__range": "3600s"}
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            parts = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert parts
            selector = substituted(parts[1], found)
            assert server.data(selector)
            [value] = server.ask(f"label/{parts[2]}/values", **{"match[]": selector})
            # as Grafana escapes it: for the regular expression, and for the string that that is in
            found[variable["name"]] = re.escape(value).replace("\\", "\\\\")
    return found


def test_each_panel_has_data_of_what_the_program_does_and_no_alert_fires(tmp_path: Path) -> None:
    with served(tmp_path) as port, prometheus(port, tmp_path) as server:
        variables = values_of_variables(server)
        shown = {}
        for panel in DASHBOARD["panels"]:
            for target in panel["targets"]:
                samples = server.data(substituted(target["expr"], variables))
                for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                    assert all(labels[label] for labels, _ in samples), target
                assert all(value >= 0 for _, value in samples), target
                shown[panel["title"], target["refId"]] = samples
        assert [value for _, value in shown["Healthy", "A"]] == [1]
        assert [labels["policy"] for labels, _ in shown["Policy", "A"]] == ["interactive"]
        assert "Thread-# (spin)" in {labels["class"] for labels, _ in shown["Held, by class of threads", "A"]}
        alerts = re.findall(r"`([^`]*fairlead_gil_\w+[^`]*[=>] 0)`", PAGE)
        assert len(alerts) == 2
        assert [server.samples(alert) for alert in alerts] == [[], []]

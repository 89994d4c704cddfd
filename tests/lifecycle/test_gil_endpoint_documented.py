"""Nothing leaves the process by the endpoint but what docs/reference/endpoint.md says."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from served import Program, metrics, program
from waiting import until

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

APP = """
import asyncio

def wait():
    while True:
        time.sleep(0.001)

async def main():
    with gil.watch_loop(interval=0.005, threshold=0.02) as lag:
        while not lag.callbacks:
            await asyncio.sleep(0.001)
            time.sleep(0.05)
        await asyncio.to_thread(hear)

local = "among-the-arguments"  # as the whole of this is
gil.schedule()
threading.Thread(target=wait, daemon=True).start()
asyncio.run(main())
keep()
"""
NOT_COUNTS = {
    "policy", "cpu_share", "waiting", "watchdog_tripped", "watchdog_trips", "switched_off", "canary",
    "scheduled_seconds",
}  # fmt: skip
"""What scheduler() has beside its counts."""


def sections(page: str) -> dict[str, str]:
    """By their headings."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / page).read_text(encoding="utf-8")
    found = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {heading.strip("`"): body for heading, body in found}


REFERENCE = sections("endpoint.md")
PAGES = {name: text for name, text in REFERENCE.items() if name.startswith("/")}
HEADERS = REFERENCE["What is bounded, and what leaves the process"]


def words(text: str) -> set[str]:
    """Those that stand as code."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[A-Za-z_-]+", code)}


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def get(asked: Program, path: str) -> tuple[int, set[str], str]:
    """The status, the names of the headers and the body, once it is not one request too many."""
    while True:
        connection = HTTPConnection("127.0.0.1", asked.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {asked.token}"})
        with connection.getresponse() as answer:
            headers, body = {name for name, _ in answer.getheaders()}, answer.read().decode()
        connection.close()
        if answer.status != 429:
            return answer.status, headers, body


def documented_metrics() -> set[str]:
    """endpoint.md names one of the scheduler's counts; the others are in the reference of scheduling."""
    names = set(re.findall(r"`(fairlead_(?:gil|loop)_\w+)`", PAGES["/metrics"]))
    rows = re.findall(r"^\| (`.*?) \|", sections("gil-schedule.md")["fairlead.gil.scheduler()"], re.MULTILINE)
    return names | {f"fairlead_gil_scheduler_{name}_total" for name in words(" ".join(rows)) - NOT_COUNTS}


def test_every_path_header_metric_label_and_key_is_documented_and_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "in-the-environment")
    with program(APP) as asked:

        def served() -> set[str]:
            names = {name for name, _ in metrics(asked.port, asked.token)}
            return {re.sub("_seconds_(bucket|count|sum)$", "_seconds", name) for name in names}

        until(lambda: "fairlead_loop_callback_late_seconds_total" in served())
        assert served() == documented_metrics()
        labels = {name for _, pairs in metrics(asked.port, asked.token) for name, _ in pairs}
        assert labels - {"le"} <= words(PAGES["/metrics"])
        asked.say()
        asked.becomes("stalled")

        def blames() -> bool:
            [gil] = asked.json("/holder")["gils"]
            return bool(gil["longest_waiter"] and gil["holder"] and gil["holder"]["stack"])

        until(blames)
        for path, text in PAGES.items():
            _, headers, body = get(asked, path)
            assert headers <= words(HEADERS), path
            assert not re.findall("in-the-environment|among-the-arguments", body), path
            if path != "/metrics":
                assert keys(json.loads(body)) <= words(text), path
        listed = "".join(f"{path}\n" for path in PAGES)
        assert get(asked, "/")[::2] == (200, listed)
        assert get(asked, "/in-the-request?in-the-query")[::2] == (404, listed)
        asked.say()

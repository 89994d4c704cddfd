"""The site that ``make site`` builds, in a real browser: search, dark, as wide as a telephone, and silent on
the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from chromium import NEEDED, chromium, prefer, resize

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install --group site")
pytest.importorskip("selenium", reason="selenium is not installed: pip install --group browser")
pytestmark = [pytest.mark.nightly, *NEEDED, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html",
    "tutorial/first-run.html",
    "how-to/mend-latency-spikes.html",
    "explanation/gil-scheduler.html",
    "explanation/measured.html",
    "reference/cli.html",
    "reference/other-programs.html",
    "reference/experiments/models.html",
    "reference/api/fairlead.sync.html",
    "project/architecture.html",
    "project/changelog.html",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return place


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def test_no_page_is_wider_than_a_telephone_and_none_asks_another_host(browser: Any, address: str) -> None:
    resize(browser, 390)
    for page in PAGES:
        browser.get(address + page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390, page
        shown = browser.execute_script("return [...document.images].map(image => image.naturalWidth > 0)")
        assert all(shown), page
        fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert fetched
        assert [url for url in fetched if not url.startswith((address, "data:", "blob:"))] == [], page
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_bars_of_the_first_page_are_as_long_as_their_figures(browser: Any, address: str) -> None:
    resize(browser, 390)
    browser.get(address)
    pictures = browser.execute_script(
        "return [...document.querySelectorAll('.claim')].map(picture => [...picture.querySelectorAll('.bar')]"
        ".map(bar => [Number(bar.dataset.figure), bar.getBoundingClientRect().width]))"
    )
    assert pictures
    for bars in pictures:
        scale = max(width for _, width in bars) / max(figure for figure, _ in bars)
        assert [width for _, width in bars] == pytest.approx([f * scale for f, _ in bars], abs=2)


def test_a_page_is_dark_when_the_system_is(browser: Any, address: str) -> None:
    brightness = {}
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        browser.get(address)
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert brightness["dark"] < 200 < 600 < brightness["light"]


def test_search_finds_a_public_name(browser: Any, address: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    resize(browser, 1280)
    browser.get(address)
    browser.execute_script("document.getElementById('__search').click()")
    field = browser.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]")
    wait = WebDriverWait(browser, 60)
    wait.until(lambda _: field.is_displayed())
    field.send_keys("StampedLock")
    wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link[href*='extra']"))


def test_the_text_for_language_models_names_every_page(site: Path) -> None:
    listed = set(re.findall(r"\]\(([\w./-]+\.html)\)", (site / "llms.txt").read_text(encoding="utf-8")))
    built = {str(page.relative_to(site)) for page in site.rglob("*.html")} - {"404.html"}
    assert listed == built

"""The page of a recording in a real browser: drawn, zoomed, readable on a telephone, and silent on the
network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import NEEDED, chromium, prefer, resize
from gilprograms import example
from gilsim import MS, Simulation

from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.analysis.timeline import TimelineCollector
from fairlead.record.recording import Recording
from fairlead.report.gil import html as gil_html

pytest.importorskip("jinja2")
pytest.importorskip("selenium", reason="selenium is not installed: pip install --group browser")
pytestmark = [pytest.mark.once, *NEEDED]

Open = Callable[..., Any]
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
COLOURED = """
const canvas = document.getElementById("canvas"), pixels = {};
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) {
  const key = [data[i], data[i + 1], data[i + 2]].join(); pixels[key] = (pixels[key] || 0) + 1;
}
return pixels;
"""
HOLD, WAIT = "11,111,179", "209,73,91"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Open:
    def open_page(simulation: Simulation, *, width: int = 1280, scheme: str = "light") -> Any:
        collector = TimelineCollector()
        summary = analyse(Recording(simulation.writer().save(tmp_path / "x.flrec")), watch=collector.watch)
        page = tmp_path / "x.html"
        page.write_text(gil_html.render(summary, collector.timeline(round(summary.wall_seconds * 1e9))))
        resize(browser, width)
        prefer(browser, scheme)
        browser.get_log("browser")
        browser.get(page.as_uri())
        return browser

    return open_page


def convoy() -> Simulation:
    return Simulation(example("convoy"), until_ns=300 * MS)


def click(browser: Any, what: str) -> None:
    browser.execute_script(f"document.querySelector('[data-zoom={what}]').click()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_is_drawn_without_a_word_on_the_console_and_fits(opened: Open, width: int, scheme: str) -> None:
    browser = opened(convoy(), width=width, scheme=scheme)
    assert browser.execute_script("return document.documentElement.dataset.drawn") == "yes"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


BROKEN_WORDS = """
const broken = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode, range = document.createRange();
  for (const word of text.data.matchAll(/[A-Za-z]+/g)) {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""


def test_on_a_telephone_no_word_is_broken_and_the_answer_is_first(opened: Open) -> None:
    browser = opened(convoy(), width=390)
    assert browser.execute_script(BROKEN_WORDS) == []
    tops = "return [...document.querySelectorAll(arguments[0])].map((at) => at.getBoundingClientRect().top)"
    places = [browser.execute_script(tops, what)[0] for what in ("h1", ".answer", "#timeline", "#findings")]
    assert places == sorted(places)


def test_timeline_close_up_shows_holds_and_waits_in_proportion(opened: Open) -> None:
    browser = opened(convoy())
    for _ in range(3):
        click(browser, "in")
    pixels = browser.execute_script(COLOURED)
    # the computing thread holds and the other one waits nearly all the time
    assert 0.8 < pixels[HOLD] / pixels[WAIT] < 1.25
    assert pixels[HOLD] > 3000


def test_zoom_buttons_change_what_is_seen_and_all_brings_it_back(opened: Open) -> None:
    browser = opened(convoy())

    def seen() -> str:
        return str(browser.execute_script("return document.getElementById('range').textContent"))

    assert seen() == "0 ns to 300 ms (300 ms)"
    click(browser, "in")
    assert seen() == "90 ms to 210 ms (120 ms)"
    click(browser, "right")
    assert seen() == "138 ms to 258 ms (120 ms)"
    click(browser, "all")
    assert seen() == "0 ns to 300 ms (300 ms)"


def test_pointer_over_a_wait_shows_the_holder_of_the_gil(opened: Open) -> None:
    browser = opened(convoy())
    for _ in range(4):
        click(browser, "in")
    lines = browser.execute_script("""
      const canvas = document.getElementById("canvas"), seen = new Set();
      const box = canvas.getBoundingClientRect();
      for (let x = 200; x < box.width; x += 7) for (const y of [30, 54]) {
        const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
        canvas.dispatchEvent(new PointerEvent("pointermove", at));
        seen.add(document.getElementById("tip").textContent.replace(/[0-9.]+ (ms|us|s)/g, "T"));
      }
      return [...seen];
    """)
    assert "T: io waits, T in all; cpu holds the GIL" in lines
    assert "T: cpu holds the GIL for T" in lines


def test_names_from_the_program_are_text(opened: Open) -> None:
    simulation = convoy()
    for thread in simulation.threads:
        thread.name = HOSTILE
    browser = opened(simulation)
    assert browser.execute_script("return document.title") == "GIL of app.py --fast"
    assert browser.execute_script("return document.images.length") == 0
    assert browser.get_log("browser") == []

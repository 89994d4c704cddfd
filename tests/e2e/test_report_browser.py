"""The page in a real browser: drawn, switched, readable on a telephone, and silent on the network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import summaries
from chromium import NEEDED, chromium, prefer, resize

from fairlead.record.summary import Summary
from fairlead.report import html

pytest.importorskip("jinja2")
pytest.importorskip("plotly")
webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install --group browser"
)
pytestmark = [*NEEDED, pytest.mark.long]

waiting = pytest.importorskip("selenium.webdriver.support.wait")

Open = Callable[..., Any]

DRAWN = "!document.getElementById('fairlead-library') || document.documentElement.classList.contains('done')"
"""The library that draws is unpacked while the page is shown already."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Open:
    """Opens a summary's page at a width and in a colour scheme; what the console said before is gone."""

    def open_page(summary: Summary, *, width: int = 1280, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        path.write_text(html.render(summary), encoding="utf-8")
        resize(browser, width)
        prefer(browser, scheme)
        browser.get_log("browser")
        browser.get(path.as_uri())
        waiting.WebDriverWait(browser, 30).until(lambda b: run(b, DRAWN))
        return browser

    return open_page


def run(browser: Any, script: str, *args: Any) -> Any:
    return browser.execute_script(f"return {script}", *args)


def assert_sound(browser: Any) -> None:
    """Nothing in the console, nothing asked of the network, nothing wider than the window."""
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
    assert run(browser, "performance.getEntriesByType('resource').map(e => e.name)") == []
    assert run(browser, "document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def axis_types(browser: Any, plot: str) -> list[str]:
    return run(browser, f"['xaxis', 'yaxis'].map(a => document.getElementById('{plot}')._fullLayout[a].type)")


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark"), (1280, "light")])
def test_every_plot_is_drawn_at_any_width(opened: Open, width: int, scheme: str) -> None:
    summary = summaries.realistic(1)
    browser = opened(summary, width=width, scheme=scheme)
    wanted = len({(s.experiment, s.label) for s in summary.series})
    plots = run(
        browser,
        "Array.from(document.querySelectorAll('.plot'), p => p.querySelectorAll('.trace.scatter').length)",
    )
    assert len(plots) == wanted
    # of each of the five interpreters at least the single runs and the medians
    assert min(plots) >= 2 * (len(summaries.PYTHONS) - 1)
    sizes = run(
        browser,
        "Array.from(document.querySelectorAll('.plot .main-svg'), s => [s.clientWidth, s.clientHeight,"
        " s.closest('.plot').clientWidth, s.closest('.plot').clientHeight])",
    )
    assert sizes
    assert all(w == box_w and h == box_h and w <= width for w, h, box_w, box_h in sizes)
    assert_sound(browser)


def test_colours_follow_the_scheme(opened: Open) -> None:
    script = "getComputedStyle(document.querySelector('#plot-1-1 .trace.scatter:last-child .point')).fill"
    summary = summaries.realistic(1, summaries.PYTHONS[:1])
    light = run(opened(summary, scheme="light"), script)
    browser = opened(summary, scheme="dark")
    dark = run(browser, script)
    assert light != dark
    prefer(browser, "light")
    assert waiting.WebDriverWait(browser, 20).until(lambda b: run(b, script) == light)


def test_printed_page_fits_paper_and_the_window_gets_its_width_back(opened: Open) -> None:
    browser = opened(summaries.realistic(1))
    width = "document.querySelector('#plot-1-1 .main-svg').clientWidth"
    before = run(browser, width)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert waiting.WebDriverWait(browser, 20).until(lambda b: run(b, width) == 640)
    assert run(browser, "getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert waiting.WebDriverWait(browser, 20).until(lambda b: run(b, width) == before)
    assert_sound(browser)


def test_scale_can_be_switched_for_one_plot_alone(opened: Open) -> None:
    browser = opened(summaries.realistic(1))
    assert axis_types(browser, "plot-1-1") == ["log", "log"]
    browser.find_element("css selector", "[data-plot='plot-1-1'] input[value=linear]").click()
    assert axis_types(browser, "plot-1-1") == ["linear", "linear"]
    assert axis_types(browser, "plot-2-1") == ["log", "log"]
    browser.find_element("css selector", "[data-plot='plot-1-1'] input[value=log]").click()
    assert axis_types(browser, "plot-1-1") == ["log", "log"]
    assert_sound(browser)


def test_a_curve_can_be_hidden_and_shown_again(opened: Open) -> None:
    browser = opened(summaries.realistic(1))
    count = "document.querySelectorAll('#plot-1-1 .trace.scatter').length"
    before = run(browser, count)
    button = browser.find_element("css selector", "button.show[data-plot='plot-1-1']")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert run(browser, count) < before
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert run(browser, count) == before
    assert_sound(browser)


def test_hovering_a_median_tells_size_time_and_interval(opened: Open) -> None:
    browser = opened(summaries.realistic(1, summaries.PYTHONS[:1]))
    point = browser.find_elements("css selector", "#plot-1-1 .trace.scatter .point")[-1]
    webdriver.ActionChains(browser).move_to_element(point).perform()
    label = waiting.WebDriverWait(browser, 20).until(
        lambda b: run(b, "(document.querySelector('#plot-1-1 .hoverlayer') || {}).textContent")
    )
    assert "n = 400: " in label
    assert "ms [" in label
    assert "CPython 3.13.0" in label


def test_hostile_names_do_not_run(opened: Open) -> None:
    hostile = ("<img src=x onerror='window.owned=1'>", "</script><script>window.owned=1</script>")
    rng = random.Random(1)
    curves = [
        replace(
            summaries.series(rng, bad, summaries.interpreter(bad, bad, bad, path=bad * 200)),
            label=f"{bad}<a href='javascript:window.owned=1'>x</a>",
        )
        for bad in hostile
    ]
    browser = opened(summaries.summary(*curves, environment={bad: bad for bad in hostile}), width=360)
    assert run(browser, "document.querySelectorAll('.plot .main-svg').length > 0")
    assert run(browser, "typeof window.owned") == "undefined"
    assert run(browser, "document.querySelectorAll('img, a[href^=javascript]').length") == 0
    assert hostile[0] in run(browser, "document.body.innerText")
    assert_sound(browser)


@pytest.mark.parametrize(
    "curves", [(), (summaries.skipped("square.mutex", reason="no fork here"),)], ids=["empty", "skipped"]
)
def test_page_without_plots_is_sound(opened: Open, curves: tuple[Any, ...]) -> None:
    browser = opened(summaries.summary(*curves), width=360)
    assert run(browser, "document.querySelectorAll('.plot').length") == 0
    assert run(browser, "document.querySelector('h1').innerText.length > 20")
    assert_sound(browser)

"""The page in a real browser: drawn at any width, in the dark, by keyboard, and silent on the network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import summaries
from advices import advice
from chromium import NEEDED, chromium, prefer, resize

from fairlead.record.summary import Summary
from fairlead.report.advice import html as advice_html
from fairlead.report.summary import html

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install --group browser"
)
pytestmark = [pytest.mark.once, *NEEDED, pytest.mark.long]

waiting = pytest.importorskip("selenium.webdriver.support.wait")

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Open:
    """Opens a page, or that of a summary, at a width and in a colour scheme; what the console said before is
    gone."""

    def open_page(shown: Summary | str, *, width: int = 1280, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        path.write_text(shown if isinstance(shown, str) else html.render(shown), encoding="utf-8")
        resize(browser, width)
        prefer(browser, scheme)
        browser.get_log("browser")
        browser.get(path.as_uri())
        return browser

    return open_page


def run(browser: Any, script: str, *args: Any) -> Any:
    return browser.execute_script(f"return {script}", *args)


def assert_sound(browser: Any) -> None:
    """Nothing in the console, nothing asked of the network, nothing wider than the window."""
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
    assert run(browser, "performance.getEntriesByType('resource').map(e => e.name)") == []
    assert run(browser, "document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def widths(browser: Any, selector: str) -> list[tuple[float, float]]:
    """Of each picture, and of its place."""
    sizes = "s => [s.getBoundingClientRect().width, s.parentElement.clientWidth]"
    return run(browser, f"Array.from(document.querySelectorAll('{selector}'), {sizes})")


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (420, "dark"), (768, "dark"), (1280, "light")])
def test_every_picture_is_as_wide_as_its_place_at_any_width(opened: Open, width: int, scheme: str) -> None:
    summary = summaries.realistic(1)
    browser = opened(summary, width=width, scheme=scheme)
    sizes = widths(browser, ".panels svg.curve, #answers svg")
    assert len(sizes) == len({(s.experiment, s.label) for s in summary.series}) + 5
    assert all(200 < own <= box + 1 <= width + 1 for own, box in sizes), sizes
    medians = run(browser, "document.querySelectorAll('.panels .curve .median').length")
    assert medians == sum(len(s.cells) for s in summary.series)
    assert_sound(browser)


def test_page_of_an_advice_fits_and_follows_the_scheme(opened: Open) -> None:
    grounds = []
    for width, scheme in (360, "light"), (1200, "dark"):
        browser = opened(advice_html.render(advice()), width=width, scheme=scheme)
        grounds.append(run(browser, "getComputedStyle(document.body).backgroundColor"))
        circles = run(browser, "document.querySelectorAll('.curve circle').length")
        assert circles == len(advice().curves[0].points)
        assert_sound(browser)
    assert grounds[0] != grounds[1]


def test_colours_follow_the_scheme(opened: Open) -> None:
    script = "getComputedStyle(document.querySelector('.panels .curve .median')).fill"
    summary = summaries.realistic(1, summaries.PYTHONS[:1])
    light = run(opened(summary, scheme="light"), script)
    browser = opened(summary, scheme="dark")
    dark = run(browser, script)
    assert light != dark
    prefer(browser, "light")
    assert waiting.WebDriverWait(browser, 20).until(lambda b: run(b, script) == light)


def test_printed_page_has_its_pictures_and_no_navigation(opened: Open) -> None:
    browser = opened(summaries.realistic(1))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert run(browser, "getComputedStyle(document.querySelector('nav')).display") == "none"
    assert run(browser, "document.querySelector('.curve').getBoundingClientRect().height > 100")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert_sound(browser)


def test_everything_that_is_hidden_or_scrolls_is_reached_by_the_keyboard(opened: Open) -> None:
    browser = opened(summaries.realistic(1), width=420)
    assert run(browser, "Array.from(document.querySelectorAll('.scroll')).every(e => e.tabIndex === 0)")
    browser.execute_script("document.querySelector('summary').focus()")
    before = run(browser, "document.querySelector('details').open")
    browser.switch_to.active_element.send_keys(" ")
    assert run(browser, "document.querySelector('details').open") != before
    assert_sound(browser)


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
    assert run(browser, "document.querySelectorAll('svg.curve').length > 0")
    assert run(browser, "typeof window.owned") == "undefined"
    assert run(browser, "document.querySelectorAll('img, a[href^=javascript]').length") == 0
    assert hostile[0] in run(browser, "document.body.innerText")
    assert_sound(browser)


@pytest.mark.parametrize(
    "curves", [(), (summaries.skipped("square.mutex", reason="no fork here"),)], ids=["empty", "skipped"]
)
def test_page_without_plots_is_sound(opened: Open, curves: tuple[Any, ...]) -> None:
    browser = opened(summaries.summary(*curves), width=360)
    assert run(browser, "document.querySelectorAll('svg.curve').length") == 0
    assert run(browser, "document.querySelector('h1').innerText.length > 20")
    assert_sound(browser)

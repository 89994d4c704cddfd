"""The page of an advice in a browser: it fits a telephone, follows the scheme, and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from advices import advice
from chromium import NEEDED, chromium, prefer, resize

from fairlead.report.advice import html as advice_html

pytestmark = [pytest.mark.once, *NEEDED, pytest.mark.long]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("selenium")
    page = tmp_path / "advice.html"
    page.write_text(advice_html.render(advice()), encoding="utf-8")
    with chromium(tmp_path / "profile") as driver:
        driver.get(page.as_uri())
        yield driver


def test_page_fits_follows_the_scheme_and_complains_of_nothing(browser: Any) -> None:
    for width in (360, 1200):
        resize(browser, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    grounds = []
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        grounds.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]
    circles = browser.execute_script("return document.querySelectorAll('.curve circle').length")
    assert circles == len(advice().curves[0].points)
    assert browser.get_log("browser") == []

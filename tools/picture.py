"""Take a picture of a part of the lab's report, as docs and README show it.

    tools/picture.py REPORT.html WHAT OUT.png [dark] [WIDTH]

WHAT is the id of an experiment (its first plot), that of a work (its bars), or "answers". WIDTH is that of
the window, 960 unless it is given. Needs chromium and chromedriver on PATH, and the dependency group
"browser".
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.chromium import chromium, prefer, resize

WIDTH = 960


def main(page: str, what: str, out: str, scheme: str = "light", width: int = WIDTH) -> None:
    section = f"//section[contains(@class, 'experiment')][.//h3/code[text()='{what}']]"
    path = (
        "//*[@id='answers']"
        if what == "answers"
        else f"{section}//*[contains(@class, 'curve') or contains(@class, 'pictures')]"
    )
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        prefer(browser, scheme)
        resize(browser, width)
        browser.get(Path(page).resolve().as_uri())
        browser.implicitly_wait(20)
        part = browser.find_element("xpath", path)
        # a window as high as the page, so that all of the part is on it
        resize(browser, width, browser.execute_script("return document.documentElement.scrollHeight"))
        Path(out).write_bytes(part.screenshot_as_png)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    given = sys.argv[1:4]
    schemes = [word for word in sys.argv[4:] if word == "dark"]
    widths = [int(word) for word in sys.argv[4:] if word.isdigit()]
    main(*given, *schemes or ["light"], *widths)

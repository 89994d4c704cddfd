"""Take a picture of one experiment's plot in a report of the lab, as docs and README show it.

    tools/picture.py REPORT.html EXPERIMENT OUT.png

Needs chromium and chromedriver on PATH, and the dependency group "browser".
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.chromium import chromium, prefer, resize


def main(page: str, experiment: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        prefer(browser, "light")
        resize(browser, 960)
        browser.get(Path(page).resolve().as_uri())
        browser.implicitly_wait(20)
        section = f"//section[.//code[text()='{experiment}']]"
        plot = browser.find_element("xpath", f"{section}//*[contains(@class, 'js-plotly-plot')]")
        browser.execute_script("arguments[0].scrollIntoView()", plot)
        Path(out).write_bytes(plot.screenshot_as_png)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

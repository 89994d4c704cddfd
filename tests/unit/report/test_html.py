"""The page: complete, inert, and loading nothing."""

from __future__ import annotations

import random
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import summaries

from fairlead.errors import MissingExtraError
from fairlead.record.summary import Published, Side, Summary
from fairlead.report.common import names, plot, words
from fairlead.report.common.assets import asset
from fairlead.report.summary import claims, html
from fairlead.report.summary.pictures import curves

pytestmark = pytest.mark.ends


VOID = {"meta", "link", "input", "br"}
HOSTILE = (
    "<script>window.owned=1</script>",
    "</script><img src=x onerror=window.owned=1>",
    "\"'><svg onload=window.owned=1>",
    "{{ 7 * 7 }}${7*7}%{x}",
    "\u202eevil\u2066\x1b[31m",
    "/very/long" * 600,
)


def test_figures_of_an_experiment_have_columns_of_their_own() -> None:
    page = Page(html.render(summaries.with_metrics()))
    heads = [text for tag, text in page.texts if tag == "th"]
    assert [name for name in heads if name in {"request", "rate", "p99", "memory", "time"}] == [
        "request", "rate", "p99", "memory", "memory",
    ]  # fmt: skip
    figures = [text for tag, text in page.texts if tag == "td"]
    for figure in ("2,500/s", "5.10 ms", "900 KiB", "98 %", "x1.80"):
        assert figures.count(figure) == 3, "once for each size"
    page = Page(html.render(summaries.with_metrics(metrics={})))
    assert "rate" not in [text for tag, text in page.texts if tag == "th"], "nothing stands in its column"


class Page(HTMLParser):
    """A page taken apart: elements in order, text by element, and whether all that opens is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [data for name, data in self.texts if name == tag]

    @property
    def visible(self) -> str:
        return " ".join(" ".join(d for name, d in self.texts if name not in {"script", "style"}).split())

    def of_class(self, name: str) -> list[tuple[str, dict[str, str | None]]]:
        return [(tag, a) for tag, a in self.elements if name in (a.get("class") or "").split()]


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summaries.realistic(1)


@pytest.fixture(scope="module")
def source(summary: Summary) -> str:
    return html.render(summary)


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_page_loads_nothing_runs_nothing_and_is_small(page: Page, source: str) -> None:
    loading = ("src", "srcset", "data", "action", "formaction", "poster", "background", "ping", "xlink:href")
    for tag, attrs in page.elements:
        assert not set(loading) & set(attrs), (tag, attrs)
        assert (attrs.get("href") or "#").startswith(("#", "data:,")), (tag, attrs)
    style = "".join(page.text_of("style")) + "".join(a.get("style") or "" for _, a in page.elements)
    assert not re.search(r"url\(|@import", style)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy
    assert page.all("script") == []
    assert len(source.encode()) < 500_000


def test_every_measured_series_has_a_curve_and_a_row(summary: Summary, page: Page) -> None:
    roster = names.Roster(summary.series)
    titles = [text for tag, text in page.texts if tag == "title"]
    for series in summary.series:
        if series.cells:
            assert words.bounds(series.fit.low, series.fit.high) in page.visible
        for cell in series.cells:
            told = f"{roster.of(series).label}, n = {cell.n}: {words.cell(cell)} ({len(cell.values)} runs)"
            assert told in titles, "the mark of each median says what it is"
    curves = page.of_class("curve")
    assert all(tag == "svg" and a["role"] == "img" and a["aria-label"] for tag, a in curves)


def test_claims_stand_at_the_head_and_each_with_what_would_falsify_it(page: Page, summary: Summary) -> None:
    begin = next(i for i, (_, a) in enumerate(page.elements) if a.get("id") == "answers")
    end = next(i for i, (tag, _) in enumerate(page.elements) if i > begin and tag == "nav")
    head = page.elements[begin:end]
    assert [tag for tag, _ in head].count("article") == 5
    assert sum(tag == "svg" and a.get("role") == "img" for tag, a in head) == 5
    rows = page.visible
    for claim in summary.claims:
        assert claims.interval(claim) in rows
        assert claim.falsified.replace("n^1.5", "n 1.5") in rows
        assert claim.verdict in rows


def test_conditions_subjects_losses_and_environment_are_shown(summary: Summary, page: Page) -> None:
    assert claims.machine(summary) in page.visible
    assert claims.conditions(summary) in page.visible
    assert not page.of_class("busy")
    for count, told in ((1, "beside 1 busy process;"), (2, "beside 2 busy processes;")):
        beside = replace(summary, environment={**summary.environment, "beside": count})
        assert told in Page(html.render(beside)).visible
    busy = replace(summary, conditions=replace(summary.conditions, highest_load=0.5))
    assert Page(html.render(busy)).of_class("busy")
    for subject in summary.subjects:
        assert subject.question in page.visible
        assert subject.explanation in page.visible
    assert sum(a.get("class", "").startswith("schedule") for a in page.all("svg")) == len(summary.subjects)  # type: ignore[union-attr]
    assert (
        "1 + 1 + 2 + 2 + 3 + 3 + 4 + 4 + 5 + 5 + 6 + 6 + 1 = 43 = 2 (1 + 2 + 3 + 4 + 5 + 6) + 1"
        in page.visible
    )
    assert "needs fork, and this build was made without it" in page.visible
    assert summary.problems[0] in page.visible
    for verdict, (meaning, what) in words.VERDICTS.items():
        assert verdict in page.visible
        assert meaning in page.visible
        assert what in page.visible
    assert "Linux 6.1.0" in page.visible
    assert all(p["path"] in page.visible for p in summaries.PYTHONS)


def test_panel_comes_with_fit_reference_and_view(summary: Summary) -> None:
    roster = names.Roster(summary.series)
    mutex = [one for one in summary.series if one.experiment == "square.mutex"]
    panel = curves.panel(summary.subjects[0], mutex, roster)
    assert panel is not None
    assert [r["name"] for r in panel["references"]] == ["CPython, 2 cores", "PyPy, 2 cores"]
    view = panel["view"]
    assert len(view["ticks"]) == len(view["labels"]) >= 2
    assert view["x"][0] < view["x"][1]
    assert view["y"][0] < view["y"][1]
    for curve in panel["curves"]:
        assert len(curve["median"]["x"]) == len(curve["median"]["text"])
        assert all(t > 0 for t in curve["fit"]["y"])
    assert len({c["index"] for c in panel["curves"]}) == len(summaries.PYTHONS), "a colour each"
    line = panel["references"][0]["line"]
    drawn = dict(zip(line["x"], line["y"], strict=True))
    first, last = summary.subjects[0].references[0].points
    assert drawn[first[0]] == first[1]
    assert next(t for n, t in drawn.items() if n == pytest.approx(last[0])) == pytest.approx(last[1])


def test_both_modes_of_a_bimodal_size_are_marked(summary: Summary, page: Page) -> None:
    bimodal = [cell for one in summary.series for cell in one.cells if len(cell.modes) > 1]
    assert len(bimodal) == 1
    assert len(page.of_class("mode")) == 2


def test_medians_lie_where_the_axes_say() -> None:
    """A square is a straight line: equal steps in log n are equal steps on the picture."""
    curve = summaries.series(random.Random(1), sizes=(10, 100, 1000))
    cells = [
        replace(c, median=1e-6 * c.n**2, low=None, high=None, values=(1e-6 * c.n**2,)) for c in curve.cells
    ]
    whole = replace(curve, cells=tuple(cells))
    panel = curves.panel(summaries.SUBJECTS[0], [whole], names.Roster([whole]))
    assert panel is not None
    drawn = plot.svg(panel, "label")
    at = [
        tuple(map(float, m))
        for m in re.findall(r'class="median" transform="translate\(([\d.]+) ([\d.]+)\)', drawn)
    ]
    (x0, y0), (x1, y1), (x2, y2) = at
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert x0 < x1 < x2
    assert y0 > y1 > y2


def test_headings_tables_and_links_are_whole(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(a.get("scope") for a in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(a.get("aria-label") for _, a in page.elements if a.get("role") in {"img", "region"})
    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {a["href"] for a in page.all("a")} <= {f"#{i}" for i in ids}


def hostile_summary() -> Summary:
    rng = random.Random(1)
    curves = []
    for bad in HOSTILE:
        python = summaries.interpreter(bad, bad, bad, path=bad, build={bad: bad})
        curve = summaries.series(rng, bad, python, label=bad, failures=(bad,))
        curves.append(replace(curve, variant={bad: bad}))
    claims = tuple(
        summaries.ratio_claim(
            one, topic=one.experiment, text=one.experiment,
            published=(Published(label=one.experiment, value=2.0),),
            sides=(Side(what=one.experiment, n=1, median=1.0),),
        )
        for one in curves
    )  # fmt: skip
    subjects = tuple(
        replace(s, title=bad, question=bad, explanation=bad, size_name=bad)
        for s, bad in zip(summaries.SUBJECTS, HOSTILE, strict=False)
    )
    return summaries.summary(
        *curves, summaries.skipped("square.mutex", reason=HOSTILE[0]), subjects=subjects, claims=claims,
        environment={bad: {bad: [bad]} for bad in HOSTILE}, problems=HOSTILE, started=HOSTILE[0],
        finished=HOSTILE[1],
    )  # fmt: skip


def test_hostile_names_are_text_and_nothing_else() -> None:
    page = Page(html.render(hostile_summary()))
    assert page.all("script") == page.all("img") == []
    for tag, attrs in page.elements:
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
    assert HOSTILE[0] in page.visible
    assert HOSTILE[3] in page.visible
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page.visible)
    assert any(HOSTILE[0] in text for tag, text in page.texts if tag == "title")


def test_odd_summaries_are_pages_that_say_so() -> None:
    page = Page(html.render(summaries.summary(environment={})))
    assert page.all("script") == []
    assert "holds no sample" in page.visible
    assert "Nothing is recorded about the machine." in page.visible
    curves = [summaries.skipped("square.mutex", p, f"reason {i}") for i, p in enumerate(summaries.PYTHONS)]
    page = Page(html.render(summaries.summary(*curves)))
    assert page.all("script") == []
    assert "Nothing could be measured" in page.visible
    assert all(f"reason {i}" in page.visible for i in range(len(curves)))
    curve = summaries.series(random.Random(1), sizes=(1,))
    zero = replace(curve.cells[0], values=(0.0, 0.0), median=0.0, low=0.0, high=0.0, factor=None)
    page = Page(html.render(summaries.summary(replace(curve, cells=(zero,)))))
    assert len(page.of_class("curve")) == 1
    page = Page(html.render(summaries.summary(summaries.series(random.Random(1)), environments=2)))
    assert "2 different environments" in page.visible


def test_without_jinja_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2.*fairlead\[lab\]"):
        html.render(summaries.summary())


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes() -> list[dict[str, str]]:
    style = asset("page.css")
    blocks = re.findall(r":root \{([^}]*)\}", style)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks[:2]]


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_colours_stand_out_from_the_background(theme: dict[str, str]) -> None:
    text = ("ink", "soft", "link", "new", "settled", "open", "contradicts", "undecided")
    assert {name: contrast(theme[name], theme["ground"]) >= 4.5 for name in text} == dict.fromkeys(text, True)
    marks = (*(f"c{i}" for i in range(8)), "reference")
    assert {name: contrast(theme[name], theme["ground"]) >= 3 for name in marks} == dict.fromkeys(marks, True)
    assert contrast(theme["on-new"], theme["new"]) >= 4.5
    assert contrast(theme["ink"], theme["turn"]) >= 4.5


def test_no_line_ends_within_an_option_or_a_date(source: str) -> None:
    whole = re.findall(r'<span class="whole">([^<]+)</span>', source)
    text = re.sub(
        r"<(style|meta)[^>]*>.*?</style>|<[^>]+>", "", source.partition("<body>")[2], flags=re.DOTALL
    )
    assert whole.count("--budget") == text.count("--budget") > 0
    assert "2026-03-02" in whole


def test_every_line_of_a_curve_is_in_its_legend(summary: Summary) -> None:
    roster = names.Roster(summary.series)
    mutex = [one for one in summary.series if one.experiment == "square.mutex"]
    panel = curves.panel(summary.subjects[0], mutex, roster)
    assert panel is not None
    drawn = plot.svg(panel, "label")
    said = re.findall(r'<g class="legend".*?<line class="([^"]+)".*?<text x="34">([^<]+)</text></g>', drawn)
    assert said == [
        *(("fit", f"{roster.of(one).label}: ours, line: {one.fit.model}") for one in mutex),
        ("reference r0", "published: CPython, 2 cores"),
        ("reference r1", "published: PyPy, 2 cores"),
    ]
    for kind, _ in said:
        assert f'<polyline class="{kind}"' in drawn

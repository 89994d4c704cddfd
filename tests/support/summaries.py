"""Summaries as the lab makes them, from a seed: for tests of whatever shows one."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlead.record import summary as record
from fairlead.record.summary import (
    Cell,
    Claim,
    Fit,
    Metric,
    Published,
    Reference,
    Series,
    Side,
    Subject,
    Summary,
)

SIZES = (50, 100, 200, 400)


def interpreter(
    name: str = "3.13", version: str = "3.13.0", implementation: str = "CPython", **more: Any
) -> dict[str, Any]:
    """An interpreter's record as the lab writes it."""
    return {
        "name": name,
        "path": f"/opt/pythons/{name}/bin/python",
        "executable": f"/opt/pythons/{name}/bin/python",
        "implementation": implementation,
        "version": version,
        "free_threaded": False,
        "gil": True,
        "jit": implementation == "PyPy",
        "build": {"compiler": "GCC 12.2.0", "optimised": True, "shared": False},
    } | more


PYTHONS = (
    interpreter(),
    interpreter("2.7", "2.7.18"),
    interpreter("3.15", "3.15.2"),
    interpreter("3.13t", "3.13.1", free_threaded=True, gil=False),
    interpreter("pypy3.11", "3.11.13", "PyPy"),
)

SUBJECTS = (
    Subject(
        id="square.mutex",
        title="Passing a lock through n threads",
        question="How long until each of n threads has had the lock, when those that had it keep running?",
        explanation=(
            "A release wakes the next thread, but waking is not running: the newcomer has its turn after "
            "every thread that already had the lock and still runs. So the k-th pass of the lock waits "
            "for k turns, and n passes for 1 + 2 + ... + n turns."
        ),
        size_name="threads",
        references=(
            Reference(label="CPython, 2 cores", points=((100, 0.0407), (900, 3.70))),
            Reference(label="PyPy, 2 cores", points=((100, 0.239), (900, 20.9))),
        ),
        schedule="pass",
    ),
    Subject(
        id="square.semaphore",
        title="Waking n threads with a semaphore",
        question="How long until n waiting threads run, when another releases a semaphore n times?",
        explanation=(
            "One release alone needs no switch, so that many fit into one slice of time. A single switch at "
            "the wrong moment queues all woken threads at the semaphore's own lock, and from there it is the "
            "lock's square."
        ),
        size_name="threads",
        references=(
            Reference(
                label="CPython, 2 cores",
                points=((100, 0.0067), (900, 0.1455)),
                variant={"how": "release"},
            ),
        ),
        schedule="pass",
    ),
    Subject(
        id="square.process-start",
        title="Starting n processes",
        question="How long until n forked processes run, when those already started keep running?",
        explanation="The parent shares its core with the children it started, so each start waits for more.",
        size_name="processes",
        references=(Reference(label="CPython, 2 cores", points=((10, 0.0173), (90, 1.66))),),
        schedule="start",
    ),
)

ENVIRONMENT: dict[str, Any] = {
    "machine": "x86_64",
    "kernel": "Linux 6.1.0",
    "cores": 2,
    "affinity": [0, 1],
    "policy": "other",
    "load": [0.42, 0.31, 0.24],
    "yield_probe": {"sleep0_us": 61.25, "sched_yield_us": 0.41},
    "fairlead": "0.1.0",
}


def cell(
    rng: random.Random,
    n: int,
    expected: float,
    *,
    spread: float = 0.04,
    runs: int = 7,
    second_mode: float | None = None,
    smallest: float | None = None,
    params: dict[str, Any] | None = None,
) -> Cell:
    """One size: ``runs`` values around ``expected`` seconds, each third at ``second_mode`` if given."""
    values = tuple(
        (second_mode if second_mode is not None and i % 3 == 2 else expected) * math.exp(rng.gauss(0, spread))
        for i in range(runs)
    )
    ordered = sorted(values)
    middle = statistics.median(values)
    modes = (middle,) if second_mode is None else (statistics.median(ordered[: 2 * runs // 3]), ordered[-1])
    return Cell(
        params={**(params or {}), "n": n}, n=n, values=values, median=middle, low=ordered[1],
        high=ordered[-2], iqr=ordered[(3 * runs) // 4] - ordered[runs // 4], outliers=0, modes=modes,
        factor=middle / (smallest or middle), cpu_s=middle * 1.1, cpu_percent=110.0,
        max_rss_kb=9_800.0 + 34 * n, sum_rss_kb=9_800.0 + 34 * n, ctx_voluntary=float(n * (n + 1)),
        ctx_involuntary=float(rng.randrange(3, 40)), foreign_share=rng.uniform(0, 0.03),
        rounds=tuple((0, number) for number in range(runs)),
    )  # fmt: skip


def series(
    rng: random.Random,
    experiment: str = "square.mutex",
    python: dict[str, Any] | None = None,
    *,
    label: str = "",
    variant: dict[str, Any] | None = None,
    sizes: Sequence[int] = SIZES,
    exponent: float = 2.04,
    at_100: float = 0.041,
    note: str | None = None,
    failures: tuple[str, ...] = (),
    **odd: Any,
) -> Series:
    """A curve that grows as ``at_100 * (n / 100) ** exponent``; ``odd`` goes to the largest cell."""
    cells: list[Cell] = []
    for n in sizes:
        smallest = cells[0].median if cells else None
        own = odd if n == sizes[-1] else {}
        cells.append(cell(rng, n, at_100 * (n / 100) ** exponent, smallest=smallest, params=variant, **own))
    wobble = rng.uniform(-0.02, 0.02)
    model: record.Model = "undecided" if note else "n^2" if exponent > 1.7 else "n"
    last = cells[-1].median or 0.0
    return Series(
        experiment=experiment,
        interpreter=python or PYTHONS[0],
        variant=variant if variant is not None else {"work": "sleep0"},
        label=label,
        cells=tuple(cells),
        fit=Fit(
            exponent=exponent + wobble,
            low=exponent + wobble - 0.06,
            high=exponent + wobble + 0.06,
            model=model,
            note=note,
            coefficients=None
            if model == "undecided"
            else (0.0, last / sizes[-1] ** (2 if model == "n^2" else 1)),
        ),
        failures=failures,
    )


def skipped(
    experiment: str, python: dict[str, Any] | None = None, reason: str = "needs fork", **more: Any
) -> Series:
    """A curve of which nothing was run."""
    return Series(
        experiment=experiment,
        interpreter=python or PYTHONS[0],
        variant=more.get("variant", {}),
        label=more.get("label", ""),
        cells=(),
        skipped=reason,
    )


def exponent_claim(of: Series, **changes: Any) -> Claim:
    """What a curve claims: that it grows faster than n^1.5."""
    claim = Claim(
        topic="passing a lock",
        kind="exponent",
        experiment=of.experiment,
        interpreter=of.interpreter,
        text="passing a lock: time grows faster than n^1.5",
        value=of.fit.exponent,
        low=of.fit.low,
        high=of.fit.high,
        rounds=7,
        threshold=1.5,
        verdict="settled",
        falsified="a 95 % interval that lies below n^1.5 as a whole",
        published=(Published(label="CPython, 2 cores", value=2.05),),
    )
    return replace(claim, **changes)


def ratio_claim(of: Series, **changes: Any) -> Claim:
    """That the largest size of a curve takes longer than the smallest."""
    first, last = of.cells[0], of.cells[-1]
    sides = tuple(
        Side(what=f"{one.n} threads", n=one.n, median=one.median) for one in (last, first) if one.median
    )
    claim = Claim(
        topic="many threads",
        kind="ratio",
        experiment=of.experiment,
        interpreter=of.interpreter,
        text="many threads take longer than few",
        value=42.0,
        low=37.1,
        high=48.0,
        rounds=7,
        threshold=1.1,
        verdict="settled",
        falsified="a 99 % interval that lies below x1.1 as a whole",
        sides=sides,
    )
    return replace(claim, **changes)


def summary(*curves: Series, **more: Any) -> Summary:
    """A summary of the given curves and the three subjects above; ``more`` replaces its other fields."""
    fields: dict[str, Any] = {
        "subjects": SUBJECTS,
        "series": curves,
        "environment": ENVIRONMENT,
        "environments": 1,
        "samples": sum(len(c.values) for s in curves for c in s.cells),
        "started": "2026-03-02T10:14:05Z",
        "finished": "2026-03-02T10:16:41Z",
    }
    return Summary(**(fields | more))


UNITS = {"request": "s", "requests": "per s", "p99": "s", "memory": "KiB", "held": "share", "slower": "ratio"}
METRICS = {"requests": 2500.0, "p99": 0.0051, "memory": 900.0, "held": 0.98, "slower": 1.8, "request": 0.0004}


def with_metrics(metrics: dict[str, float] | None = None) -> Summary:
    """An experiment with a figure of every unit, whose times are those of a request."""
    subject = replace(
        SUBJECTS[0],
        value_name="request",
        growth=False,
        metrics=tuple(
            Metric(name=name, title=name.replace("requests", "rate"), unit=unit)  # type: ignore[arg-type]
            for name, unit in UNITS.items()
        ),
    )
    curve = series(random.Random(1), subject.id, sizes=(1, 2, 4))
    cells = [replace(one, metrics=METRICS if metrics is None else metrics) for one in curve.cells]
    return summary(replace(curve, cells=tuple(cells)), subjects=(subject,))


def realistic(seed: int = 1, pythons: Sequence[dict[str, Any]] = PYTHONS) -> Summary:
    """A whole run: every subject on every interpreter, with one claim open, one bimodal and one skipped."""
    rng = random.Random(seed)
    curves: list[Series] = []
    claims: list[Claim] = []
    for i, python in enumerate(pythons):
        slower = 5.8 if python["implementation"] == "PyPy" else 1 + 0.25 * i
        spread = {"spread": 0.35} if i == 1 else {}
        curves.append(series(rng, "square.mutex", python, at_100=0.041 * slower, **spread))
        claims.append(exponent_claim(curves[-1], verdict="open" if i == 1 else "settled"))
        claims.append(ratio_claim(curves[-1], verdict="contradicts the source" if i == 2 else "settled"))
        for how, label in (("release", "release"), ("event", "event"), ("barrier", "barrier")):
            bimodal = how == "release" and i == 0
            curves.append(
                series(
                    rng,
                    "square.semaphore",
                    python,
                    label=label,
                    variant={"how": how, "work": "sleep0"},
                    exponent=1.35 if not bimodal else 1.6,
                    at_100=0.0067 * slower,
                    **({"second_mode": 4.1, "note": "1 of 4 sizes have two populations"} if bimodal else {}),
                )
            )
        if python["name"] == "3.13t":
            reason = "needs fork, and this build was made without it"
            curves.append(skipped("square.process-start", python, reason, variant={"work": "sleep0"}))
        else:
            curves.append(
                series(rng, "square.process-start", python, sizes=(10, 20, 40, 60), at_100=1.9 * slower)
            )
    return summary(
        *curves,
        claims=tuple(claims),
        conditions=record.Conditions(
            other_load=0.02, highest_load=0.06, stolen=0.0, throttled_s=0.0, speed_varied=0.2, rejected=3
        ),
        problems=("results.jsonl:118: not JSON, the file was cut here",),
    )

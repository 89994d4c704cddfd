"""Writes results.md from results/*.json.

python upstream/table.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
MODES = {"stock": "stock", "a": "A", "b": "B", "ab": "A+B", "fairlead": "fairlead run"}
GROUPS = {
    "convoy-1": "Convoy: an echo server, 1 client",
    "convoy-16": "Convoy: an echo server, 16 clients",
    "convoy-64": "Convoy: an echo server, 64 clients",
    "open-loop": "Open loop: requests of 0.1, 1 and 20 ms of work at load 0.5",
    "servers": "Servers, 4 clients",
    "squares": "Squares: n threads that start, pass a lock, are woken",
    "battle": "Battle: one countdown in 1 to 8 threads",
    "single": "One thread, and nobody wants the GIL",
}
LEFT_OUT = ("max", "stolen", "machine", "generator", "queued", "errors", "unanswered", "wall s")
NOISY = 0.1


def show(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cell(values: list[float]) -> str:
    return f"{show(median(values))} [{show(min(values))}..{show(max(values))}]" if values else ""


def kept(name: str, group: str) -> bool:
    return not name.startswith(LEFT_OUT) or (group == "battle" and name == "wall s")


def group_lines(group: str, data: dict[str, Any]) -> Iterable[str]:
    samples = data["samples"]
    known = [sample["foreign"] for sample in samples if sample["foreign"] is not None]
    stolen = [sample["figures"].get("stolen by host", 0.0) for sample in samples]
    rounds = 1 + max(sample["round"] for sample in samples)
    noisy = sum(foreign > NOISY for foreign in known)
    yield f"\n## {GROUPS[group]}\n"
    yield (
        f"{rounds} rounds. Other processes took more than a tenth of the machine in {noisy} of "
        f"{len(samples)} samples (median {median(known) * 100 if known else 0:.0f} % of it); the host stole "
        f"at most {max(stolen) * 100:.1f} % of a sample.\n"
    )
    yield f"| | | {' | '.join(MODES.values())} |"
    yield f"|---|---|{'---:|' * len(MODES)}"
    for row in dict.fromkeys(sample["row"] for sample in samples):
        mine = [sample for sample in samples if sample["row"] == row]
        names = dict.fromkeys(name for sample in mine for name in sample["figures"] if kept(name, group))
        for number, name in enumerate(names):
            cells = [
                cell([s["figures"][name] for s in mine if s["mode"] == mode and name in s["figures"]])
                for mode in MODES
            ]
            yield f"| {'' if number else row} | {name} | {' | '.join(cells)} |"


def single_lines(data: dict[str, Any]) -> Iterable[str]:
    """What each variant costs one thread: ratios to stock within rounds."""
    rounds: dict[tuple[str, int], dict[str, float]] = {}
    for sample in data["samples"]:
        if "CPU s" in sample["figures"]:
            rounds.setdefault((sample["row"], sample["round"]), {})[sample["mode"]] = sample["figures"][
                "CPU s"
            ]
    rows = dict.fromkeys(row for row, _ in rounds)
    ratios = {
        mode: [
            median(r[mode] / r["stock"] for (name, _), r in rounds.items() if name == row and mode in r)
            for row in rows
        ]
        for mode in MODES
    }
    text = ", ".join(
        f"{MODES[mode]} {percent(geometric_mean(each))} (worst {percent(max(each))})"
        for mode, each in ratios.items()
        if mode != "stock"
    )
    yield (
        f"\nCPU time against stock, geometric mean of {len(rows)} programs (each the median of ratios within "
        f"rounds): {text}."
    )


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def prediction_lines(data: dict[str, Any]) -> Iterable[str]:
    yield "\n## What the simulator said\n"
    yield (
        "The echo servers above, simulated with nothing fitted (`predict.py`). Each cell is predicted / "
        "measured. An error is the factor between the two, the larger over the smaller.\n"
    )
    figures = ("requests/s", "p99 us", "CPU share")
    errors: dict[str, list[float]] = {name: [] for name in figures}
    yield f"| clients | CPU threads | variant | {' | '.join(figures)} |"
    yield f"|---:|---:|---|{'---:|' * len(figures)}"
    order = list(MODES)
    for one in sorted(
        data["cells"], key=lambda one: (one["clients"], one["cpu_threads"], order.index(one["variant"]))
    ):
        cells = []
        for name in figures:
            said, seen = one["predicted"].get(name), one["measured"].get(name)
            cells.append("" if said is None or seen is None else f"{show(said)} / {show(seen)}")
            if said and seen:
                errors[name].append(max(said / seen, seen / said))
        yield f"| {one['clients']} | {one['cpu_threads']} | {MODES[one['variant']]} | {' | '.join(cells)} |"
    yield ""
    for name, each in errors.items():
        within = sum(error <= 2 for error in each)
        yield (
            f"* {name}: median error {show(median(each))} x, within 2 x in {within} of {len(each)} cells, "
            f"worst {show(max(each))} x."
        )


def check_lines(data: dict[str, Any]) -> Iterable[str]:
    yield "\n## Code, and CPython's own tests\n"
    yield "| | lines added | removed | ceval_gil.o, text bytes | regrtest | tests run | failed | seconds |"
    yield "|---|---:|---:|---:|---|---:|---|---:|"
    for variant, one in data["variants"].items():
        test = one["regrtest"]
        cells = (
            str(one["lines"]["added"]),
            str(one["lines"]["removed"]),
            f"{one['text bytes']:,}",
            test["result"],
            f"{test['tests']:,}",
            ", ".join(test["failed"]) or "none",
            str(test["seconds"]),
        )
        yield f"| {MODES[variant]} | {' | '.join(cells)} |"
    yield f"\nTests: {', '.join(data['tests'])}."


def page() -> str:
    lines = [
        "# The measurements",
        "",
        "Written by `make upstream` (`upstream/table.py`) from [results/](results/). Each figure is the "
        "median [lowest..highest] of the rounds. The variants take turns within a round, and each sample is "
        "taken in processes of its own. fairlead run is on the stock build.",
    ]
    for group in GROUPS:
        path = RESULTS / f"{group}.json"
        if path.exists():
            data = json.loads(path.read_text())
            lines += group_lines(group, data)
            lines += single_lines(data) if group == "single" else []
    for name, make in (("prediction", prediction_lines), ("checks", check_lines)):
        path = RESULTS / f"{name}.json"
        if path.exists():
            lines += make(json.loads(path.read_text()))
    return "\n".join(lines) + "\n"


def main() -> None:
    (HERE / "results.md").write_text(page())


if __name__ == "__main__":
    main()

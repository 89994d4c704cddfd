"""Writes results.md from results/*.json, or from a smoke run's beside these.

python upstream/table.py [--quick]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from variants import ROOT, arguments, results

from fairlead.lab.analysis.statistics import LEVEL, paired

sys.path.insert(0, str(ROOT / "tools"))
from markdown_format import formatted

MODES = {
    "stock": "stock",
    "stock again": "stock again",
    "a": "A",
    "b": "B",
    "ab": "A+B",
    "fairlead": "fairlead run",
}
GROUPS = {
    "convoy-1": "Convoy: an echo server, 1 client",
    "convoy-16": "Convoy: an echo server, 16 clients",
    "convoy-64": "Convoy: an echo server, 64 clients",
    "open-loop": "Open loop: requests of 0.1, 1 and 20 ms of work at load 0.5",
    "servers": "Servers, 4 clients",
    "squares": "Squares: n threads that start, pass a lock, are woken",
    "battle": "Battle: one countdown in 1 to 8 threads",
    "pair": "One thread: releasing the GIL and taking it again, when nobody wants it",
    "programs": "One thread: programs of pyperformance",
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
    taken = {sample["mode"] for sample in samples}
    modes = [mode for mode in MODES if mode in taken]
    yield f"| | | {' | '.join(MODES[mode] for mode in modes)} |"
    yield f"|---|---|{'---:|' * len(modes)}"
    for row in dict.fromkeys(sample["row"] for sample in samples):
        mine = [sample for sample in samples if sample["row"] == row]
        names = dict.fromkeys(name for sample in mine for name in sample["figures"] if kept(name, group))
        for number, name in enumerate(names):
            cells = [
                cell([s["figures"][name] for s in mine if s["mode"] == mode and name in s["figures"]])
                for mode in modes
            ]
            yield f"| {'' if number else row} | {name} | {' | '.join(cells)} |"


def program_lines(data: dict[str, Any]) -> Iterable[str]:
    """What each variant costs one thread: ratios to stock within rounds, over all programs."""
    taken: dict[int, dict[str, dict[str, float]]] = {}
    for sample in data["samples"]:
        programs = taken.setdefault(sample["round"], {}).setdefault(sample["mode"], {})
        programs[sample["row"]] = sample["figures"]["seconds"]
    yield ""
    for mode, name in MODES.items():
        ratios = [
            geometric_mean(seconds / modes["stock"][row] for row, seconds in modes[mode].items())
            for modes in taken.values()
            if mode != "stock" and mode in modes
        ]
        if found := paired(ratios, LEVEL):
            yield (
                f"* {name}: {percent(found.value)} against stock, {percent(found.low)} to "
                f"{percent(found.high)} at {LEVEL:.0%} (geometric mean of all, {len(ratios)} rounds)."
            )


def instruction_lines(data: dict[str, Any]) -> Iterable[str]:
    yield "\n## One thread: instructions\n"
    yield (
        "Counted by valgrind (`instructions.py`), start and end of the interpreter taken off. For the "
        "patches, the difference from stock.\n"
    )
    patched = [mode for mode in MODES if mode in ("a", "b", "ab")]
    yield f"| program | stock | {' | '.join(MODES[mode] for mode in patched)} |"
    yield f"|---|---:|{'---:|' * len(patched)}"
    for work, counts in data["instructions"].items():
        cells = [f"{100 * (counts[mode] / counts['stock'] - 1):+.3f} %" for mode in patched]
        yield f"| {work} | {counts['stock']:,} | {' | '.join(cells)} |"


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
    yield "A test that ends otherwise than on stock counts if it does so again when its file runs alone.\n"
    yield "| | lines added | removed | ceval_gil.o, bytes | suite | tests | skipped | failed | unlike stock |"
    yield "|---|---:|---:|---:|---|---:|---:|---|---|"
    variants = data["variants"]
    for variant, one in variants.items():
        tests = one["suite"]
        differ = [each["test"] for each in tests["differences"] if each["here alone"] != each["stock alone"]]
        cells = (
            str(one["lines"]["added"]),
            str(one["lines"]["removed"]),
            f"{one['text bytes']:,}",
            tests["of"],
            f"{tests['tests']:,}",
            f"{tests['skipped']:,}",
            by_file(tests["failed"]),
            names(differ),
        )
        yield f"| {MODES[variant]} | {' | '.join(cells)} |"
    for variant, one in variants.items():
        for each in one["suite"]["differences"]:
            if each["here alone"] == each["stock alone"]:
                yield (
                    f"\n{MODES[variant]}: {each['test']} beside other tests: {each['here']}, and "
                    f"{each['stock']} on stock; alone {each['here alone']} on both."
                )
    yield f"\nThe suite gil: {', '.join(data['gil tests'])}."
    watched = {variant: one["tsan"] for variant, one in variants.items() if "tsan" in one}
    if watched:
        yield from sanitizer_lines(watched)


def exploration_lines(data: dict[str, Any]) -> Iterable[str]:
    yield "\n## Interleavings\n"
    yield (
        "`take_gil()` and `drop_gil()` of each variant, run by three threads in every order with at most two "
        "pre-emptions (stock and A, which have more operations: one; `io-two`, two threads: four). "
        "`gil_model.c` has the scenarios and what must hold. Each cell has the number of executions, and "
        "what failed.\n"
    )
    variants = {name: {row["scenario"]: row for row in rows} for name, rows in data["variants"].items()}
    yield f"| scenario | {' | '.join(MODES[name] for name in variants)} |"
    yield f"|---|{'---:|' * len(variants)}"
    for scenario in variants["stock"]:
        rows = [by_scenario[scenario] for by_scenario in variants.values()]
        cells = [f"{row['executions']:,}{': ' * bool(row['failure'])}{row['failure']}" for row in rows]
        yield f"| {scenario} | {' | '.join(cells)} |"
    yield "\nThe same with a fault put into the code, and at most one pre-emption:\n"
    yield "| fault | variant | executions | scenario | found as |"
    yield "|---|---|---:|---|---|"
    for row in data["faults"]:
        yield (
            f"| {row['fault']} | {MODES[row['variant']]} | {row['executions']:,} | {row['scenario']} | "
            f"{row['failure']} |"
        )


def sanitizer_lines(variants: dict[str, Any]) -> Iterable[str]:
    yield "\n## ThreadSanitizer\n"
    yield (
        "The suite gil on builds with ThreadSanitizer and assertions, without CPython's suppressions. "
        "Reports by the functions in which the two accesses are.\n"
    )
    yield f"| | {' | '.join(MODES[variant] for variant in variants)} |"
    yield f"|---|{'---:|' * len(variants)}"
    yield f"| tests | {' | '.join(str(one['tests']) for one in variants.values())} |"
    yield f"| failed | {' | '.join(names(one['failed']) for one in variants.values())} |"
    for place in sorted({place for one in variants.values() for place in one["reports"]}):
        counts = [str(one["reports"].get(place, 0)) for one in variants.values()]
        yield f"| {place} | {' | '.join(counts)} |"


def by_file(tests: list[str]) -> str:
    """How many of which test file."""
    files = Counter(name.split(".")[1] for name in tests)
    return ", ".join(f"{count} of {name}" for name, count in files.items()) or "none"


def names(tests: list[str]) -> str:
    return ", ".join(tests) or "none"


def page(where: Path) -> str:
    lines = [
        "# The measurements",
        "",
        "Written by `make upstream` (`upstream/table.py`) from [results/](results/). Each figure is the "
        "median [lowest..highest] of the rounds. The variants take turns within a round, and each sample is "
        "taken in processes of its own. fairlead run is on the stock build.",
    ]
    for group in GROUPS:
        path = where / f"{group}.json"
        if path.exists():
            data = json.loads(path.read_text())
            lines += group_lines(group, data)
            lines += program_lines(data) if group == "programs" else []
    for name, make in (
        ("instructions", instruction_lines),
        ("prediction", prediction_lines),
        ("exploration", exploration_lines),
        ("checks", check_lines),
    ):
        path = where / f"{name}.json"
        if path.exists():
            lines += make(json.loads(path.read_text()))
    return formatted("\n".join(lines) + "\n")


def main() -> None:
    quick = arguments(__doc__ or "").parse_args().quick
    where = results(quick=quick)
    page_at = where / "results.md" if quick else where.parent / "results.md"
    page_at.write_text(page(where))


if __name__ == "__main__":
    main()

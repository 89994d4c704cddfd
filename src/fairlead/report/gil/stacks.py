"""Which thread waited for which, as stacks, in two formats that flame graphs are drawn from.

Collapsed stacks (Brendan Gregg's flamegraph.pl, inferno, speedscope): a line for each stack, its frames from
the outermost to the innermost with semicolons between, and a count, here microseconds. speedscope's own JSON
(https://www.speedscope.app/file-format-schema.json) has files and lines as well, and a profile for each GIL.

A stack is read like an off-CPU flame graph with its wakers: the thread that waited and what it was doing,
then "waits for", then the thread that held the GIL and what that was doing; of several processes, below the
process. What was not looked at, waits under the recording's threshold, has the two threads and no frames.
The sum over all is the time waited.
"""

from __future__ import annotations

import json
from collections import Counter

from fairlead.record.gil_summary import GilSummary, StackLoss
from fairlead.record.recording import Frame, Frames
from fairlead.report.common import names

_WAITS = ("waits for", "", 0)  # no code, no file
_NO_THREAD = "(no thread: the GIL was free)"
_UNKNOWN = {0: _NO_THREAD, 0xFFFFFFFE: "(unknown)", 0xFFFFFFFF: "(ended threads)"}


def stacks(summary: GilSummary) -> dict[int, Counter[tuple[Frame, ...]]]:
    """Nanoseconds by stack, outermost frame first, of each GIL."""
    threads = {thread.serial: thread.name for thread in summary.threads}
    found: dict[int, Counter[tuple[Frame, ...]]] = {}
    for loss in summary.stacks:
        process = summary.process_of(loss.gil)
        outermost = ((process.name, "", 0),) if process else ()
        stack = (*outermost, *_stack(loss, threads))
        found.setdefault(loss.gil, Counter())[stack] += round(loss.seconds * 1e9)
    return found


def _stack(loss: StackLoss, threads: dict[int, str]) -> tuple[Frame, ...]:
    def side(serial: int, frames: Frames) -> list[Frame]:
        name = _UNKNOWN.get(serial) or threads.get(serial) or f"thread {serial}"
        code = [(names.clean(function), names.clean(file), line) for function, file, line in reversed(frames)]
        return [(names.clean(name), "", 0), *code]

    return (*side(loss.waiter, loss.waiter_frames), _WAITS, *side(loss.holder, loss.holder_frames))


def collapsed(summary: GilSummary) -> str:
    """A line for each stack, dearest first; those of under half a microsecond are left out."""
    sums: Counter[str] = Counter()
    for counted in stacks(summary).values():
        for stack, ns in counted.items():
            sums[";".join(_plain(frame) for frame in stack)] += ns
    rows = [(line, round(ns / 1000)) for line, ns in sums.most_common()]
    return "\n".join(f"{line} {us}" for line, us in rows if us)


def _plain(frame: Frame) -> str:
    """A semicolon ends a frame, and the last space begins the count."""
    name, file, line = frame
    place = f" ({file}:{line})" if file else ""
    return (name + place).replace(";", ",")


def speedscope(summary: GilSummary) -> str:
    """One "sampled" profile for each GIL, its weights in nanoseconds."""
    numbers: dict[Frame, int] = {}
    profiles = []
    for gil, counted in sorted(stacks(summary).items()):
        samples, weights = [], []
        for stack, ns in counted.most_common():
            samples.append([numbers.setdefault(frame, len(numbers)) for frame in stack])
            weights.append(ns)
        profiles.append(
            {
                "type": "sampled",
                "name": f"waits for {'the GIL of ' if summary.processes else ''}{summary.gil_name(gil)}",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    frames = [
        {"name": name, "file": file, "line": line} if file else {"name": name} for name, file, line in numbers
    ]
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "fairlead",
            "name": " ".join(names.clean(word) for word in summary.process.get("argv", [])),
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": profiles,
        }
    )

from os import PathLike
from typing import Any, TypedDict

class Tally(TypedDict):
    acquisitions: int
    contended: int
    held_ns: int
    held_off_cpu_ns: int
    held_asleep_ns: int
    held_checked_ns: int
    waited_ns: int
    max_wait_ns: int
    max_held_ns: int
    overrun_ns: int
    overrun_off_cpu_ns: int
    max_overrun_ns: int
    forced_drops: int
    voluntary_drops: int
    requests: int
    handoffs: int
    wait_histogram: tuple[int, ...]
    held_histogram: tuple[int, ...]

class ThreadTally(Tally):
    serial: int
    gil: int

class Totals(Tally):
    observed_ns: int

class Reading(TypedDict):
    ns: int
    interval_ns: int
    threads: list[ThreadTally]
    blame: list[tuple[int, int, int, int, int, int, int, int, int]]
    losses: list[tuple[int, int, int, int, int, int, int, int, int, int, int, int]]
    collections: list[tuple[int, int, int, int, int, int]]

def open() -> int: ...  # noqa: A001 - the counterpart of close
def close(window: int, /) -> None: ...
def readable() -> bool: ...
def read(window: int, /) -> Reading: ...
def totals() -> Totals: ...
def threads() -> list[tuple[int, int, int, bool, str]]: ...
def name(names: dict[int, str], /) -> None: ...
def collected(phase: str, info: dict[str, Any], /) -> None: ...
def stack(id: int, /) -> tuple[tuple[str, str, int, int, int, int], ...]: ...  # noqa: A002
def memory() -> dict[str, int]: ...
def threshold(window: int, ns: int | None, /) -> None: ...
def loop_open(name: str, due_ns: int, /) -> int: ...
def loop_beat(
    number: int,
    delay_ns: int,
    late: bool,
    own_ns: int,
    gil_ns: int,
    core_ns: int,
    callback: str | None,
    due_ns: int,
    /,
) -> None: ...
def loop_close(number: int, /) -> None: ...
def record(
    path: str | bytes | PathLike[str],
    meta: str,
    events: bool,
    later: bool,
    counters_ns: int,
    lease: str | None,
    duration_ns: int,
    most_bytes: int,
    /,
) -> None: ...
def record_stop() -> int | None: ...
def record_pause() -> None: ...
def record_resume() -> None: ...
def schedule(mode: int, share: int, spin: bool, for_ns: int, trial: bool, /) -> bool: ...
def scheduler() -> dict[str, int]: ...
def control() -> bool: ...
def canary(state: int, /) -> None: ...
def priority(priority: int, /) -> int: ...
def serve(
    host: str, port: int, token: str, for_all: bool, stalled_ns: int, busy_ns: int | None, /
) -> int: ...
def serve_stop() -> None: ...
def serve_pause() -> None: ...
def serve_resume(main: bool, /) -> None: ...

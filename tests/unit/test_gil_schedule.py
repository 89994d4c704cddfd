"""The scheduler's switch and priorities: what they refuse. What they do is tests/lifecycle's."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from fairlead import _probe, gil, machine
from fairlead.errors import UnsupportedInterpreter, UsageError
from fairlead.gil.schedule import control


@pytest.mark.parametrize("arguments", [{"policy": "best"}, {"cpu_share": 0}, {"cpu_share": 0.99}])
def test_arguments_out_of_range_are_refused_before_anything_is_hooked(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        gil.schedule(**arguments)  # type: ignore[arg-type]


def test_an_unknown_priority_is_refused_on_entry() -> None:
    with pytest.raises(UsageError, match="no priority 'high'"), gil.priority("high"):  # type: ignore[arg-type]
        pass


def test_background_without_a_gil_is_a_nice_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise UnsupportedInterpreter("there is no GIL")

    monkeypatch.setattr(control, "require", refuse)
    seen = []

    def work() -> None:
        with gil.priority("background"):
            seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [max(os.getpriority(os.PRIO_PROCESS, os.getpid()), control.BACKGROUND_NICE)]


@pytest.mark.parametrize("usable", [1, 2])
def test_threads_may_spin_only_if_affinity_and_quota_leave_two_cores(
    usable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(control, "require", lambda: None)
    monkeypatch.setattr(machine, "cores", lambda: SimpleNamespace(usable=usable))
    monkeypatch.setattr(_probe, "schedule", lambda *settings: given.append(settings), raising=False)
    control.switch("interactive", 0.25)
    assert given == [(1, 256, usable > 1)]

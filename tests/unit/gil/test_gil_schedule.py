"""The scheduler's switch and priorities: what they refuse. What they do is tests/lifecycle's."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from fairlead import _probe, gil, machine
from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.schedule import control, priority


@pytest.mark.parametrize(
    "arguments",
    [{"policy": "best"}, {"cpu_share": 0}, {"cpu_share": 0.99}, {"timer_slack": 0}, {"timer_slack": 2}],
)
def test_arguments_out_of_range_are_refused_before_anything_is_hooked(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        gil.schedule(**arguments)  # type: ignore[arg-type]


def test_an_unknown_priority_is_refused_on_entry() -> None:
    with pytest.raises(UsageError, match="no priority 'high'"), gil.priority("high"):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("level", ["io", "normal", "background"])
@pytest.mark.parametrize("privileged", [True, False])
def test_priority_without_a_gil_is_a_nice_value_as_far_as_the_system_allows(
    level: priority.Priority, privileged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise UnsupportedInterpreterError("there is no GIL")

    nice = [3]

    def setpriority(_: int, thread: int, value: int) -> None:
        assert thread == threading.get_native_id()
        if value < nice[-1] and not privileged:
            raise PermissionError
        nice.append(value)

    monkeypatch.setattr(priority, "require", refuse)
    monkeypatch.setattr(os, "setpriority", setpriority)
    monkeypatch.setattr(os, "getpriority", lambda *_: nice[-1])
    with gil.priority(level):
        inside = nice[-1]
    assert inside == {"io": -5 if privileged else 3, "normal": 3, "background": 10}[level]
    assert nice[-1] == (10 if level == "background" and not privileged else 3)


def test_timer_slack_where_the_system_has_none_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "set_timer_slack_ns", lambda _: False)
    control.slacken(None)
    with pytest.raises(UnsupportedInterpreterError, match="leave it out"):
        control.slacken(1e-6)


@pytest.mark.parametrize(
    ("usable", "quota", "spins"),
    [(1, None, False), (2, None, True), (2, 1.1, False), (2, 1.9, False), (2, 2.0, False), (3, 2.5, True)],
)
def test_threads_may_spin_only_if_that_leaves_a_core_and_can_not_use_a_quota_up(
    usable: int, quota: float | None, spins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(control, "require", lambda: None)
    monkeypatch.setattr(machine, "cores", lambda: SimpleNamespace(usable=usable, quota=quota))
    monkeypatch.setattr(_probe, "schedule", lambda *settings: given.append(settings), raising=False)
    monkeypatch.setattr(control, "_open", True)  # it takes orders from outside already
    control.switch("interactive", 0.25)
    assert given == [(1, 256, spins, 0, False)]

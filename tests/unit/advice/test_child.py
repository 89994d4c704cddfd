"""What the measuring processes do: nothing of their own in a worker's first call, and no call twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import python

from fairlead.advice.child.calling import Caught, Raised, Timed
from fairlead.advice.child.loading import Refused, load_target
from fairlead.advice.child.measure import following

pytestmark = pytest.mark.ends


def test_what_workers_import_to_time_a_call_is_little() -> None:
    """A worker imports it in its first call: asyncio alone takes longer than many calls."""
    done = python("-c", "import sys, fairlead.advice.child.calling; print(*sorted(sys.modules))")
    assert not {"asyncio", "numpy", "fairlead.pools", "fairlead.gil"} & set(done.stdout.split())


def test_call_that_raises_is_a_result_and_takes_its_time() -> None:
    def fails(item: int) -> int:
        raise KeyError(item)

    value, took = Timed(Caught(fails))(7)
    assert (type(value), value) == (Raised, "KeyError: 7")
    assert took >= 0
    with pytest.raises(KeyError):
        Timed(fails)(7)


@pytest.mark.parametrize(
    ("number", "requests", "walls", "sizes"),
    [
        (100, 100, [0.1], [96]),
        (100, 1000, [0.1, 0.1], [48, 48]),
        # one slow first call says that 3 calls fit: those of the workers are made, and say better
        (100, 1000, [4.0, 0.01, 0.1, 0.1], [4, 48, 44]),
        # another program has taken the cores since: the time is up
        (100, 1000, [0.1, 9.0], [48]),
        (4, 4, [0.1], []),
    ],
    ids=["the whole program", "a part of it", "a slow first call", "no time", "no more calls"],
)
def test_passes_are_as_long_as_there_is_time_for(
    number: int, requests: int, walls: list[float], sizes: list[int]
) -> None:
    job = {"number": number, "requests": requests, "workers": 4}
    passes, left, found = [(4, walls[0])], 3.0, []
    while size := following(job, passes, left):
        found.append(size)
        wall = walls[len(found)] if len(found) < len(walls) else 0.1
        passes.append((size, wall))
        left -= wall
    assert found == sizes


def test_package_of_another_python_is_one_reason_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As numpy is on the path of another interpreter: what it says itself are forty lines."""
    package = tmp_path / "numbers_of_another"
    package.mkdir()
    (package / "_core.cpython-39-x86_64-linux-gnu.so").touch()
    (package / "__init__.py").write_text(
        "try:\n    import numbers_of_another._core\n"
        "except ImportError as error:\n    raise ImportError('READ THIS\\n' * 40) from error\n"
    )
    (tmp_path / "scores.py").write_text("import numbers_of_another\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    job: dict[str, Any] = {"target": {"module": "scores", "name": "score", "label": "scores:score"}}
    job |= {"items": {"expression": "[1]"}}
    with pytest.raises(Refused) as refused:
        load_target(job, lambda _: None)
    assert str(refused.value) == "scores cannot be imported: numbers_of_another is not installed for it"

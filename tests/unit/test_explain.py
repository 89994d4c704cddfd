"""`fairlead explain`, and the note by which an error names it."""

from __future__ import annotations

import pickle
import traceback

import pytest

from fairlead import cli, errors
from fairlead.errors import NOTE, FairleadError, QueueEmpty, UsageError, WaitTimeoutError
from fairlead.pools.engine.contract import Broken
from fairlead.sync import Queue

pytestmark = pytest.mark.ends


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """(exit status, what it printed on either stream)."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *arguments])
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out + printed.err


def note_of(error: FairleadError) -> str:
    """The last line of its traceback."""
    return "".join(traceback.format_exception(error)).splitlines()[-1]


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_a_note_and_the_command_in_it_explains_that_error(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = getattr(errors, name)
    error = kind.__new__(kind)
    assert note_of(error) == f"{NOTE}{name}"
    status, printed = explain(capsys, name)
    assert status == 0
    assert printed.startswith(f"{name}\n\n")
    assert len(printed) > len(name) + 40


@pytest.mark.parametrize(
    ("word", "status", "said"),
    [
        *(
            (w, 0, "WaitTimeoutError\n")
            for w in ("WaitTimeout", "waittimeouterror", "fairlead.errors.WaitTimeoutError")
        ),
        ("WaitTimeotError", 2, "did you mean WaitTimeoutError?"),
    ],
)
def test_a_name_may_be_short_small_or_as_a_traceback_has_it_and_the_nearest_is_named(
    word: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, printed = explain(capsys, word)
    assert found == status
    assert said in printed
    assert status or printed.startswith(said)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_without_a_name_all_are_listed_as_wide_as_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    status, printed = explain(capsys)
    assert status == 0
    lines = printed.splitlines()
    assert sorted(line.split()[0] for line in lines if line[2] != " ") == sorted(errors.__all__)
    assert max(map(len, lines)) <= min(columns, 100)


def test_text_is_for_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    _, printed = explain(capsys, "UnsupportedInterpreterError")
    prose, _, example = printed.partition("\n    import fairlead.gil\n")
    assert max(map(len, prose.splitlines())) <= 72
    assert "(docs/reference/compatibility.md)" in prose
    assert "    fairlead.gil.schedule()" in example
    assert "```" not in printed


def test_note_belongs_to_one_error_and_is_made_where_it_is_shown() -> None:
    assert note_of(Broken("no worker")) == f"{NOTE}BrokenPoolError"
    with pytest.raises(QueueEmpty) as raised:
        Queue[int]().get_nowait()
    assert vars(raised.value) == {}
    error = UsageError("wrong")
    error.add_note("of the caller")
    assert error.__notes__ == [f"{NOTE}UsageError", "of the caller"]
    assert UsageError("another").__notes__ == [f"{NOTE}UsageError"]
    error = WaitTimeoutError("late")
    assert pickle.loads(pickle.dumps(error)).__notes__ == error.__notes__

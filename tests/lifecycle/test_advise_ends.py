"""fairlead advise beside functions that raise, exit, die, or never return: an error, and nothing left."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from commands import FAIRLEAD, fairlead, python
from programs import living

import fairlead as package
from fairlead.advice import session
from fairlead.cli.root import root
from fairlead.errors import AdviceError, SerializationError, UsageError
from fairlead.record.advice import load

pytestmark = pytest.mark.ends

PROGRAMS = """
import os, subprocess, sys, time

def raises(n): raise ValueError("no such price")
def exits(n): sys.exit(3)
def dies(n): os._exit(4)
def crashes(n): os.kill(os.getpid(), 11)
def naps(n): time.sleep(0.5)
def spins_with_the_gil(n): return (10 ** 7) ** (10 ** 8)
def generates(n): yield n
def fine(n): return n
def items(): return [1]
def no_items(): raise OSError("no disk")

def raises_late(n):
    if n == 7:
        raise KeyError(n)
    return n

def never(n):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    while True:
        time.sleep(600)

def dies_in_workers(n):
    import threading
    if threading.current_thread() is not threading.main_thread():
        os._exit(9)
    time.sleep(0.005)
    return n

def once(n):
    if os.environ.get("FAIRLEAD_TWICE"):
        raise RuntimeError("twice")
    os.environ["FAIRLEAD_TWICE"] = "1"

prices = {}
def prepare():
    prices["price"] = 2
    return range(100)
def prepared(n): return prices["price"] * n

class SlowToRead(dict):
    def items(self):
        time.sleep(0.7)
        return super().items()
def read_slowly(n): return SlowToRead()

class Torn:
    def __iter__(self): raise OSError("torn")
number, torn = 7, Torn()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAMS)
    (tmp_path / "needy.py").write_text("import nothing_of_this_name")
    (tmp_path / "broken.py").write_text("raise RuntimeError('at import')")
    (tmp_path / "program.py").write_text("import sys\nsys.exit(2)\n")
    (tmp_path / "lines.jsonl").write_text('1\n{"a": 2}\n\nthree\n')
    (tmp_path / "empty.jsonl").write_text("\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLEAD_WHO", str(tmp_path))
    return tmp_path


def ask(*args: str) -> None:
    """What the command does, here, up to its errors."""
    root.main(["advise", *args, "-o", "saved.json"], prog_name="fairlead", standalone_mode=False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", " raised ValueError: no such price when it was called with item 0, 0: give items"),
        ("prepared", ", called one after another in a new process: KeyError: 'price'; give items that it can "
         "handle, and have its module make what else it needs"),
        ("once", " raised RuntimeError: twice when it was called with"),
        ("exits", " ends its process (sys.exit) when it is called with item 0, 0"),
        ("dies", " ended its process when it was called with item 0 (it ended with status 4): give items for "
         "which it returns"),
        ("crashes", " ended its process when it was called with item 0 (it was ended by SIGSEGV)"),
        ("never", " did not return within 1 s when it was called with item 0: give items"),
        ("naps", " takes "),
        ("spins_with_the_gil", " did not return within 1 s"),
    ],
)  # fmt: skip
def test_function_without_a_result_is_reported_and_leaves_nothing(
    place: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = "shop:prepare()" if name == "prepared" else "range(100)"
    if "within 1 s" not in said:  # a call may take longer where others have the cores
        monkeypatch.setattr(session, "FIRST_CALL_SHARE", 20.0)
    with pytest.raises(AdviceError, match=re.escape(f"shop:{name}{said}")):
        ask(f"shop:{name}", "--items", items, "--budget", "2s")
    assert living(f"FAIRLEAD_WHO={place}") == []
    assert not (place / "saved.json").exists()


ONE = "--items [1]"
FINE = "shop:fine"


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        ("shop:nothing", ONE, "shop has no nothing: name one that it defines"),
        ("shop:fin", ONE, "shop has no fin: did you mean fine?"),
        ("shop:number", ONE, "shop:number is an int, which cannot be called: name a function"),
        ("shop:generates", ONE, "makes generators"),
        ("no_shop:fine", ONE, "there is no module no_shop here"),
        ("needy:fine", ONE, "needy cannot be imported: it needs nothing_of_this_name"),
        ("broken:fine", ONE,
         "broken cannot be imported: it raised RuntimeError: at import; mend it, or name another module"),
        ("program:fine", ONE, "program ends its process (sys.exit) when it is imported: put what it does as "
         "a program under if __name__ == '__main__'"),
        ("shop.py:fine", ONE, "shop.py is a file: name its module, as shop:fine"),
        ("shop", ONE, "'shop' names no function: write module:function"),
        (FINE, "", "give the function's items: either --items MODULE:NAME or --inputs FILE"),
        (FINE, "--items '[]'", "there are no items: give at least one"),
        (FINE, "--items 'range('",
         "--items 'range(' cannot be evaluated (SyntaxError: '(' was never closed (<string>, line 1)): write "
         "MODULE:NAME, MODULE:NAME() or an expression with the names of the function's module"),
        (FINE, "--items 'iter([iter([1])])'", "item 0 is of type list_iterator, which one call uses up"),
        (FINE, "--items ''", "--items '' cannot be evaluated (SyntaxError: invalid syntax"),
        (FINE, "--items 'shop.items'", "(NameError: name 'shop' is not defined): write MODULE:NAME"),
        (FINE, "--items '5'", "--items '5' is an int, which has no items: name an iterable"),
        (FINE, "--items 'shop:items'",
         "--items 'shop:items' is a function, which has no items: call it, as 'shop:items()'"),
        (FINE, "--items 'shop:no_items()'", "raised OSError: no disk: give items that can be made"),
        (FINE, "--items 'shop:torn'", "raised OSError: torn: give items that can be made"),
        (FINE, "--inputs 'none.jsonl'", "none.jsonl: cannot be read"),
        (FINE, "--inputs 'lines.jsonl'", "lines.jsonl:4: not JSON"),
        (FINE, "--inputs 'empty.jsonl'", "there are no items in it"),
        (FINE, f"{ONE} --requests 0", "requests must be at least 1"),
        (FINE, f"{ONE} --budget 100ms", "the budget must be at least 1 s"),
        (FINE, f"{ONE} --kinds magic", "there is no kind 'magic'"),
        (FINE, f"{ONE} --max-calls 3", "max_calls must be at least 4"),
        (FINE, f"{ONE} --dry-run --format json", "--dry-run shows its plan as text"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("place")
def test_wrong_usage_is_reported(function: str, options: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        ask(function, *shlex.split(options))


def test_call_that_raises_is_named_and_does_not_end_the_advice(place: Path) -> None:
    """One in a hundred, as a request that fails now and then does."""
    ask("shop:raises_late", "--items", "range(100)", "--budget", "3s", "--kinds", "threads,processes")
    advice = load(place / "saved.json")
    assert advice.choice.kind == "sequential"
    assert {one.status for one in advice.candidates} == {"measured"}
    assert any(note.startswith("Item 7 raised KeyError: 7: these calls count") for note in advice.notes)


def test_command_says_it_in_one_line_and_its_status(place: Path) -> None:
    done = fairlead("advise", "shop:raises", "--items", "[1]", "--budget", "2s", cwd=place)
    assert done.returncode == 1
    assert done.stdout == ""
    assert [line for line in done.stderr.splitlines() if "measurements" not in line] == [
        "fairlead: shop:raises raised ValueError: no such price when it was called with item 0, 1: give "
        "items that it can handle"
    ]


def test_candidate_whose_workers_die_is_reported_and_not_chosen(place: Path) -> None:
    ask("shop:dies_in_workers", "--items", "range(40)", "--budget", "2s", "--kinds", "threads")
    advice = load(place / "saved.json")
    assert advice.choice.kind == "sequential"
    died = [one for one in advice.candidates if one.kind == "threads"]
    assert {(one.status, one.reason) for one in died} == {("failed", "its process ended with status 9")}


def test_interrupted_advice_leaves_nothing(place: Path) -> None:
    command = [*FAIRLEAD, "advise", "shop:never", "--items", "[1]", "--budget", "100s"]
    running = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        assert "looking at the first calls" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert "fairlead: stopped" in running.stderr.read()
        assert running.wait(30) == 130
    finally:
        running.kill()
        running.communicate()
    assert living(f"FAIRLEAD_WHO={place}") == []


LOADING = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
import fairlead.cli
"""


def test_interrupt_while_the_command_is_loading_is_no_traceback() -> None:
    done = python("-c", LOADING)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    loaded = "import signal, fairlead.cli; print(signal.getsignal(2) is signal.default_int_handler)"
    assert python("-c", loaded).stdout == "True\n"


def raising(n: int) -> int:
    raise LookupError(n)


def test_in_code_the_same_errors_are_raised() -> None:
    with pytest.raises(AdviceError, match="raising raised LookupError: 1"):
        package.advise(raising, [1], budget=2)
    with pytest.raises(UsageError, match="cannot be called"):
        package.advise(7, [1])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there are no items"):
        package.advise(len, [])
    with pytest.raises(UsageError, match="items must be an iterable"):
        package.advise(len, 7)  # type: ignore[arg-type]


def test_function_that_cannot_be_sent_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(SerializationError, match="cannot be sent to the measuring processes"):
        package.advise(lambda n: lock.locked() and n, [1])
    with pytest.raises(SerializationError, match="the items cannot be sent"):
        package.advise(len, [lock])


HUNGRY = """
import os
from fairlead.advice.child.usage import memory_kib
before = memory_kib([os.getpid()])
block = bytearray(60_000_000)
block[::4096] = b"x" * len(block[::4096])
del block
print(memory_kib([os.getpid()]) - before)
"""


def test_memory_is_what_a_call_had_at_most_and_not_what_it_left() -> None:
    done = python("-c", HUNGRY)
    assert int(done.stdout) > 50_000


@pytest.mark.timing
def test_time_that_a_result_is_looked_at_is_not_taken_for_the_call(place: Path) -> None:
    words = ("--items", "range(3)", "--budget", "2s", "--kinds", "threads", "--max-calls", "30")
    ask("shop:read_slowly", *words)
    assert load(place / "saved.json").choice.kind == "sequential"

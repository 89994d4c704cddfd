"""fairlead._native in several interpreters of one process, and loaded over and over."""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import sysconfig
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from waiting import Thread

from fairlead import _native, machine

NATIVE_PATH = _native.__file__

# 3.13's free-threaded build makes classes immortal, and leaves 2.5 MB of every closed interpreter behind.
classes_can_die = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14),
    reason="classes never die in the free-threaded build of Python 3.13",
)

IMPORT = "from fairlead import _native as native\n"

LOAD = f"""
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("fairlead._native", {NATIVE_PATH!r})
spec = importlib.util.spec_from_loader("fairlead._native", loader)
native = importlib.util.module_from_spec(spec)
loader.exec_module(native)
"""


LOAD_NOTHING = LOAD.replace("native = importlib", "0 and importlib").replace("loader.exec_module(native)", "")

MANY_INTERPRETERS = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters

def rounds(count):
    for _ in range(count):
        one = interpreters.create()
        assert interpreters.run_string(one, sys.argv[1]) is None
        interpreters.destroy(one)

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

rounds(20)
before = resident()
rounds(200)
print(resident() - before)
"""


def load_again() -> ModuleType:
    """A second module object of the extension, with a state of its own."""
    names: dict[str, Any] = {}
    exec(LOAD, names)
    module: ModuleType = names["native"]
    return module


def test_import_works_in_an_interpreter_with_its_own_gil(new_interpreter: Callable[[], Any]) -> None:
    interpreter = new_interpreter()
    assert interpreter.gil == ("own" if sys.version_info >= (3, 12) else "shared")
    interpreter.run(
        "from fairlead import machine\n"
        "assert machine.cores().usable >= 1\n"
        "assert machine.thread_usage().user_ns >= 0\n"
    )


def test_clock_is_the_same_in_every_interpreter(new_interpreter: Callable[[], Any]) -> None:
    interpreter = new_interpreter()
    before = machine.clock_ns()
    reader, writer = os.pipe()
    interpreter.run(IMPORT + f"import os; os.write({writer}, str(native.clock_ns()).encode())")
    after = machine.clock_ns()
    theirs = int(os.read(reader, 100))
    os.close(reader)
    os.close(writer)
    assert before <= theirs <= after


def test_types_belong_to_their_interpreter(new_interpreter: Callable[[], Any]) -> None:
    """A heap type per interpreter: closing one leaves the others' records whole."""
    first, second = new_interpreter(), new_interpreter()
    first.run(IMPORT + "kept = native.cores()")
    second.run(IMPORT + "kept = native.cores(); kind = type(kept)")
    del first
    second.run("assert type(native.cores()) is kind and kept.online >= 1")
    assert type(machine.cores()) is machine.Cores


def test_interpreters_at_once_in_threads_read_their_own_counters(new_interpreter: Callable[[], Any]) -> None:
    program = (
        IMPORT
        + """
last, used = native.clock_ns(), 0
for _ in range(2000):
    now, usage = native.clock_ns(), native.thread_usage()
    total = usage.user_ns + usage.system_ns
    assert now >= last and total >= used
    last, used = now, total
assert used > 0
"""
    )
    for thread in [Thread(new_interpreter().run, program) for _ in range(6)]:
        thread.result()


def record_types() -> int:
    """How many of the extension's types exist. Not by weak references: the collector clears those of an
    object in a cycle even when a reference too many then keeps the object."""
    gc.collect()
    return sum(isinstance(one, type) and one.__name__ in {"Cores", "Usage"} for one in gc.get_objects())


@classes_can_die
def test_module_state_dies_with_the_module() -> None:
    before = record_types()
    for _ in range(100):
        module = load_again()
        assert module.cores() == machine.cores()
        assert module.Cores is not machine.Cores
    assert record_types() == before + 2
    del module
    assert record_types() == before


@classes_can_die
def test_record_outlives_the_module_that_made_it() -> None:
    module = load_again()
    record = module.process_usage()
    kind = weakref.ref(type(record))
    del module
    gc.collect()
    assert record.max_rss_kb > 0
    assert kind() is not None
    del record
    gc.collect()
    assert kind() is None


def test_reload_keeps_the_functions_working() -> None:
    importlib.reload(_native)
    assert _native.cores() == machine.cores()


def classes_in_python() -> str:
    """A program with the classes of the extension, their methods empty."""
    lines = []
    for name, kind in vars(_native).items():
        if isinstance(kind, type):
            lines += [f"class {name}:", "    __slots__ = ()"]
            lines += [
                f"    def {method}(self): pass" for method, what in vars(kind).items() if callable(what)
            ]
    return "\n".join(lines)


@pytest.mark.long
@classes_can_die
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc/self/statm")
def test_two_hundred_interpreters_leave_no_memory_behind() -> None:
    """What the extension adds to the memory of an interpreter is given back when that is closed.

    An interpreter itself leaves memory behind: little in 3.11, 3.14 and 3.15, but 1.4 MB in 3.12 and
    3.13, and there the more, the more names it has known. So the growth with the extension is held against
    the growth without it and against that with classes of the same names, written in Python.
    """
    bodies = {
        "extension": LOAD + "native.cores(); native.process_usage()",
        "Python": LOAD_NOTHING + classes_in_python(),
        "nothing": LOAD_NOTHING,
    }
    growth = {}
    for name, body in bodies.items():
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", MANY_INTERPRETERS, body],
            check=True,
            capture_output=True,
            text=True,
        )
        growth[name] = int(done.stdout)
    # the two types of one interpreter alone are over 4 KiB
    assert growth["extension"] < max(growth["Python"], growth["nothing"]) + 200 * 4096

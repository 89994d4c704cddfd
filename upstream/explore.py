"""Runs take_gil() and drop_gil() of each variant in every order of three threads, up to a bound.

    python upstream/explore.py [--quick]

gil_model.c says what must hold. The functions are compiled as they stand in the variant's source. Faults are
then put into them, one at a time, and each must be found. Writes results/exploration.json.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from variants import BUILD, HERE, ROOT, SERIES, arguments, call, prepare, results, source_of

NATIVE = ROOT / "native"
MODEL = NATIVE / "tests" / "model"
# GCC 12 drops a branch of gil_shim.h at -O2, where it inlines store_int() in the free-threaded build.
FLAGS = (
    "-std=gnu11",
    "-O1",
    "-DFL_MODEL=1",
    "-DFL_WAKES=1",
    "-DFL_WAKES_BEGUN=1",
    "-Wall",
    "-Wno-unused-function",
)
WAKE = "        wake_first_waiter(gil);\n"
HANGS = "                dequeue_waiter(gil, &waiter);\n        " + WAKE
FAULTS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "a drop wakes the first waiter before the GIL is free, without the mutex": (
        "b",
        [
            (
                "    MUTEX_LOCK(gil->mutex);\n    _Py_ANNOTATE_RWLOCK_RELEASED",
                "    wake_first_waiter(gil);\n    MUTEX_LOCK(gil->mutex);\n    _Py_ANNOTATE_RWLOCK_RELEASED",
            ),
            (
                "(&gil->locked, 0);\n" + WAKE + "    }\n    MUTEX_UNLOCK",
                "(&gil->locked, 0);\n    }\n    MUTEX_UNLOCK",
            ),
        ],
    ),
    "a waiter looks, lets go of the mutex, and queues up without looking again": (
        "b",
        [
            (
                "    enqueue_waiter(gil, &waiter);\n\n    while (!waiter.granted",
                "    MUTEX_UNLOCK(gil->mutex);\n    MUTEX_LOCK(gil->mutex);\n"
                "    enqueue_waiter(gil, &waiter);\n\n"
                "    for (int looked = 1; looked-- > 0 || !waiter.granted",
            ),
            (
                "!waiter.granted && _Py_atomic_load_int_relaxed(&gil->locked)) {",
                "(!waiter.granted && _Py_atomic_load_int_relaxed(&gil->locked));) {",
            ),
        ],
    ),
    "a hand-over leaves the GIL free": (
        "b",
        [
            (
                "        first->granted = 1;\n",
                "        first->granted = 1;\n        store_int(&gil->locked, 0);\n",
            )
        ],
    ),
    "a hand-over leaves the waiter in the queue": ("b", [("        dequeue_waiter(gil, first);\n", "")]),
    "the queue is last-in first-out": (
        "b",
        [
            (
                "    if (gil->last_waiter == NULL) {\n        gil->first_waiter = waiter;",
                "    waiter->next = gil->first_waiter;\n    if (gil->last_waiter != NULL) {\n"
                "        gil->first_waiter = waiter;\n        return;\n    }\n"
                "    if (gil->last_waiter == NULL) {\n        gil->first_waiter = waiter;",
            )
        ],
    ),
    "a thread that leaves the queue does not wake the next": (
        "b",
        [("how long this thread holds the GIL. */\n    wake_first_waiter(gil);\n", "how long. */\n")],
    ),
    "a daemon thread that hangs stays in the queue": ("b", [(HANGS, "")]),
    "a daemon thread that hangs does not wake the next": ("b", [(HANGS, HANGS.replace(WAKE, ""))]),
    "a hand-over while the interpreter finalizes": (
        "b",
        [("\n        && _PyInterpreterState_GetFinalizing(interp) == NULL;", ";")],
    ),
    "a waiter that wakes up takes the GIL without looking": (
        "b",
        [("        (void)timed_out;\n", "        (void)timed_out;\n        break;\n")],
    ),
    "waiters that compute little are queued last-in first-out": (
        "ab",
        [("(!(*link)->computes || behind)", "((*link)->computes || behind)")],
    ),
}
"""What is planted: in which variant, and the texts that are replaced."""


def functions(variant: str) -> str:
    """The state of the GIL and the functions that change it."""
    source = source_of(variant)
    header = (source / "Include" / "internal" / "pycore_gil.h").read_text()
    code = (source / "Python" / "ceval_gil.c").read_text()
    header = header.partition("#endif\n\n")[2] if "FORCE" not in header else header
    begin = header.index("/* ", header.index("POSIX-compatible"))
    state = header[begin : header.index("#ifdef __cplusplus\n}", begin)]
    first, after = code.index("#define MUTEX_INIT"), code.index("void _PyEval_SetSwitchInterval")
    return f"{state}\n#include <errno.h>\n{code[first:after]}"


def build(name: str, variant: str, text: str, *options: str) -> Path:
    place = BUILD / "exploration" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "gil_under_test.h").write_text(text)
    program = place / "gil_model"
    if variant == "ab":
        options = (*options, "-DFL_AB")
    sources = (HERE / "gil_model.c", MODEL / "model.c")
    include = [f"-I{path}" for path in (place, NATIVE, MODEL)]
    call("gcc", *FLAGS, *options, *include, *map(str, sources), "-o", str(program), log=place / "gcc.log")
    return program


def explore(program: Path) -> list[dict[str, object]]:
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    rows = [line.split(",", 3) for line in output.splitlines()]
    return [
        {"scenario": scenario, "executions": int(executions), "schedule": schedule, "failure": failure}
        for scenario, executions, schedule, failure in rows
    ]


def planted(variant: str, changes: list[tuple[str, str]]) -> str:
    text = functions(variant)
    for before, after in changes:
        if text.count(before) != 1:
            raise SystemExit(f"{variant} has {text.count(before)} of what a fault replaces: {before}")
        text = text.replace(before, after)
    return text


def main() -> None:
    quick = arguments(__doc__ or "").parse_args().quick
    bound = ["-DBOUND=1"] if quick else []
    variants, faults = {}, []
    for variant in SERIES:
        prepare(variant)
        text = functions(variant)
        variants[variant] = explore(build(variant, variant, text, *bound))
        variants[variant] += explore(build(f"{variant}-ft", variant, text, *bound, "-DPy_GIL_DISABLED"))
        for row in variants[variant]:
            print(variant, *row.values(), flush=True)
    for number, (fault, (variant, changes)) in enumerate(FAULTS.items()):
        rows = explore(build(f"fault-{number}", variant, planted(variant, changes), "-DBOUND=1"))
        found = next((row for row in rows if row["failure"]), None)
        if found is None:
            raise SystemExit(f"not found: {fault}")
        print(f"{fault}: {found}", flush=True)
        faults.append({"fault": fault, "variant": variant, **found})
    written = {"variants": variants, "faults": faults}
    (results(quick=quick) / "exploration.json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()

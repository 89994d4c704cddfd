"""Functions of a program's main module, in workers that import it without what stands under its guard."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ends

PROGRAM = """
import functools, json, sys
from dataclasses import dataclass

SCALE = 1
TABLE = {{"scale": 1}}
LARGE = {{n: n for n in range(1000)}}
CHANGED = []

@dataclass
class Point:
    x: int

    def scaled(self):
        return SCALE * self.x

    @property
    def tabled(self):
        return tabled(self.x)

class Far(Point):
    pass

def method(point):
    return point.scaled() + point.tabled

def twice(function):
    @functools.wraps(function)
    def called(n):
        return 2 * function(n)
    return called

@twice
def decorated(n):
    return SCALE * n

def undefined(n):
    return base * n

def scaled(n):
    return SCALE * n

def inner(n):
    return [scaled(k) for k in range(n)]

def tabled(n):
    return TABLE["scale"] * n

def filled(n):
    return sum(CHANGED) * n

def made(n):
    return Point(SCALE * n)

def instance(point):
    return isinstance(point, Point) and point.x * SCALE

def constant(n):
    return LARGE[n]

def redefined(n):
    return n

def guarded(n):
    return helper(Point(n))

def set_to(n):
    global SCALE
    SCALE = n

def set_up():
    set_to(10)

FACTOR = None
STATE = {{}}

def begin(factor):
    global FACTOR
    FACTOR = factor
    STATE["factor"] = factor

def initialised(n):
    return FACTOR * STATE["factor"] * n

def calls(kind):
    if kind == "joblib":
        import joblib, fairlead.pools.joblib
        def run(function, items):
            with joblib.parallel_config(backend="fairlead", n_jobs=2):
                return joblib.Parallel()(joblib.delayed(function)(item) for item in items)
        return run
    from fairlead.pools import pool
    return lambda function, items, **hooks: list(pool(kind, 2, **hooks).map(function, items))

if __name__ == "__main__":
    base = 10
    {set_scale}
    TABLE["scale"] = 10
    CHANGED += [4, 6]
    import fractions

    def helper(point):
        return isinstance(point, Point) and float(fractions.Fraction(point.x, SCALE))

    def redefined(n):
        return SCALE * n

    run = calls(sys.argv[1])
    points = run(made, [1, 2])
    print(json.dumps({{
        "undefined": run(undefined, [1, 2]), "scaled": run(scaled, [1, 2]), "inner": run(inner, [3]),
        "tabled": run(tabled, [1, 2]), "filled": run(filled, [1, 2]), "constant": run(constant, [1, 2]),
        "points": [isinstance(point, Point) and point.x for point in points],
        "initialised": sys.argv[1] != "processes" or run(initialised, [1], initializer=begin, initargs=(3,)),
        "instance": run(instance, points), "lambda": run(lambda n: SCALE * n, [1, 2]),
        "method": run(method, points), "unbound": run(Point.scaled, points),
        "inherited": run(method, [Far(3)]),
        "decorated": run(decorated, [1, 2]), "redefined": run(redefined, [1, 2]),
        "guarded": run(guarded, [5]),
        "set again": [set_to(n) or run(scaled, [1]) for n in (7, 1)],
    }}))
"""
RIGHT = {
    "undefined": [10, 20], "scaled": [10, 20], "inner": [[0, 10, 20]], "tabled": [10, 20], "filled": [10, 20],
    "constant": [1, 2], "initialised": [9], "points": [10, 20], "instance": [100, 200], "lambda": [10, 20],
    "method": [200, 400], "unbound": [100, 200], "inherited": [60], "decorated": [20, 40],
    "redefined": [10, 20], "guarded": [0.5], "set again": [[7], [1]],
}  # fmt: skip


@pytest.mark.parametrize("set_scale", ["SCALE = 10", "set_up()"])
@pytest.mark.parametrize("kind", ["processes", "interpreters", "joblib"])
def test_globals_that_were_set_under_the_guard_go_along(kind: str, set_scale: str, tmp_path: Path) -> None:
    if kind == "interpreters" and sys.version_info < (3, 13):
        pytest.skip("there are no interpreters before 3.13")
    if kind == "joblib":
        pytest.importorskip("joblib")
    (tmp_path / "main.py").write_text(PROGRAM.format(set_scale=set_scale))
    done = subprocess.run(
        [sys.executable, "main.py", kind], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == RIGHT | ({} if kind == "processes" else {"initialised": True})


def test_function_that_reads_what_a_worker_has_goes_by_reference(tmp_path: Path) -> None:
    program = PROGRAM.format(set_scale="set_up()").partition("    run = calls")[0]
    (tmp_path / "main.py").write_text(
        program + "    from fairlead.pools.serialization.of_main import takes_along\n"
        "    functions = constant, set_up, scaled, inner, filled, tabled, initialised\n"
        "    print([f.__name__ for f in functions if takes_along(f)])\n"
    )
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['scaled', 'inner', 'filled', 'tabled']\n"


CHANGING = """
import sys, threading
from fairlead.pools import ProcessPool

class Held:
    def scaled(self, n):
        return SCALE * n

    def locked(self):
        with lock:
            pass

if __name__ == "__main__":
    lock = threading.Lock()
    with ProcessPool(1, sys.argv[1]) as pool:
        for SCALE in (1, 10, 1):
            print(*pool.map(Held().scaled, [2, 3]))
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_each_call_finds_the_value_of_its_time_also_beside_what_cannot_be_pickled(
    method: str, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text(CHANGING)
    done = subprocess.run(
        [sys.executable, "main.py", method], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 3\n20 30\n2 3\n"

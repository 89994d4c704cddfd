"""Programs with ``pool()`` whose right answer is known: that of a loop. Each is a program of its own, with a
module beside it, as users have them; what can go to other workers must go there."""

from __future__ import annotations

import decimal
import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead import machine
from fairlead.pools.choose.rules import has_gil

pytestmark = [
    pytest.mark.ends,
    pytest.mark.skipif(
        machine.cores().usable < 2 or not has_gil(), reason="without a GIL, or with one core, nothing is won"
    ),
]

BUSY = """
def busy():
    total = 0
    for number in range(60_000):
        total += number * number
    return total
"""

MAIN = """
import json, sys, threading, os
import conf
from fairlead.pools import pool
{top}
{busy}
if __name__ == "__main__":
    found = []
{body}
    print(json.dumps([found, used, str(p.choice)]))
"""


@dataclass
class Program:
    body: str
    """Appends to ``found``; ``used`` is the kind at the end."""
    right: object
    conf: str = ""
    top: str = ""
    elsewhere: bool | None = False
    """Whether workers elsewhere must make calls; None: they may, and may not."""


def mapped(
    called: str, items: str = "range(1, 13)", before: str = "", after: str = "", how: str = "map"
) -> str:
    made = (
        f"p.map({called}, {items})"
        if how == "map"
        else f"[f.result() for f in [p.submit({called}, n) for n in {items}]]"
    )
    return f"""
{before}
with pool() as p:
    found += list({made})
    used = p.choice.kind
{after}
"""


def mapped_by_two_scales(change: str) -> str:
    return f"""
with pool() as p:
    for scale in (1, 10):
        {change}
        found += list(p.map(conf.scaled, range(1, 13)))
    used = p.choice.kind
"""


ONE_TO_12 = list(range(1, 13))
TIMES_10 = [10 * n for n in ONE_TO_12]

WRONG_ELSEWHERE = {
    "global of a module that main sets": Program(
        mapped("conf.scaled", before="conf.SCALE = 10"), TIMES_10,
        conf="SCALE = 1\ndef scaled(n):\n    busy()\n    return SCALE * n",
    ),
    "context variable": Program(
        mapped("conf.scaled", before="conf.SCALE.set(10)"), TIMES_10,
        conf="import contextvars\nSCALE = contextvars.ContextVar('scale', default=1)\n"
        "def scaled(n):\n    busy()\n    return SCALE.get() * n",
    ),
    "decimals of the context's precision": Program(
        mapped("conf.ninth", before="decimal.getcontext().prec = 3"),
        [str(decimal.Context(3).divide(decimal.Decimal(n), 9)) for n in ONE_TO_12],
        top="import decimal",
        conf="import decimal\ndef ninth(n):\n    busy()\n    return str(decimal.Decimal(n) / 9)",
    ),
    "global of a module, one call at a time": Program(
        mapped("conf.scaled", before="conf.SCALE = 10", how="submit"), TIMES_10,
        conf="SCALE = 1\ndef scaled(n):\n    busy()\n    return SCALE * n",
    ),
    "global that is set between two maps": Program(
        mapped_by_two_scales('conf.SCALE = scale'),
        ONE_TO_12 + TIMES_10,
        conf="SCALE = 1\ndef scaled(n):\n    busy()\n    return SCALE * n",
        elsewhere=True,
    ),
    "helper that is replaced between two maps": Program(
        """
with pool() as p:
    found += list(p.map(conf.work, range(1, 13)))
    conf.helper = lambda n: 10 * n
    found += list(p.map(conf.work, range(1, 13)))
    used = p.choice.kind
""",
        ONE_TO_12 + TIMES_10,
        conf="def helper(n):\n    return n\ndef work(n):\n    busy()\n    return helper(n)",
        elsewhere=True,
    ),
    "table that grows between two maps": Program(
        mapped_by_two_scales('conf.TABLE["scale"] = scale'),
        ONE_TO_12 + TIMES_10,
        conf='TABLE = {}\ndef scaled(n):\n    busy()\n    return TABLE["scale"] * n',
    ),
    "list that calls append to": Program(
        mapped("conf.logged", after="found = sorted(conf.LOG)"), ONE_TO_12,
        conf="LOG = []\ndef logged(n):\n    busy()\n    LOG.append(n)\n    return n",
    ),
    "counter behind a lock": Program(
        mapped("conf.counted", after="found = [conf.count]"), [12],
        conf="import threading\nlock = threading.Lock()\ncount = 0\ndef counted(n):\n    global count\n"
        "    busy()\n    with lock:\n        count += 1\n",
    ),
    "counter in a helper of a helper": Program(
        mapped("conf.work", after="found = [len(conf.LOG)]"), [12],
        conf="LOG = []\ndef note(n):\n    LOG.append(n)\ndef helper(n):\n    busy()\n    note(n)\n"
        "def work(n):\n    helper(n)\n",
    ),
    "late change that the first calls do not make": Program(
        mapped("conf.work", "range(40)", after="found = conf.LOG"), [39],
        conf="LOG = []\ndef work(n):\n    busy()\n    if n == 39:\n        LOG.append(n)\n",
    ),
    "method that changes its object": Program(
        mapped("tally.add", before="tally = conf.Tally()", after="found = [sum(tally.parts)]"), [78],
        conf="class Tally:\n    def __init__(self):\n        self.parts = []\n    def add(self, n):\n"
        "        busy()\n        self.parts.append(n)\n",
    ),
    "attribute of a class": Program(
        mapped("conf.Shop().sell", after="found = [len(conf.Shop.sold)]"), [12],
        conf="class Shop:\n    sold = []\n    def sell(self, n):\n        busy()\n"
        "        self.sold.append(n)\n",
    ),
    "closure that counts": Program(
        mapped("conf.made()", after="found = sorted(conf.SEEN[0])"), ONE_TO_12,
        conf="SEEN = []\ndef made():\n    seen = []\n    SEEN.append(seen)\n    def add(n):\n        busy()\n"
        "        seen.append(n)\n    return add\n",
    ),
    "default that remembers": Program(
        mapped("conf.work", after="found = [len(conf.work.__defaults__[0])]"), [12],
        conf="def work(n, known=[]):\n    busy()\n    known.append(n)\n",
    ),
    "argument that is changed in place": Program(
        mapped("conf.work", "rows", before="rows = [[n] for n in range(1, 13)]",
               after="found = [row[-1] for row in rows]"), TIMES_10,
        conf="def work(row):\n    busy()\n    row.append(10 * row[0])\n",
    ),
    "argument that a helper sorts": Program(
        mapped("conf.work", "rows", before="rows = [[n, 0] for n in range(1, 13)]", after="found = rows"),
        [[0, n] for n in ONE_TO_12],
        conf="def order(row):\n    row.sort()\ndef work(row):\n    busy()\n    order(row)\n",
    ),
    "environment that main changes": Program(
        mapped("conf.work", before='os.environ["SCALE"] = "10"'), TIMES_10, elsewhere=None,
        conf='import os\ndef work(n):\n    busy()\n    return int(os.environ.get("SCALE", "1")) * n\n',
    ),
    "directory that main changes": Program(
        mapped("conf.work", before='os.mkdir("in"); open("in/scale", "w").write("10"); os.chdir("in")'),
        TIMES_10, elsewhere=None,
        conf='def work(n):\n    busy()\n    with open("scale") as file:\n'
        '        return int(file.read()) * n\n',
    ),
    "module that interpreters refuse, found late": Program(
        mapped("conf.work", "range(1, 41)"), list(range(1, 41)), elsewhere=True,
        conf="import importlib\ndef work(n):\n    busy()\n    if n > 20:\n"
        '        importlib.import_module("readline")\n    return n\n',
    ),
    "refused module, one call at a time": Program(
        mapped("conf.work", "range(1, 41)", how="submit"), list(range(1, 41)), elsewhere=True,
        conf="import importlib\ndef work(n):\n    busy()\n    if n > 20:\n"
        '        importlib.import_module("readline")\n    return n\n',
    ),
    "directory that changes between two maps": Program(
        """
for name in ("one", "two"):
    os.mkdir(name)
open("one/scale", "w").write("1")
open("two/scale", "w").write("10")
here = os.getcwd()
with pool() as p:
    for name in ("one", "two"):
        os.chdir(os.path.join(here, name))
        found += list(p.map(conf.work, range(1, 13)))
    used = p.choice.kind
""",
        ONE_TO_12 + TIMES_10,
        conf='def work(n):\n    busy()\n    with open("scale") as file:\n'
        '        return int(file.read()) * n\n',
        elsewhere=True,
    ),
    "thread-locals": Program(
        mapped("conf.work", after="found = [len(conf.SEEN)]"), [12],
        conf="import threading\nhere = threading.local()\nSEEN = []\ndef work(n):\n    busy()\n"
        "    here.n = n\n    SEEN.append(here.n)\n",
    ),
    "seeded generator of random numbers": Program(
        mapped("conf.draw", before="import random; random.seed(1)", after="found = [len(set(found))]; "
               "random.seed(1); found.append(len({random.random() for _ in range(12)}))"), [12, 12],
        conf="import random\ndef draw(n):\n    busy()\n    return random.random()\n",
    ),
    "cache": Program(
        mapped("conf.work", "[1, 2, 3] * 8", after="found = sorted(conf.CACHE)"), [1, 2, 3],
        conf="CACHE = {}\ndef work(n):\n    busy()\n    if n not in CACHE:\n        CACHE[n] = n\n"
        "    return n\n",
    ),
    "module that is another when it is imported anew": Program(
        mapped("conf.work", after="found = [set(found) == {conf.TOKEN}]"), [True],
        conf="import uuid\nTOKEN = uuid.uuid4().hex\ndef work(n):\n    busy()\n    return TOKEN\n",
    ),
    "global that is reached by its module": Program(
        mapped("work", before="conf.SCALE = 10"), TIMES_10, conf="SCALE = 1\n",
        top="def work(n):\n    busy()\n    return conf.SCALE * n\n",
    ),
    "global that is imported in the call": Program(
        mapped("work", before="conf.SCALE = 10"), TIMES_10, conf="SCALE = 1\n",
        top="def work(n):\n    from conf import SCALE\n    busy()\n    return SCALE * n\n",
    ),
    "global that is reached by getattr": Program(
        mapped("work", before="conf.SCALE = 10"), TIMES_10, conf="SCALE = 1\n",
        top='def work(n):\n    busy()\n    return getattr(conf, "SCALE") * n\n',
    ),
    "global that main sets in main": Program(
        mapped("work", before="SCALE = 10"), TIMES_10, elsewhere=None,
        top="SCALE = 1\ndef work(n):\n    busy()\n    return SCALE * n\n",
    ),
    "another function in the same pool": Program(
        """
with pool() as p:
    found += list(p.map(conf.square, range(6)))
    list(p.map(conf.logged, range(6)))
    found += sorted(conf.LOG)
    used = p.choice.kind
""",
        [n * n for n in range(6)] + list(range(6)),
        conf="LOG = []\ndef square(n):\n    busy()\n    return n * n\ndef logged(n):\n    busy()\n"
        "    LOG.append(n)\n",
        elsewhere=True,
    ),
    "items of another kind later": Program(
        """
with pool() as p:
    rows = [[1], [2]]
    found += list(p.map(conf.work, range(6)))
    list(p.map(conf.work, rows))
    found += rows
    used = p.choice.kind
""",
        [*range(6), [1, 0], [2, 0]], elsewhere=True,
        conf="def work(n):\n    busy()\n    if isinstance(n, int):\n        return n\n    n.append(0)\n",
    ),
    "output that main takes": Program(
        "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
        + textwrap.indent(mapped("conf.work"), "    ") + "found = sorted(map(int, out.getvalue().split()))\n",
        ONE_TO_12,
        conf="import sys\ndef work(n):\n    busy()\n    print(str(n) + chr(10), end='')\n",
    ),
    "library's function that main has replaced": Program(
        mapped("conf.work", before="import math; math.floor = lambda n: 0"), [0] * 12,
        conf="import math\ndef work(n):\n    busy()\n    return math.floor(n + 0.5)\n",
    ),
    "method of a library's class that main has replaced": Program(
        mapped("conf.work", before="json.JSONEncoder.default = lambda self, other: 0"), ["[0]"] * 12,
        conf="import json\ndef work(n):\n    busy()\n    return json.dumps([{n}])\n",
    ),
    "setting of a library": Program(
        mapped("conf.work", before="import socket; socket.setdefaulttimeout(7)"), [7.0] * 12,
        conf="import socket\ndef work(n):\n    busy()\n    return socket.getdefaulttimeout()\n",
    ),
    "process that calls are made by": Program(
        mapped("conf.work", after="found = [set(found) == {os.getpid()}]"), [True],
        conf="import os\ndef work(n):\n    busy()\n    return os.getpid()\n",
    ),
    "warnings that main records": Program(
        "import warnings\nwith warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        + textwrap.indent(mapped("conf.work"), "    ") + "found = [len(seen)]\n", [12],
        conf="import warnings\ndef work(n):\n    busy()\n    warnings.warn(str(n))\n",
    ),
    "calls of a metaclass": Program(
        mapped("conf.work", after="found = [len(conf.Kind.made)]"), [12],
        conf="class Kind(type):\n    made = []\n    def __call__(cls, *args):\n"
        "        Kind.made.append(cls)\n"
        "        return super().__call__(*args)\nclass Thing(metaclass=Kind):\n    pass\n"
        "def work(n):\n    busy()\n    Thing()\n",
    ),
    "comparison that counts": Program(
        mapped("conf.work", "[[conf.Key(2), conf.Key(1)] for _ in range(12)]",
               after="found = [conf.Key.compared]"), [12],
        conf="class Key:\n    compared = 0\n    def __init__(self, n):\n        self.n = n\n"
        "    def __lt__(self, other):\n        Key.compared += 1\n        return self.n < other.n\n"
        "def work(keys):\n    busy()\n    return min(keys).n\n",
    ),
    "arguments that a helper takes in any number": Program(
        mapped("conf.work", "rows", before="rows = [[[], [n]] for n in range(1, 13)]",
               after="found = rows[0]"),
        [[1], [1, 1]],
        conf="def add(*rows):\n    for row in rows:\n        row.append(1)\ndef work(pair):\n    busy()\n"
        "    add(*pair)\n",
    ),
    "argument in a tuple with names": Program(
        mapped("conf.work", "rows", before="rows = [[n] for n in range(1, 13)]", after="found = rows[0]"),
               [1, 1],
        conf="from typing import NamedTuple\nclass Pair(NamedTuple):\n    row: list\n    n: int\n"
        "def work(row):\n    busy()\n    pair = Pair(row, n=1)\n    pair.row.append(pair.n)\n",
    ),
    "argument that a pattern takes apart": Program(
        mapped("conf.work", "rows", before="rows = [{'row': [n]} for n in range(1, 13)]",
               after="found = rows[:1]"),
        [{"row": [1, 1]}],
        conf="def work(given):\n    busy()\n    match given:\n        case {'row': row}:\n"
        "            row.append(1)\n",
    ),
    "list deep in one argument of many": Program(
        mapped("conf.work", "rows", before="rows = [[[1], [2]]] * 6 + [[[1], [[2]]]] * 6",
               after="found = rows[6]"),
        [[1], [[2, 0, 0, 0, 0, 0, 0]]], elsewhere=None,
        conf="def work(row):\n    busy()\n    for inner in row:\n        for one in inner:\n"
        "            if isinstance(one, list):\n                one.append(0)\n",
    ),
    "object of an argument that main goes on with": Program(
        mapped("conf.best", "groups",
               before="groups = [[conf.Player(n), conf.Player(0)] for n in range(1, 13)]",
               after="found = [one in group for one, group in zip(found, groups)]"), [True] * 12,
        conf="class Player:\n    def __init__(self, n):\n        self.n = n\n"
        "def best(group):\n    busy()\n    return max(group, key=lambda one: one.n)\n",
    ),
    "object that stands for nothing": Program(
        mapped("conf.work", "[1, conf.STOP] * 6"), [False, True] * 6, elsewhere=None,
        conf="STOP = object()\ndef work(n):\n    busy()\n    return n is STOP\n",
    ),
    "attributes that a module makes": Program(
        mapped("work", after="found = [len(conf.ASKED)]"), [12],
        conf="ASKED = []\ndef __getattr__(name):\n    if name != 'scale':\n"
        "        raise AttributeError(name)\n"
        "    ASKED.append(name)\n    return 3\n",
        top="def work(n):\n    busy()\n    return conf.scale * n\n",
    ),
}  # fmt: skip
PURE = {
    "numbers of a copy": Program(
        mapped("conf.work", "[np.arange(4.0) + n for n in range(1, 13)]", before="import numpy as np"),
        [n + 10.0 for n in ONE_TO_12],
        conf="import numpy as np\ndef work(row):\n    busy()\n"
        "    copy, rest = row.copy(), np.zeros_like(row)\n"
        "    copy += 10\n    rest[0] = copy[0]\n    return float(rest.sum())\n",
    ),
    "class that extends another": Program(
        mapped("Times(10).work"), TIMES_10,
        top="class Scale:\n    def __init__(self, k):\n        self.k = k\n    def work(self, n):\n"
        "        return self.k * n\nclass Times(Scale):\n    def __init__(self, k):\n"
        "        super().__init__(k)\n    def work(self, n):\n        busy()\n"
        "        return super().work(n)\n",
    ),
    "operators of its own": Program(
        mapped("conf.work"), [n + 3 for n in ONE_TO_12],
        conf="class Sum:\n    def __init__(self, n):\n        self.n = n\n    def __add__(self, other):\n"
        "        return Sum(self.n + other.n)\n    def __iadd__(self, other):\n        self.n += other.n\n"
        "        return self\nBASE = Sum(1)\ndef work(n):\n    busy()\n    made = Sum(n)\n"
        "    made += BASE + Sum(1)\n"
        "    return (made + BASE).n\n",
    ),
    "tree that is walked": Program(
        mapped("conf.work", "[conf.Node(n, [conf.Node(1, [conf.Node(2)])]) for n in range(1, 13)]"),
        [n + 3 for n in ONE_TO_12],
        conf="class Node:\n    def __init__(self, n, inner=()):\n        self.n = n\n"
        "        self.inner = list(inner)\ndef work(root):\n    busy()\n    total, stack = 0, [root]\n"
        "    while stack:\n        node = stack.pop()\n        total += node.n\n"
        "        for one in node.inner:\n            stack.append(one)\n    return total\n",
    ),
    "steps in a list": Program(
        mapped("conf.work"), TIMES_10,
        conf="def scale(n):\n    return 10 * n\nSTEPS = [abs, scale]\ndef work(n):\n    busy()\n"
        "    for step in STEPS:\n        n = step(n)\n    return n\n",
    ),
    "arithmetic": Program(
        mapped("conf.work"), TIMES_10, conf="def work(n):\n    busy()\n    return 10 * n\n",
    ),
    "arithmetic of main": Program(
        mapped("work"), TIMES_10, top="def work(n):\n    busy()\n    return 10 * n\n",
    ),
    "one call at a time": Program(
        mapped("conf.work", how="submit"), TIMES_10, conf="def work(n):\n    busy()\n    return 10 * n\n",
    ),
    "lambda": Program(mapped("lambda n: busy() * 0 + k * n", before="k = 10"), TIMES_10),
    "constant and helpers": Program(
        mapped("conf.work"), TIMES_10,
        conf="SCALE = 10\ndef helper(n):\n    return SCALE * n\ndef work(n):\n    busy()\n"
        "    return helper(n)\n",
    ),
    "large table that is only read": Program(
        mapped("conf.work"), TIMES_10,
        conf="TABLE = {n: 10 * n for n in range(100_000)}\ndef work(n):\n    busy()\n    return TABLE[n]\n",
    ),
    "lists of its own": Program(
        mapped("conf.work"), ONE_TO_12,
        conf="def fill(out, n):\n    out.append(n)\ndef work(n):\n    busy()\n    out = []\n"
        "    fill(out, n)\n"
        "    out.sort()\n    return out[0]\n",
    ),
    "objects of its own": Program(
        mapped("conf.work"), TIMES_10,
        conf="from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    def move(self):\n"
        "        self.x *= 10\ndef work(n):\n    busy()\n    point = Point(n)\n    point.move()\n"
        "    return point.x\n",
    ),
    "items that are lists": Program(
        mapped("conf.work", "[[n, n] for n in range(1, 13)]"), [2 * n for n in ONE_TO_12],
        conf="def work(row):\n    busy()\n    return sum(value for value in row)\n",
    ),
    "memoised recursion": Program(
        mapped("conf.work"), [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144],
        conf="from functools import cache\n@cache\ndef fib(n):\n"
        "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "def work(n):\n    busy()\n    return fib(n)\n",
    ),
    "method that reads its object": Program(
        mapped("conf.Scale(10).work"), TIMES_10,
        conf="class Scale:\n    def __init__(self, k):\n        self.k = k\n    def work(self, n):\n"
        "        busy()\n"
        "        return self.k * n\n",
    ),
    "libraries": Program(
        mapped("conf.work"), [[n, 2] for n in ONE_TO_12],
        conf="import json, re\ndef work(n):\n    busy()\n    words = re.findall(r'a', 'aba')\n"
        "    return json.loads(json.dumps([n, len(words)]))\n",
    ),
    "logger": Program(
        "import logging\nlogging.basicConfig(level=logging.INFO)\nseen = []\nhandler = logging.Handler()\n"
        "handler.emit = lambda record: seen.append(int(record.getMessage()))\n"
        "logging.getLogger().addHandler(handler)\n"
        + mapped("conf.work", after="found = sorted(seen)"), ONE_TO_12,
        conf="import logging\nlog = logging.getLogger(__name__)\ndef work(n):\n    busy()\n"
        "    log.info('%d', n)\n",
    ),
    "errors that are caught": Program(
        mapped("conf.work", "range(3)"), [None, 1.0, 0.5],
        conf="def work(n):\n    busy()\n    try:\n        return 1 / n\n"
        "    except ZeroDivisionError:\n        return None\n",
    ),
}  # fmt: skip
for program in PURE.values():
    program.elsewhere = True


@pytest.mark.parametrize("name", [*WRONG_ELSEWHERE, *PURE])
def test_pool_without_a_kind_gives_the_answer_of_a_loop(name: str, tmp_path: Path) -> None:
    program = (WRONG_ELSEWHERE | PURE)[name]
    (tmp_path / "conf.py").write_text(BUSY + program.conf + "\n")
    main = MAIN.format(top=program.top, busy=BUSY, body=textwrap.indent(program.body, "    "))
    (tmp_path / "main.py").write_text(main)
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found, used, said = json.loads(done.stdout)
    assert found == program.right
    assert program.elsewhere in (None, used in ("processes", "interpreters")), said

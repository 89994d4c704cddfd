"""The interpreter's own tests of multiprocessing.Pool over the kind of pool that PEERS_KIND names."""

from __future__ import annotations

import os
import sys
import unittest
from typing import Any

import test._test_multiprocessing as tests

from fairlead import pools
from fairlead.pools.multiprocessing import Pool

KIND = os.environ["PEERS_KIND"]

if KIND == "interpreters" and sys.version_info < (3, 13):
    raise unittest.SkipTest("this interpreter has no InterpreterPool")


class Base(unittest.TestCase):
    TYPE = KIND

    @staticmethod
    def Pool(processes: int | None = None, **given: Any) -> Any:  # noqa: N802 - the tests' name
        initializer, initargs = given.pop("initializer", None), given.pop("initargs", ())
        over = pools.pool(
            KIND, processes, initializer=initializer, initargs=initargs,
            max_tasks_per_child=given.pop("maxtasksperchild", None),
        )  # fmt: skip
        return Pool(over=over, **given)


class TestPool(tests._TestPool, Base):  # type: ignore[misc]
    pass

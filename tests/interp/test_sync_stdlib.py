"""The interpreter's own tests of locks, against fairlead's; docs/reference/sync.md lists the differences."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import pytest
from suites import ships

from fairlead import sync

if not ships("test.lock_tests"):
    pytest.skip("this interpreter comes without its tests", allow_module_level=True)

from test import lock_tests

DIFFERENCES = {
    "test_repr": "repr shows the state and how many wait, in one way for all",
    "test_locked_repr": "repr shows the state and how many wait, in one way for all",
    "test_repr_count": "repr shows the state and how many wait, in one way for all",
    "test_at_fork_reinit": "a private method; fairlead's are in order in a forked child by themselves",
    "test_nan_timeout": "it looks at a private name",
    "ConditionTests.test_acquire": "it gives threading's lock to a Condition, which takes fairlead's",
}
"""Tests that fail, by name or class and name, with the reason."""

CASES: dict[str, tuple[str, Any]] = {
    "LockTests": ("locktype", sync.Lock),
    "RLockTests": ("locktype", sync.RLock),
    "EventTests": ("eventtype", sync.Event),
    "ConditionTests": ("condtype", sync.Condition),
    "SemaphoreTests": ("semtype", sync.Semaphore),
    "BoundedSemaphoreTests": ("semtype", sync.BoundedSemaphore),
    "BarrierTests": ("barriertype", sync.Barrier),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_interpreters_own_tests_pass_but_for_the_listed_differences(name: str) -> None:
    attribute, kind = CASES[name]
    case = type(name, (getattr(lock_tests, name),), {attribute: staticmethod(kind)})
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks with threads, and of what is deprecated in the tests
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun >= 6
    broken = {test.id().rpartition(".")[2]: traceback for test, traceback in result.failures + result.errors}
    unexpected = {
        test: traceback
        for test, traceback in broken.items()
        if test not in DIFFERENCES and f"{name}.{test}" not in DIFFERENCES
    }
    assert not unexpected, "\n".join(unexpected.values())

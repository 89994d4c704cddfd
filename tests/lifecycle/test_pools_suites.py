"""The standard library's own tests hold for pools, but for differences that have a reason."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "poolsuites.py"

MODULES = {"futures": "test.test_concurrent_futures", "multiprocessing": "test._test_multiprocessing"}

DIFFERENCES = {
    "test_make_pool": "looks at the private list of workers",
    "test_resource_warning": "sets a private state",
    "test_traceback": "the cause is a WorkerTraceback, not multiprocessing's private class",
    "test_map_no_failfast": "map's results raise where they are taken, not in the call",
    "test_imap_handle_iterable_exception": "the results of the items before the input's exception come first",
    "test_imap_unordered_handle_iterable_exception": "the same",
    "test_map_unplicklable": "what cannot be sent raises SerializationError, and where the result is taken",
    "test_wrapped_exception": "sends a method of a class that the test's own program makes, nameless",
    "test_cancel_futures": "none may have begun, where workers still start when all is cancelled",
    "test_map_timeout": "its five seconds count from the start of the first worker, on a loaded machine",
    "test_map_buffersize_when_buffer_is_full": "nothing is read before a result is asked for",
    "test_map_buffersize_without_iterable": "a map over nothing is refused",
    "test_max_workers_negative": "another wording",
    "test_interpreter_shutdown": "imports the class from concurrent.futures by its name",
    "test_submit_after_interpreter_shutdown": "imports the class from concurrent.futures by its name",
    "test_hang_gh83386": "starts executors by the arguments of the standard library's",
    "test_hang_gh94440": "starts executors by the arguments of the standard library's",
}


@pytest.mark.long
@pytest.mark.timeout(200)
@pytest.mark.parametrize("kind", ["threads", "processes", "interpreters"])
@pytest.mark.parametrize("suite", MODULES)
def test_standard_librarys_tests_pass_but_for_the_differences(suite: str, kind: str, tmp_path: Path) -> None:
    if kind == "interpreters" and sys.version_info < (3, 13):
        pytest.skip("has no interpreters with a pool")
    try:
        there = importlib.util.find_spec(MODULES[suite])
    except ModuleNotFoundError:
        there = None
    if there is None or (there.submodule_search_locations is None and suite == "futures"):
        pytest.skip(f"this interpreter has come without {MODULES[suite]}, or with an older form of it")
    done = subprocess.run(
        [sys.executable, PROGRAM, suite, kind], cwd=tmp_path, capture_output=True, text=True, timeout=190,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said) >= 20
    failed = {name: what for name, what in said.items() if not what.startswith("passed")}
    assert {name: what for name, what in failed.items() if name not in DIFFERENCES} == {}

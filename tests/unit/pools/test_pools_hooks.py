"""What a pool does for its workers beside their tasks: the finalizer, idle workers, log records."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from poolkinds import KINDS, Make, making
from pooltasks import identity, remember, square, wait_for, where
from waiting import run, until

from fairlead import errors
from fairlead.pools import AutoPool, Pool, ProcessPool
from fairlead.pools.choose.call_profile import CallMeter, CallSample

pytestmark = [
    pytest.mark.ends_and_free,
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]

START_METHODS = ["forkserver", "spawn", "fork"]
SENDING = [kind for kind in KINDS if kind in {"processes", "interpreters"}]


class Leave:
    """A finalizer: leaves a file for each worker that calls it."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def __call__(self) -> None:
        name = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        (Path(self.place) / name).touch()


class Blocks:
    """A finalizer that does not end."""

    def __init__(self, begun: Path) -> None:
        self.begun = str(begun)

    def __call__(self) -> None:
        Path(self.begun).touch()
        threading.Event().wait()


def raises() -> None:
    raise ValueError("the finalizer refuses")


def exits() -> None:
    sys.exit(3)


# the finalizer


def test_finalizer_is_called_once_by_each_worker_when_the_pool_ends(make: Make, tmp_path: Path) -> None:
    with make(finalizer=Leave(tmp_path)) as pool:
        assert list(pool.map(square, range(4), chunksize=1)) == [0, 1, 4, 9]
        workers = pool.statistics().started
        assert not list(tmp_path.iterdir())
    pool.shutdown()
    pool.terminate()
    assert len(list(tmp_path.iterdir())) == workers
    here = f"{os.getpid()}-{threading.get_ident()}-*"
    assert len(list(tmp_path.glob(here))) == (pool.statistics().kind == "sequential")


def test_finalizer_is_not_called_without_a_worker_or_where_the_initializer_has_failed(
    make: Make, tmp_path: Path
) -> None:
    with make(finalizer=Leave(tmp_path)):
        pass
    assert not list(tmp_path.iterdir())
    with make(initializer=raises, finalizer=Leave(tmp_path)) as pool, pytest.raises(errors.BrokenPoolError):
        pool.submit(square, 1).result()
    assert not list(tmp_path.iterdir())


def test_finalizer_is_called_when_a_worker_has_had_its_tasks(keeping: Make, tmp_path: Path) -> None:
    with keeping(max_workers=1, max_tasks_per_child=2, finalizer=Leave(tmp_path)) as pool:
        for n in range(6):
            assert pool.submit(square, n).result() == n * n
        until(lambda: len(list(tmp_path.iterdir())) >= 2)
    assert len(list(tmp_path.iterdir())) in (3, 4), "perhaps one more, which has had none"


@pytest.mark.parametrize("finalizer", [raises, exits])
def test_finalizer_that_raises_is_logged_and_the_pool_ends(
    finalizer: Callable[[], None], make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    pool = make(finalizer=finalizer)
    assert pool.submit(square, 3).result() == 9
    pool.shutdown(timeout=20)
    if pool.statistics().kind in {"sequential", "threads", "async"}:
        assert "exception calling a worker's finalizer" in caplog.text


def test_terminate_ends_a_process_whose_finalizer_does_not(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    pool = ProcessPool(1, finalizer=Blocks(begun))
    assert pool.submit(square, 2).result() == 4
    pool.shutdown(wait=False)
    until(begun.exists)
    pool.terminate()
    pool.shutdown(timeout=20)


def test_worker_that_is_killed_calls_no_finalizer(tmp_path: Path) -> None:
    place = tmp_path / "finalized"
    place.mkdir()
    with ProcessPool(1, finalizer=Leave(place)) as pool:
        pid, _ = pool.submit(where).result()
        os.kill(pid, signal.SIGKILL)
        until(lambda: pool.statistics().started == 0)
    assert not list(place.iterdir())


def test_auto_pool_passes_the_finalizer_to_the_kind_that_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallMeter, "watch", lambda *_: CallSample(0.05, 0.001, held=None))  # it waits
    called: list[int] = []
    with AutoPool(1, finalizer=lambda: called.append(threading.get_ident())) as pool:
        assert list(pool.map(square, range(8))) == [n * n for n in range(8)]
        ident = pool.submit(threading.get_ident).result()
    assert called == [ident], "of the thread that has made the first calls, and the rest"


# idle workers


def test_idle_workers_end_and_others_take_further_tasks(keeping: Make, tmp_path: Path) -> None:
    gates = [tmp_path / name for name in "ab"]
    place = tmp_path / "finalized"
    place.mkdir()
    with keeping(idle_timeout=0.05, finalizer=Leave(place)) as pool:
        for _ in range(2):
            waiting = [pool.submit(wait_for, str(gate)) for gate in gates]
            until(lambda: pool.statistics().running == 2)
            for gate in gates:
                gate.touch()
            assert [one.result() for one in waiting] == [str(gate) for gate in gates]
            until(lambda: pool.statistics().started == 0)
            for gate in gates:
                gate.unlink()
        assert pool.statistics().restarts == 0
        until(lambda: len(list(place.iterdir())) == 4)
        assert list(pool.map(square, range(3))) == [0, 1, 4]


def test_worker_whose_task_takes_longer_than_the_idle_timeout_is_kept(keeping: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with keeping(max_workers=2, idle_timeout=0.02) as pool:
        slow = pool.submit(wait_for, str(gate))
        until(lambda: pool.statistics().running)
        assert pool.submit(square, 2).result() == 4
        until(lambda: pool.statistics().started == 1)  # the other has been idle for as long as that
        numbers = pool.statistics()
        gate.touch()
        assert slow.result() == str(gate)
        assert (numbers.started, numbers.running, numbers.restarts) == (1, 1, 0)


@pytest.mark.long
def test_no_task_is_lost_between_a_worker_that_leaves_and_the_next(keeping: Make) -> None:
    with keeping(idle_timeout=0.002) as pool:
        for n in range(20):
            assert pool.submit(square, n).result(40) == n * n
            time.sleep(0.002)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_idle_timeout_that_is_no_time_is_refused(seconds: float, keeping: Make) -> None:
    with pytest.raises(errors.UsageError, match="idle_timeout must be a positive number of seconds"):
        keeping(idle_timeout=seconds)


def test_ending_of_idle_workers_serves_tasks_of_event_loops(keeping: Make) -> None:
    async def main() -> list[int]:
        async with keeping(idle_timeout=0.01) as pool:
            numbers = [await pool.run(square, 2)]
            until(lambda: pool.statistics().started == 0)
            return [*numbers, await pool.run(square, 3)]

    assert run(main()) == [4, 9]


# log records


class Odd:
    def __repr__(self) -> str:
        return "an odd argument"

    def __reduce__(self) -> Any:
        raise TypeError("it cannot be pickled")


def log(name: str, level: int, message: str) -> None:
    logging.getLogger(name).log(level, message)


def log_everything() -> None:
    logger = logging.getLogger("tests.workers")
    logger.debug("not asked for")
    logger.info("about %r", Odd(), extra={"task": 7})
    try:
        raises()
    except ValueError:
        logger.exception("it failed")


def log_in_a_thread(number: int) -> None:
    thread = threading.Thread(target=log_many, args=(number,))
    thread.start()
    log_many(number)
    thread.join()


def log_many(number: int) -> None:
    for n in range(number):
        logging.getLogger("tests.workers").info("line %d %s", n, "x" * 300)


class LogsAtItsEnd:
    """Logs when it is freed, wherever that is."""

    def __reduce__(self) -> Any:
        return LogsAtItsEnd, ()

    def __del__(self) -> None:
        logging.getLogger("tests.workers").info("freed")


def make_ones_that_log(_: int) -> list[LogsAtItsEnd]:
    return [LogsAtItsEnd() for _ in range(50)]


def log_and_die() -> None:
    logging.getLogger("tests.workers").info("the last words")
    os.kill(os.getpid(), signal.SIGKILL)


def log_in_a_fork() -> int:
    pid = os.fork()
    if pid == 0:
        for n in range(100):
            logging.getLogger("tests.workers").info("of a forked child %d", n)
        os._exit(0)
    log_many(100)
    return os.waitpid(pid, 0)[1]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "tests.workers")
    return caplog


@pytest.fixture(params=START_METHODS)
def processes(request: pytest.FixtureRequest) -> Iterator[Make]:
    def make(**given: Any) -> Pool:
        return ProcessPool(given.pop("max_workers", 2), request.param, forward_logging=True, **given)

    yield from making(make)


def test_records_are_handled_before_the_result(processes: Make, told: pytest.LogCaptureFixture) -> None:
    processes(max_workers=1).submit(log_everything).result()
    first, second = told.records
    assert first.getMessage() == "about an odd argument"
    assert (first.name, first.levelno, first.task) == ("tests.workers", logging.INFO, 7)  # type: ignore[attr-defined]
    assert first.process != os.getpid()
    assert "it failed" in second.getMessage()
    assert "the finalizer refuses" in second.getMessage(), "with its traceback"


@pytest.mark.parametrize("kind", SENDING)
def test_records_of_all_workers_are_handled_when_the_pool_has_ended(
    kind: str, told: pytest.LogCaptureFixture
) -> None:
    with KINDS[kind](forward_logging=True, finalizer=raises) as pool:
        list(pool.map(log, ["tests.workers"] * 20, [logging.INFO] * 20, map(str, range(20)), chunksize=1))
        list(pool.map(log, ["tests.workers"] * 3, [logging.DEBUG] * 3, ["no"] * 3))
        workers = pool.statistics().started
    said = [record.getMessage() for record in told.records if record.name == "tests.workers"]
    assert sorted(map(int, said)) == list(range(20))
    assert told.text.count("exception calling a worker's finalizer") == workers


def test_levels_are_those_that_the_program_has(told: pytest.LogCaptureFixture) -> None:
    quiet, loud = (logging.getLogger(f"tests.workers.{name}") for name in ("quiet", "loud"))
    quiet.setLevel(logging.ERROR)
    try:
        with ProcessPool(1, forward_logging=True) as pool:
            for name in (quiet.name, loud.name):
                for level in (logging.DEBUG, logging.INFO, logging.ERROR):
                    pool.submit(log, name, level, "said").result()
            loud.setLevel(logging.CRITICAL)
            pool.submit(log, loud.name, logging.ERROR, "said").result()
    finally:
        quiet.setLevel(logging.NOTSET)
        loud.setLevel(logging.NOTSET)
    said = [(record.name.rpartition(".")[2], record.levelname) for record in told.records]
    assert said == [("quiet", "ERROR"), ("loud", "INFO"), ("loud", "ERROR")]


def test_records_of_threads_and_forked_children_do_not_mix_with_messages(
    processes: Make, told: pytest.LogCaptureFixture
) -> None:
    pool = processes(max_workers=1)
    assert pool.submit(identity, b"x" * 200_000).result() == b"x" * 200_000
    pool.submit(log_in_a_thread, 200).result()
    assert len(told.records) == 400
    assert pool.statistics().lost == 0
    told.clear()
    assert pool.submit(log_in_a_fork).result() == 0
    assert pool.submit(square, 2).result() == 4
    assert len(told.records) == 100
    assert pool.statistics().lost == 0


def test_records_of_objects_that_are_freed_while_a_message_is_sent(told: pytest.LogCaptureFixture) -> None:
    with ProcessPool(1, forward_logging=True) as pool:
        for n in range(10):
            assert len(pool.submit(make_ones_that_log, n).result()) == 50
        assert pool.statistics().lost == 0
    assert len([record for record in told.records if record.process != os.getpid()]) >= 500


def test_last_words_of_a_worker_that_dies_are_handled(
    processes: Make, told: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(errors.WorkerDiedError):
        processes(max_workers=1).submit(log_and_die).result()
    assert [record.getMessage() for record in told.records] == ["the last words"]


def test_handler_that_raises_costs_no_worker(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise SystemExit(record.getMessage())

    logger = logging.getLogger("tests.refusing")
    logger.addFilter(refuse)
    try:
        with ProcessPool(1, forward_logging=True) as pool:
            pool.submit(log, "tests.refusing", logging.ERROR, "as it must").result()
            assert pool.submit(square, 2).result() == 4
            assert pool.statistics().lost == 0
    finally:
        logger.removeFilter(refuse)
    assert "SystemExit: as it must" in capsys.readouterr().err


def test_worker_that_logs_while_it_is_idle_is_still_idle() -> None:
    with ProcessPool(1, forward_logging=True, idle_timeout=0.2) as pool:
        pool.submit(log_for_ever).result()
        until(lambda: pool.statistics().started == 0)


def log_for_ever() -> None:
    def body() -> None:
        while True:
            logging.getLogger("tests.workers").warning("still here")
            time.sleep(0.01)

    threading.Thread(target=body, daemon=True).start()


def test_without_forwarding_records_stay_where_they_are(told: pytest.LogCaptureFixture) -> None:
    with ProcessPool(1) as pool:
        pool.submit(remember, 1).result()
        pool.submit(log, "tests.workers", logging.INFO, "here").result()
    assert not told.records

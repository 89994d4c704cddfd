"""What giving work to a pool costs: fairlead's pools, the standard library's and others'.

    fairlead lab run benchmarks/own_pools.py --quick --budget 2m
    fairlead lab run benchmarks/own_pools.py:map --set method=spawn
    fairlead lab run benchmarks/own_pools.py --variant InterpreterPool --variant InterpreterPoolExecutor

loky, mpire and pebble come with pip install --group bench.
"""

EXPERIMENT = {
    "id": "own.pools",
    "size_name": "calls",
    "smallest": 1,
    "growth": False,
    "ways": "pool",
    "value": "each_s",
    "metrics": [
        {"name": "each_s", "title": "each", "unit": "s"},
        {"name": "own_s", "title": "own CPU", "unit": "s"},
        {"name": "cpu_s", "title": "workers' too", "unit": "s"},
        {"name": "first_s", "title": "the first", "unit": "s"},
        {"name": "copy_s", "title": "a copy", "unit": "s"},
        {"name": "alone_s", "title": "without pool", "unit": "s"},
        {"name": "worker_kib", "title": "a worker", "unit": "KiB"},
        {"name": "rest_kib", "title": "at rest", "unit": "KiB"},
        {"name": "most_kib", "title": "at most", "unit": "KiB"},
    ],
    "explanation": (
        "The pool has two workers, which are up before the time begins, unless the start is asked for. "
        "The time is wall time for each call; the CPU time is that of this process, and that of its "
        "workers too."
    ),
    "parameters": {
        "pool": {
            "default": "ProcessPool",
            "choices": [
                "ProcessPoolExecutor", "multiprocessing.Pool", "loky", "mpire", "pebble", "ProcessPool",
                "ThreadPoolExecutor", "ThreadPool", "InterpreterPoolExecutor", "InterpreterPool",
            ],
            "help": "whose pool",
        },
        "method": {
            "default": "forkserver",
            "choices": ["forkserver", "spawn", "fork"],
            "help": "how processes are started; loky has a way of its own",
        },
    },
    "claims": [
        {"topic": "{case}, processes", "of": {"pool": "ProcessPoolExecutor"},
         "over": {"pool": "ProcessPool"}},
        {"topic": "{case}, mp.Pool", "of": {"pool": "multiprocessing.Pool"}, "over": {"pool": "ProcessPool"},
         "main": False},
        {"topic": "{case}, loky", "of": {"pool": "loky"}, "over": {"pool": "ProcessPool"}, "main": False},
        {"topic": "{case}, mpire", "of": {"pool": "mpire"}, "over": {"pool": "ProcessPool"}, "main": False},
        {"topic": "{case}, pebble", "of": {"pool": "pebble"}, "over": {"pool": "ProcessPool"}, "main": False},
        {"topic": "{case}, threads", "of": {"pool": "ThreadPoolExecutor"}, "over": {"pool": "ThreadPool"},
         "main": False},
        {"topic": "{case}, interpreters", "of": {"pool": "InterpreterPoolExecutor"},
         "over": {"pool": "InterpreterPool"}, "main": False},
    ],
    # in this order a budget that is too small for all settles them
    "cases": {
        "call": {
            "title": "A call",
            "question": "What does a call cost whose result is waited for before the next?",
        },
        "submit": {
            "title": "A submission",
            "question": "What does submit() cost, of calls that are all submitted at once?",
        },
        "echo": {
            "title": "0.5 MB in and out",
            "question": "What does a call cost that is given 0.5 MB of bytes, and returns them?",
            "sizes": {"quick": [50], "standard": [100], "full": [100]},
        },
        "map": {
            "title": "A map",
            "question": "What does an item of map() cost, in the pool's own chunks?",
            "sizes": {"quick": [2000], "standard": [10000], "full": [10000]},
        },
        "million": {
            "title": "A long stream",
            "ways": ["multiprocessing.Pool", "mpire", "ProcessPool", "ThreadPool", "InterpreterPool"],
            "question": "What does an integer's way through stream() or imap() cost, in time and memory?",
            "sizes": {"quick": [200000], "standard": [1000000], "full": [1000000]},
            "claims": [
                {"topic": "memory of a stream", "metric": "most_kib",
                 "of": {"pool": "ProcessPool"}, "over_metric": "rest_kib",
                 "says": "{n} integers on their way through stream() take memory",
                 "otherwise": "{n} integers on their way through stream() take no memory"},
            ],
        },
        "return": {
            "title": "An array of 50 MB in and out",
            "question": "What does a call cost that is given an array of 50 MB, and returns it?",
            "sizes": {"quick": [1], "standard": [3], "full": [9]},
        },
        "stream": {
            "title": "Many submissions",
            "question": "What does each of the calls cost that are submitted at once, until all have ended?",
        },
        "chunks": {
            "title": "A map in chunks",
            "question": "What does an item of map() cost, in chunks of 100?",
            "sizes": {"quick": [10000], "standard": [100000], "full": [100000]},
        },
        "array": {
            "title": "An array of 50 MB in",
            "question": "What does a call cost that is given an array of 50 MB?",
            "sizes": {"quick": [2], "standard": [5], "full": [9]},
        },
        "start": {
            "title": "The start",
            "question": "How long does a pool take from its constructor to its first result?",
            "sizes": {"quick": [1], "standard": [1], "full": [1]},
            "claims": [
                {"topic": "memory, interpreters", "metric": "worker_kib", "main": False,
                 "of": {"pool": "InterpreterPoolExecutor"}, "over": {"pool": "InterpreterPool"},
                 "says": "an idle worker of an InterpreterPool takes less memory than an executor's",
                 "otherwise": "an idle worker of an InterpreterPool takes no less memory than an executor's"},
            ],
        },
        "workers": {
            "title": "The start of eight",
            "question": "How long does it take until each worker has had a call of 0.1 s, without that?",
            "sizes": {"quick": [8], "standard": [8], "full": [8]},
        },
        "compute": {
            "title": "Two computations",
            "question": "How much sooner than one after the other are two fib(28) done in two workers?",
            "sizes": {"quick": [2], "standard": [2], "full": [2]},
            "claims": [
                {"topic": "speed-up, interp.", "metric": "alone_s",
                 "of": {"pool": "InterpreterPool"}, "over_metric": "each_s", "more_than": 1.5, "main": False,
                 "says": "two interpreters compute faster than one",
                 "otherwise": "two interpreters compute no faster than one"},
            ],
        },
        "bytes": {
            "title": "0.5 MB in",
            "question": "What does a call cost that is given 0.5 MB of bytes, with eight under way?",
        },
        "view": {
            "title": "A view of 0.5 MB in",
            "ways": ["ThreadPoolExecutor", "ThreadPool", "InterpreterPoolExecutor", "InterpreterPool"],
            "question": "What does a call cost that is given a memoryview of 0.5 MB, with eight under way?",
        },
    },
    "sizes": {"quick": [200], "standard": [1000], "full": [5000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import os  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections import deque  # noqa: E402
from concurrent import futures  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from importlib import import_module  # noqa: E402
from multiprocessing import get_context  # noqa: E402

import probe  # noqa: E402
from subjects import calls  # noqa: E402

if __name__ == "__main__":  # workers, which import this file, need none of it
    try:
        from fairlead import machine, pools
        from fairlead.advice.child import usage
        from fairlead.errors import UnsupportedInterpreterError
        from fairlead.lab.isolation import subprocess_runner
    except ImportError:
        pools = None

WORKERS = 2
CHUNK = 100
UNDER_WAY = 8
NAP_S = 0.1
LOOK_S = 0.02
WARM_UP = 50
HALF_A_MEGABYTE = 500_000
DOUBLES = 50_000_000 // 8


class Classic:
    """multiprocessing.Pool with an executor's methods, and whatever else is made with it."""

    def __init__(self, pool):
        self.pool = pool

    def __enter__(self):
        self.pool.__enter__()
        return self

    def __exit__(self, *why):
        self.pool.__exit__(*why)

    def submit(self, function, *args):
        result = self.pool.apply_async(function, args)
        result.result = result.get
        return result

    def map(self, function, items, chunksize=None):
        return self.pool.map(function, items, chunksize)

    def stream(self, function, items):
        return self.pool.imap(function, items, CHUNK)


class Mpire(Classic):
    """For apply or for map: a map after calls hands the calls' arguments on."""

    def map(self, function, items, chunksize=None):
        return self.pool.map(function, items, chunk_size=chunksize)

    def stream(self, function, items):
        return self.pool.imap(function, items, chunk_size=CHUNK)


class Pebble(Classic):
    def submit(self, function, *args):
        return self.pool.schedule(function, args=args)

    def map(self, function, items, chunksize=1):
        return self.pool.map(function, items, chunksize=chunksize).result()


POOLS = {
    "ProcessPoolExecutor": lambda workers, method: futures.ProcessPoolExecutor(workers, get_context(method)),
    "multiprocessing.Pool": lambda workers, method: Classic(get_context(method).Pool(workers)),
    "loky": lambda workers, _: import_module("loky").ProcessPoolExecutor(workers),
    "mpire": lambda workers, method: Mpire(
        import_module("mpire").WorkerPool(workers, start_method=method, keep_alive=True)
    ),
    "pebble": lambda workers, method: Pebble(
        import_module("pebble").ProcessPool(workers, context=get_context(method))
    ),
    "ProcessPool": lambda workers, method: pools.ProcessPool(workers, mp_context=method),
    "ThreadPoolExecutor": lambda workers, _: futures.ThreadPoolExecutor(workers),
    "ThreadPool": lambda workers, _: pools.ThreadPool(workers),
    "InterpreterPoolExecutor": lambda workers, _: futures.InterpreterPoolExecutor(workers),
    "InterpreterPool": lambda workers, _: pools.InterpreterPool(workers),
}


def made(params, workers=WORKERS):
    try:
        return POOLS[params["pool"]](workers, params["method"])
    except (ImportError, AttributeError, UnsupportedInterpreterError) as error:
        raise probe.Skipped(str(error)) from None


def one_by_one(pool, n, function, value):
    for _ in range(n):
        pool.submit(function, value).result()


def submitted(pool, n):
    return [pool.submit(calls.identity, 1) for _ in range(n)]


def mapped(pool, n, **chunks):
    if sum(1 for _ in pool.map(calls.identity, range(n), **chunks)) != n:
        raise probe.Failed("the map lost items")


def under_way(pool, n, data):
    waiting = deque()
    for _ in range(n):
        if len(waiting) == UNDER_WAY:
            waiting.popleft().result()
        waiting.append(pool.submit(calls.length, data))
    all_of(waiting)


def all_of(futures):
    for future in futures:
        future.result()


def arrays(pool, n, function):
    """Of the first two, for which memory must be found, the first is told; of the others the mean is."""
    array = doubles()
    first = took(lambda: pool.submit(function, array).result())
    pool.submit(function, array).result()
    room = array.copy()
    copy = took(lambda: room.__setitem__(slice(None), array))
    return measured(n, lambda: one_by_one(pool, n, function, array), first_s=first, copy_s=copy)


def doubles():
    try:
        import numpy
    except ImportError:
        raise probe.Skipped("needs numpy in this interpreter") from None
    return numpy.ones(DOUBLES)


def streamed(pool, n):
    deque(pool.stream(calls.identity, range(10_000)), maxlen=0)  # the workers have what calls need
    memory = {"rest_kib": memory_kib()}
    over = threading.Event()

    def look():
        while not over.wait(LOOK_S):
            memory["most_kib"] = max(memory.get("most_kib", 0.0), memory_kib())

    looking = threading.Thread(target=look)
    looking.start()
    answer = measured(n, lambda: deque(pool.stream(calls.identity, range(n)), maxlen=0))
    over.set()
    looking.join()
    answer["details"]["metrics"] |= memory
    return answer


def computed(pool, n):
    alone = took(lambda: [calls.fib(28) for _ in range(n)])
    return measured(n, lambda: all_of([pool.submit(calls.fib, 28) for _ in range(n)]), alone_s=alone / n)


def took(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def simply(body):
    return lambda pool, n: measured(n, lambda: body(pool, n))


CASES = {
    "call": simply(lambda pool, n: one_by_one(pool, n, calls.identity, 1)),
    "submit": simply(submitted),
    "stream": simply(lambda pool, n: all_of(submitted(pool, n))),
    "map": simply(mapped),
    "chunks": simply(lambda pool, n: mapped(pool, n, chunksize=CHUNK)),
    "echo": simply(lambda pool, n: one_by_one(pool, n, calls.identity, bytes(HALF_A_MEGABYTE))),
    "bytes": simply(lambda pool, n: under_way(pool, n, bytes(HALF_A_MEGABYTE))),
    "view": simply(lambda pool, n: under_way(pool, n, memoryview(bytes(HALF_A_MEGABYTE)))),
    "array": lambda pool, n: arrays(pool, n, calls.shape),
    "return": lambda pool, n: arrays(pool, n, calls.identity),
    "million": streamed,
    "compute": computed,
}


def begun(params, n):
    """A pool's start: until its first result, or until each of several workers has had a call."""
    before = memory_kib()
    pool = None

    def body():
        nonlocal pool
        pool = stack.enter_context(made(params, n if n > 1 else WORKERS))
        all_of([pool.submit(time.sleep, NAP_S * (n > 1)) for _ in range(n)])

    with ExitStack() as stack:
        answer = measured(1, body, besides_s=NAP_S * (n > 1))
        if n == 1:
            all_of(submitted(pool, WARM_UP))
            answer["details"]["metrics"]["worker_kib"] = (memory_kib() - before) / WORKERS
    return answer


def measured(n, body, besides_s=0.0, **further):
    """What a probe prints of so many calls. Futures that are left are waited for when the time has ended."""
    region = probe.Region()
    used = cpu_s()
    region.begin()
    left = body()
    region.end()
    used = cpu_s() - used
    all_of(left or ())
    answer = region.result({})
    own_s = answer["user_s"] + answer["sys_s"]
    each = {"each_s": answer["wall_s"] - besides_s, "own_s": own_s, "cpu_s": used}
    answer["details"]["metrics"] = {**{name: value / n for name, value in each.items()}, **further}
    return answer


def cpu_s():
    """Of this process and all that live and come from it."""
    return usage.cpu_s(machine.family(os.getpid()))


def memory_kib():
    """Of the same, shared pages counted once."""
    return subprocess_runner.proportional_kib(machine.family(os.getpid())) or 0.0


def measure(params):
    case, n, pool = params["case"], params["n"], params["pool"]
    if pools is None:
        raise probe.no_fairlead()
    if pool == "loky" and params["method"] != "forkserver":
        raise probe.Skipped("loky starts processes in a way of its own")
    if case in ("array", "return") and pool.startswith("Interpreter"):
        raise probe.Skipped("numpy works in one interpreter of a process alone")
    if case in ("start", "workers"):
        return begun(params, n)
    with made(params) as own:
        if pool == "mpire" and case in ("map", "chunks", "million"):
            mapped(own, WARM_UP)
        else:
            all_of(submitted(own, WARM_UP))
        return CASES[case](own, n)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

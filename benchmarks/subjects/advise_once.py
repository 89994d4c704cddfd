"""One program of ``advise_truth.py`` as it would be written: advise_once.py FUNCTION ITEMS KIND WORKERS.

Prints its seconds, start and end of the pool counted, and a mark of its results.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import sys
import time
from typing import Any, cast

import advise_programs

from fairlead import pools
from fairlead.record.advice import NAMES, Kind


class Caught:
    """As a program does whose calls may fail."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, item: Any) -> Any:
        try:
            return self.function(item)
        except TimeoutError as error:
            return str(error)


def once(function: Any, items: list[Any], kind: Kind, workers: int) -> tuple[float, list[Any]]:
    pool = getattr(pools, NAMES[kind], None)
    begin = time.perf_counter()
    if pool is not None:
        with pool(workers) as made:
            results = list(made.map(function, items))
    elif inspect.iscoroutinefunction(function):

        async def in_turn() -> list[Any]:
            return [await function(item) for item in items]

        results = asyncio.run(in_turn())
    else:
        results = [function(item) for item in items]
    return time.perf_counter() - begin, results


if __name__ == "__main__":
    name, expression, kind, workers = sys.argv[1:]
    function = getattr(advise_programs, name)
    seconds, results = once(
        Caught(function) if name == "flaky" else function,
        list(eval(expression, vars(advise_programs))),
        cast(Kind, kind),
        int(workers),
    )
    mark = hashlib.sha256(repr([str(value)[:100] for value in results]).encode()).hexdigest()
    print(json.dumps([seconds, mark]))

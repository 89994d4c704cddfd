"""The garbage collector stops the threads."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

from plant import late, main, passing, planted, start

paused = 0.0
_began = 0.0


def _clock(phase: str, _info: object) -> None:
    global paused, _began
    if phase == "start":
        _began = time.perf_counter()
    else:
        paused += time.perf_counter() - _began


gc.callbacks.append(_clock)


class Node:
    me: object = None


def circle() -> Node:
    node = Node()
    node.me = node  # here
    return node


def graph(n: int) -> list[list[object]]:
    """That many objects which the collector has to walk."""
    gc.disable()
    try:
        return [[i, {"i": i}] for i in range(n)]
    finally:
        gc.enable()


def beside(work: Callable[[], object]) -> float:
    start(work)
    late(0.003)
    return paused


@planted("collection")
def makes_circles() -> float:
    kept = graph(400_000)

    def handles() -> None:
        while passing():
            nodes = [circle() for _ in range(300)]  # here
            time.sleep(0.0005)
            del nodes
        assert kept

    gc.set_threshold(700, 5, 3)
    return beside(handles)


@planted("collection")
def collects_after_each_request() -> float:
    kept = graph(300_000)

    def handles() -> None:
        while passing():
            time.sleep(0.01)
            gc.collect()  # here
        assert kept

    return beside(handles)


@planted("collection")
def collects_now_and_then() -> float:
    kept = graph(1_200_000)

    def housekeeping() -> None:
        while passing():
            time.sleep(0.6)
            gc.collect()  # here
        assert kept

    return beside(housekeeping)


@planted("collection")
def builds_a_tree() -> float:
    def builds() -> None:
        while passing():
            tree: list[object] = []
            for i in range(300_000):
                tree.append([i, [tree]])  # here
                if i % 5_000 == 0:
                    time.sleep(0)

    gc.set_threshold(700, 3, 2)
    return beside(builds)


@planted("collection", "callback")
def in_an_event_loop() -> float:
    kept = graph(900_000)

    async def serve() -> float:
        while passing():
            await asyncio.sleep(0.1)
            gc.collect()  # here
        return paused

    lost = asyncio.run(serve())
    assert kept
    return lost


if __name__ == "__main__":
    main()

"""What comes out of pools, as a typed program uses it: a test runs it, make lint checks it."""

from __future__ import annotations

from fairlead.pools import AsyncPool, ThreadPool


async def length(text: str) -> int:
    return len(text)


def plain(text: str) -> int:
    return len(text)


async def main() -> None:
    with AsyncPool(1) as loop, ThreadPool(1) as pool:
        number: int = loop.submit(length, "a").result()
        number = await loop.run(length, "a")
        number = loop.submit(plain, "a").result()
        number = await pool.submit(plain, "a")
        numbers: list[int] = pool.map(plain, ["a"]).results()
        for number in pool.stream(plain, ["a"]):
            assert numbers == [number]
        async for number in pool.stream(plain, ["a"]):
            assert numbers == [number]
        # mypy says so if one of these is no error any more
        pool.stream(plain, [1])  # type: ignore[arg-type]
        pool.submit(plain, 1)  # type: ignore[arg-type]

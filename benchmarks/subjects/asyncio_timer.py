"""How late an asyncio loop calls what is due every 2 ms, beside CPU-bound threads. Settings: seconds."""

from __future__ import annotations

import asyncio
import sys

import subject

PERIOD = 0.002


async def main() -> None:
    loop = asyncio.get_running_loop()
    late: list[float] = []
    done = loop.create_future()
    end = loop.time() + subject.SETTINGS["seconds"]

    def called(due: float) -> None:
        now = loop.time()
        late.append((now - due) * 1e6)
        if now >= end:
            done.set_result(None)
        else:
            loop.call_at(now + PERIOD, called, now + PERIOD)

    subject.say(**subject.spinners())
    called(loop.time())
    await done
    late.sort()
    at = {"p50 us": 0.5, "p99 us": 0.99, "max us": 1.0}
    subject.say(**{name: late[min(len(late) - 1, int(len(late) * part))] for name, part in at.items()})


subject.set_switch_interval()
asyncio.run(main())
sys.stdin.read()  # what its threads have computed is read from outside, while it lives

"""What it costs here to give up the processor, and whether it gives up anything.

Run under the policy in question. For time.sleep(0) and sched_yield it prints the median microseconds of a
call, alone and beside another process on the same core that always wants it, and how often per call the
kernel really switched to that one. time.sleep(0) is a short sleep, or nothing at all, depending on the
interpreter and the policy.
"""

from __future__ import absolute_import, division, print_function

import os
import time

import probe

EXPERIMENT = {"parameters": {}, "timeout_s": 10}

BATCHES = 30
CALLS = 10
"""Calls between two looks at the clock, whose steps are longer than a call on Python 2.7."""


def measure(_params):
    result = dict(probe.seat(), calls=BATCHES * CALLS)
    pinned = pin()
    for name in ("sleep0", "yield"):
        act = probe.work(name)
        alone_us, _ = sample(act)
        beside_us = switches = None
        if pinned:
            with probe.Family(5) as family:
                family.fork(rival, 0)
                time.sleep(0.01)
                beside_us, switches = sample(act)
        result[name] = {
            "alone_us": round(alone_us, 3),
            "beside_us": None if beside_us is None else round(beside_us, 3),
            "switches_per_call": switches,
            # half of the calls at least: the kernel may keep a thread on for a while all the same
            "yields": None if switches is None else switches >= 0.5,
        }
    return result


def pin():
    """Stay on one core from now on; whether that is possible here."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    return True


def rival(_index):
    """Want the core, and pass it on after every look, so that even a real-time rival cannot keep it."""
    give_way = probe.sched_yield()
    while True:
        give_way()


def sample(act):
    """The time of a call in microseconds, as the median of the batches, and the context switches per call."""
    times = []
    before = probe.Usage.mine()
    for _ in range(BATCHES):
        begin = probe.clock()
        for _ in range(CALLS):
            act()
        times.append((probe.clock() - begin) / CALLS)
    _, _, voluntary, involuntary = (probe.Usage.mine() - before).values
    return sorted(times)[BATCHES // 2] * 1e6, (voluntary + involuntary) / (BATCHES * CALLS)


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure, sized=False)

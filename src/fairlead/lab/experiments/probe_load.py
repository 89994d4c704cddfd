"""What servers under load share: percentiles, and something that computes beside them."""

import math


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(math.ceil(share * len(ordered))) - 1)]


def compute(over):
    """Steps of pure Python until it is over; how many."""
    steps = 0
    while over.none_is_set():
        spin(1000)
        steps += 1000
    return steps


def spin(steps):
    for _ in range(steps):
        pass

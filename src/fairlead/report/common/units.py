"""Numbers as people read them: three digits, and a unit that fits."""

from __future__ import annotations

import math
import re

from fairlead.record.summary import Unit

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:ns|us|ms|s|events|cores)\b|%)|(?<=±) (?=\d)")

NOTHING = "-"
"""What stands where nothing was measured."""


ROUGH, UNKNOWN = 2.0, 100.0
"""An interval of a ratio whose upper end is more than so many times the lower one: it leaves the size of the
ratio open, or says nothing of it."""


def digits(value: float) -> str:
    """``value`` with two or three significant digits and no exponent: "0.047", "4.07", "40.7", "4070"."""
    if 0 < abs(value) < 0.0995:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    for limit, decimals in ((9.995, 2), (99.95, 1)):
        if abs(value) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def _unit(seconds: float) -> tuple[float, str]:
    # 999.6 us would be rounded to "1000 us": such a value belongs to the next unit
    return next((u for u in _TIME_UNITS if abs(seconds) >= u[0] * 0.9995), _TIME_UNITS[-1])


def seconds(value: float | None) -> str:
    """A time in the largest unit that leaves a digit before the point: "40.7 ms"; "-" for None."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0 s"
    scale, name = _unit(value)
    return f"{digits(value / scale)} {name}"


def bound(text: str) -> str:
    """The text, in which no line ends between a number and its unit."""
    return _NUMBER_AND_UNIT.sub("\u00a0", text)


def wider(low: float, high: float, times: float) -> bool:
    """Whether the interval's upper end is more than so many times the lower one."""
    return high > low * times


def interval(low: float | None, high: float | None) -> str:
    """ "[0.047, 41.2]" of a ratio, "[unknown]" where it is too wide to say how large that is; empty where an
    end is missing."""
    if low is None or high is None:
        return ""
    return "[unknown]" if wider(low, high, UNKNOWN) else f"[{digits(low)}, {digits(high)}]"


def tick(value: float, like: float | None = None) -> str:
    """A round number for an axis, in the unit of ``like`` (else its own), without trailing zeros: "50 ms"."""
    scale, name = _unit(like or value)
    return f"{round(value / scale, 6):g} {name}" if value else "0"


def count(value: float | None) -> str:
    """A whole number with thousands apart: "12,403"; "-" for None."""
    return NOTHING if value is None else f"{value:,.0f}"


def factor(value: float | None) -> str:
    """ "x85.8"; "-" for None."""
    return NOTHING if value is None else f"x{digits(value)}"


def percent(share: float | None) -> str:
    """A share of 0..1 as "12 %"; "-" for None."""
    return NOTHING if share is None else f"{share * 100:.0f} %"


def metric(value: float | None, unit: Unit) -> str:
    """A figure of an experiment in its unit: "8.1 us", "x1.8", "20,400/s"; "-" for None."""
    match unit:
        case "s":
            return seconds(value)
        case "KiB":
            return memory(value)
        case "share":
            return percent(value)
        case "ratio":
            return factor(value)
        case "per s":
            return NOTHING if value is None else rate(value)
        case "count":
            return amount(value)


def amount(value: float | None) -> str:
    """A number of things, whole where there are many: "1.5", "12,403"; "-" for None."""
    if value is None or abs(value) >= 100 or value == int(value):
        return count(value)
    return digits(value)


def rate(value: float) -> str:
    """How many a second: "2,500/s", "25.1 k/s", "49.1 M/s"."""
    for scale, name in ((1e6, "M/s"), (1e3, "k/s")):
        if value >= 10 * scale or (scale == 1e6 and value >= 999_500):
            return f"{digits(value / scale)} {name}"
    return f"{amount(value)}/s"


def spread(low: float | None, high: float | None, middle: float | None) -> str:
    """ "± 26 %": how far the interval reaches to the farther side; "± unknown" where that says nothing, empty
    where an end is missing."""
    if low is None or high is None or not middle:
        return ""
    if wider(low, high, UNKNOWN):
        return "± unknown"
    reach = max(high - middle, middle - low) / middle * 100
    return f"± {reach:.0f} %" if reach >= 0.95 or not reach else f"± {reach:.1g} %"


def runs(count: int) -> str:
    """ "6 runs"."""
    return "1 run" if count == 1 else f"{count} runs"


def memory(kib: float | None) -> str:
    """KiB as "12.4 MiB"; "-" for None."""
    if kib is None:
        return NOTHING
    return f"{digits(kib / 1024)} MiB" if kib >= 1024 else f"{kib:.0f} KiB"

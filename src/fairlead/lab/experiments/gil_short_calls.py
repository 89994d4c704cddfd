"""Threads make short C calls that let go of the GIL, beside one that computes."""

EXPERIMENT = {
    "id": "gil.short-calls",
    "title": "A computing thread beside short C calls",
    "question": "How much does a thread compute beside n threads that make short C calls?",
    "explanation": (
        "hashlib lets go of the GIL while it hashes 16 kB, which takes some 10 to 40 us, and so do many "
        "other C calls: zlib, sqlite3, small reads and writes. With the interpreter's own scheduling a "
        "computing thread then takes the GIL, and a call that returns while it computes waits a switch "
        "interval. A scheduler that favours the calls takes that time from the computing thread."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "value": "million_s",
    "metrics": [
        {"name": "million_s", "title": "1e6 steps", "unit": "s"},
        {"name": "steps_per_s", "title": "steps", "unit": "per s"},
        {"name": "calls_per_s", "title": "calls", "unit": "per s"},
    ],
    "claims": [
        {
            "topic": "computing, scheduled",
            "of": {"scheduler": "interactive", "interval_ms": 5, "n": "least"},
            "over": {"scheduler": "off", "interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "beside short C calls, a thread computes more slowly with the GIL scheduled",
            "otherwise": "beside short C calls, a thread computes no more slowly with the GIL scheduled",
        },
    ],
    "parameters": {
        "seconds": {
            "default": 1,
            "quick": 0.2,
            "choices": [0.2, 1, 4],
            "help": "how long the threads go on",
        },
        "interval_ms": {
            "default": 5,
            "choices": [0.1, 0.5, 5],
            "help": "the switch interval in milliseconds, sys.setswitchinterval",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "stock"},
        {"label": "scheduled", "params": {"scheduler": "interactive"}},
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}, "modes": ["standard", "full"]},
    ],
    "sizes": {"quick": [1], "standard": [1], "full": [1, 4]},
    "timeout_s": 60,
    "pythons": ">=3.2",  # before, the main thread may get the GIL too late to end it
}

import hashlib  # noqa: E402
import time  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402
import probe_load  # noqa: E402

BLOCK = b"\0" * 16384


def measure(params):
    probe.switch(params["interval_ms"])
    over = probe.Flags(1)
    steps, calls = [], []
    probe_fairlead.schedule(params["scheduler"])
    region = probe.Region()
    region.begin()
    threads = probe.start(params["n"], lambda index: calls.append(call(over)))
    threads += probe.start(1, lambda index: steps.append(probe_load.compute(over)))
    time.sleep(params["seconds"])
    over.add(0)
    for thread in threads:
        thread.join()
    region.end()
    if not sum(steps):
        raise probe.Failed("the computing thread did not get the GIL")
    answer = region.result({"called": len(calls)})
    answer["details"]["metrics"] = {
        "million_s": answer["wall_s"] * 1e6 / sum(steps),
        "steps_per_s": sum(steps) / answer["wall_s"],
        "calls_per_s": sum(calls) / answer["wall_s"],
    }
    return answer


def call(over):
    """Calls until it is over; how many."""
    calls = 0
    while over.none_is_set():
        hashlib.sha256(BLOCK).digest()
        calls += 1
    return calls


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

"""The same counting twice: one after the other, then in two threads at once."""

EXPERIMENT = {
    "id": "gil.battle",
    "title": "The battle for the GIL",
    "question": "How long do two threads take for what one does twice, one after the other?",
    "explanation": (
        "Both compute, and one at a time may. Before Python 3.2 the holder let go of the GIL every 100 "
        "instructions and asked for it again at once; on two cores the woken thread mostly came too late, "
        "was put back to sleep, and millions of vain wake-ups in the kernel made two threads nearly twice "
        "as slow as one after the other. On one core the holder kept the core as well, and little of it "
        "was lost. Since then the waiting thread asks once in a switch interval, and the holder waits "
        "until it has been taken: the battle is over, and what remains is that two threads are no faster "
        "than one. System calls are those of three processes of their own, each from its start to its end: "
        "one that does nothing else, one that counts twice in series, and one that counts in two threads."
    ),
    "size_name": "thousand steps",
    "smallest": 1,
    "growth": False,
    "metrics": [
        {"name": "series_s", "title": "in series", "unit": "s"},
        {"name": "slower", "title": "slower", "unit": "ratio"},
        {"name": "switches", "title": "switches", "unit": "count"},
        {"name": "startup_calls", "title": "calls, start-up", "unit": "count"},
        {"name": "series_calls", "title": "calls, series", "unit": "count"},
        {"name": "system_calls", "title": "calls, threads", "unit": "count"},
    ],
    "claims": [
        {
            "topic": "battle",
            "of": {"count": "nothing", "interval_ms": 5, "check_interval": 100},
            "over_metric": "series_s",
            "more_than": 1.1,
            "says": "2 threads are slower than the same in series",
            "otherwise": "2 threads are no slower than the same in series",
        },
        {
            "topic": "battle, switch 0.5 ms",
            "of": {"count": "nothing", "interval_ms": 0.5, "check_interval": 100},
            "over_metric": "series_s",
            "more_than": 1.1,
            "says": "2 threads are slower than the same in series with setswitchinterval(0.0005)",
            "otherwise": "2 threads are no slower than the same in series with setswitchinterval(0.0005)",
            "main": False,
        },
    ],
    "parameters": {
        "check_interval": {
            "default": 100,
            "choices": [10, 100, 1000, 10000],
            "help": "instructions between two releases, sys.setcheckinterval: before Python 3.2 only",
        },
        "interval_ms": {
            "default": 5,
            "choices": [0.5, 5, 50],
            "help": "the switch interval in milliseconds, sys.setswitchinterval: from Python 3.2 on",
        },
        "count": {
            "default": "nothing",
            "choices": ["nothing", "system calls"],
            "help": "what is counted besides, with strace, in processes of their own",
        },
    },
    "variants": [
        {"label": "", "params": {}, "modes": ["quick", "standard", "full"]},
        {"label": "one core", "params": {}, "cores": "one", "modes": ["quick", "standard", "full"]},
        {"label": "check interval 10", "params": {"check_interval": 10}, "modes": ["full"]},
        {"label": "check interval 1000", "params": {"check_interval": 1000}, "modes": ["standard", "full"]},
        {"label": "check interval 10000", "params": {"check_interval": 10000}, "modes": ["full"]},
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}, "modes": ["quick", "standard", "full"]},
        {"label": "50 ms", "params": {"interval_ms": 50}, "modes": ["full"]},
        {"label": "system calls", "params": {"count": "system calls"}, "modes": ["standard", "full"]},
        {
            "label": "system calls, one core",
            "params": {"count": "system calls"},
            "cores": "one",
            "modes": ["full"],
        },
    ],
    "sizes": {
        "quick": [2000],
        "standard": [1250, 2500, 5000],
        "full": [5000, 25000, 100000],
    },
    "timeout_s": 240,
    "pythons": ">=2.7",
}

import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402

import probe  # noqa: E402


def measure(params):
    set_interval(params)
    steps = params["n"] * 1000
    one = series(steps)
    counted = []
    region = probe.together(2, lambda index: counted.append(count(steps)))
    answer = region.result({"counted": min(counted) // 1000})
    answer["details"]["metrics"] = {
        "series_s": one,
        "slower": answer["wall_s"] / one,
        "switches": answer["ctx_voluntary"] + answer["ctx_involuntary"],
    }
    if params["count"] == "system calls":
        for name, phase in PHASES.items():
            answer["details"]["metrics"][name] = system_calls(phase, params)
    return answer


def set_interval(params):
    probe.switch(params["interval_ms"])
    if hasattr(sys, "setswitchinterval"):
        if params["check_interval"] != 100:
            raise probe.Skipped("this interpreter has a switch interval in place of the check interval")
    else:
        sys.setcheckinterval(params["check_interval"])


def count(steps):
    left = steps
    while left > 0:
        left -= 1
    return steps - left


def series(steps):
    """Seconds for the same one after the other."""
    begin = probe.clock()
    count(steps)
    count(steps)
    return probe.clock() - begin


PHASES = {"startup_calls": "nothing", "series_calls": "series", "system_calls": "threads"}


def system_calls(phase, params):
    """Those of a process that does no more than a phase, all its threads together."""
    handle, path = tempfile.mkstemp()
    os.close(handle)
    inner = [sys.executable, os.path.abspath(__file__), phase, json.dumps(params)]
    try:
        try:
            tracer = subprocess.Popen(["strace", "-f", "-c", "-o", path] + inner, stderr=subprocess.PIPE)
        except OSError:
            raise probe.Skipped("strace is not installed")
        _, error = tracer.communicate()
        if tracer.returncode != 0:
            reason = error.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise probe.Skipped("strace cannot trace here: " + reason[-1])
        with open(path) as table:
            return total(table.read())
    finally:
        os.unlink(path)


def do(phase, params):
    probe.fence(params["timeout_s"])
    set_interval(params)
    steps = params["n"] * 1000
    if phase == "series":
        series(steps)
    elif phase == "threads":
        probe.together(2, lambda index: count(steps))


def total(table):
    """The sum of the column "calls" of strace's table."""
    rows = [line.split() for line in table.splitlines()]
    calls = [int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"]
    if not calls:
        raise probe.Failed("strace counted nothing")
    return sum(calls)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        do(sys.argv[1], json.loads(sys.argv[2]))
    else:
        probe.main(EXPERIMENT, measure)

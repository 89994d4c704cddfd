"""The same counting twice: one after the other, then in two threads at once."""

EXPERIMENT = {
    "id": "gil.battle",
    "title": "The battle for the GIL",
    "question": "How long do two threads take for what one does twice, one after the other?",
    "explanation": (
        "Both compute, and one at a time may. Before Python 3.2 the holder let go of the GIL every 100 "
        "instructions and asked for it again at once; on two cores the woken thread mostly came too late, "
        "was put back to sleep, and millions of vain wake-ups in the kernel made two threads nearly twice "
        "as slow as one after the other. On one core the holder kept the core as well, and little of it was "
        "lost. Since then the waiting thread asks once in a switch interval, and the holder waits until it "
        "has been taken: the battle is over, and what remains is that two threads are no faster than one. "
        "System calls are those of three processes of their own, each from its start to its end: one that "
        "does nothing else, one that counts twice in series, and one that counts in two threads. Failures "
        "are those of the GIL before 3.2: a thread that was woken for it finds it taken again, and goes "
        "back to sleep. They and the trace of events are read off the calls of futex, by strace, which "
        "slows each of them down."
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
        {"name": "acquired", "title": "acquired", "unit": "count"},
        {"name": "failed", "title": "failed", "unit": "count"},
        {"name": "failed_in_a_row", "title": "in a row", "unit": "count"},
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
        {
            "topic": "battle, 1 core",
            "of": {"count": "nothing", "interval_ms": 5, "check_interval": 100},
            "over": {"count": "nothing", "interval_ms": 5, "check_interval": 100, "cores": "one"},
            "more_than": 1.1,
            "says": "2 threads are faster on one core than on all",
            "otherwise": "2 threads are no faster on one core than on all",
        },
        {
            "topic": "system calls, 1 core",
            "of": {"count": "system calls", "interval_ms": 5, "check_interval": 100},
            "over": {"count": "system calls", "interval_ms": 5, "check_interval": 100, "cores": "one"},
            "metric": "system_calls",
            "more_than": 1.1,
            "says": "2 threads make fewer system calls on one core than on all",
            "otherwise": "2 threads make no fewer system calls on one core than on all",
            "main": False,
        },
        {
            "topic": "battle, check 1000",
            "of": {"count": "nothing", "check_interval": 100},
            "over": {"count": "nothing", "check_interval": 1000},
            "more_than": 1.1,
            "says": "2 threads are faster with setcheckinterval(1000)",
            "otherwise": "2 threads are no faster with setcheckinterval(1000)",
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
            "choices": ["nothing", "system calls", "failures"],
            "help": "what is counted besides, with strace, in processes of their own",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "one core", "cores": "one"},
        {"label": "check interval 10", "params": {"check_interval": 10}, "modes": ["full"]},
        {"label": "check interval 1000", "params": {"check_interval": 1000}, "modes": ["standard", "full"]},
        {"label": "check interval 10000", "params": {"check_interval": 10000}, "modes": ["full"]},
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}},
        {"label": "50 ms", "params": {"interval_ms": 50}, "modes": ["full"]},
        {"label": "system calls", "params": {"count": "system calls"}, "modes": ["standard", "full"]},
        {
            "label": "system calls, one core",
            "params": {"count": "system calls"},
            "cores": "one",
            "modes": ["full"],
        },
        {
            "label": "failures",
            "params": {"count": "failures"},
            "modes": ["full"],
            "sizes": {"quick": [500], "standard": [1000], "full": [1000]},
        },
        {
            "label": "failures, one core",
            "params": {"count": "failures"},
            "cores": "one",
            "modes": ["full"],
            "sizes": {"quick": [500], "standard": [1000], "full": [1000]},
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
import re  # noqa: E402
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
            answer["details"]["metrics"][name] = total(traced(["-c"], phase, params))
    elif params["count"] == "failures":
        if hasattr(sys, "setswitchinterval"):
            raise probe.Skipped("from Python 3.2 on the GIL is not lost so: see gil.trace")
        trace = battle(traced(["-ttt", "-e", "trace=futex"], "threads", params))
        answer["details"]["metrics"].update(trace.pop("metrics"))
        answer["details"]["trace"] = trace
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


def traced(options, phase, params):
    """What strace writes of a process that does no more than a phase, all its threads together."""
    handle, path = tempfile.mkstemp()
    os.close(handle)
    inner = [sys.executable, os.path.abspath(__file__), phase, json.dumps(params)]
    try:
        try:
            tracer = subprocess.Popen(["strace", "-f", "-o", path] + options + inner, stderr=subprocess.PIPE)
        except OSError:
            raise probe.Skipped("strace is not installed")
        _, error = tracer.communicate()
        if tracer.returncode != 0:
            reason = error.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise probe.Skipped("strace cannot trace here: " + reason[-1])
        with open(path) as table:
            return table.read()
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


MOST_EVENTS = 400
"""So many from the beginning are kept in their order; of all of them the counts."""
BEGUN = re.compile(r"(\d+) +([\d.]+) futex\((0x[0-9a-f]+), FUTEX_(WAIT|WAKE)(.*)")
ENDED = re.compile(r"(\d+) +([\d.]+) (<\.\.\. futex resumed|\+\+\+ exited)")


def battle(text):
    """What two threads did about the GIL before Python 3.2, a semaphore, by the calls of futex in order.

    A thread that does not get it begins a wait ("want"). When that ends it has taken the GIL ("take"), or it
    finds it taken again and waits once more ("busy"). A holder that lets go and wakes makes a call ("drop");
    one that takes it back at once makes none.
    """
    calls = [found.groups() for found in map(BEGUN.match, text.splitlines()) if found]
    if not calls:
        raise probe.Failed("strace saw no call of futex")
    locks = [lock for _, _, lock, _, _ in calls]
    gil = max(set(locks), key=locks.count)
    callers = [thread for thread, _, lock, _, _ in calls if lock == gil]
    fighters = sorted(sorted(set(callers), key=callers.count)[-2:])
    war = dict((thread, Fighter(index)) for index, thread in enumerate(fighters))
    for line in text.splitlines():
        begun, ended = BEGUN.match(line), ENDED.match(line)
        thread = (begun or ended).group(1) if begun or ended else None
        if thread not in war:
            continue
        at = float((begun or ended).group(2)) * 1e6
        if begun:
            war[thread].begin(at, begun.group(4) if begun.group(3) == gil else "other", begun.group(5))
        else:
            war[thread].end(at, ended.group(3))
    rows = sorted(row for fighter in war.values() for row in fighter.rows)
    takers = [row[2] for row in rows if row[1] == "take"]
    counts = dict((kind, [row[1] for row in rows].count(kind)) for kind in ("want", "busy", "take", "drop"))
    counts["switch"] = sum(a != b for a, b in zip(takers, takers[1:]))
    return {
        "metrics": {
            "acquired": counts["take"],
            "failed": counts["busy"],
            "failed_in_a_row": max(fighter.most for fighter in war.values()),
        },
        "threads": ["cpu-%d" % (index + 1) for index in range(len(fighters))],
        "events": [[row[0] - rows[0][0]] + row[1:] for row in rows[:MOST_EVENTS]],
        "left_out": max(0, len(rows) - MOST_EVENTS),
        "counts": counts,
        "answer_us": None,
        "gap_us": None,
    }


class Fighter(object):
    """One of the threads: what it has done so far, and how often in a row it did not get the GIL."""

    def __init__(self, index):
        self.index = index
        self.rows = []
        self.most = 0
        self._failed = 0
        self._pending = self._woken = self._wanted = self._held = None

    def begin(self, at, what, rest):
        """A call of futex begins; of one that is not unfinished, the end is in the same line."""
        if what == "WAIT" and self._woken is not None:
            self._note(self._woken, "busy", self._woken - self._wanted)
            self._failed += 1
            self.most = max(self.most, self._failed)
            self._woken = None
        elif what == "WAIT":
            self._wanted, self._failed = at, 0
            self._note(at, "want", 0.0)
        else:
            self._take()
        if what == "WAKE":
            self._note(at, "drop", at - self._held if self._held is not None else 0.0)
            self._held = at
        self._pending = what
        if "unfinished" not in rest:
            self.end(at, "")

    def end(self, at, how):
        if self._pending == "WAIT":
            self._woken = at
        if how.startswith("+++"):
            self._take()
        self._pending = None

    def _take(self):
        """Woken, and not waiting again: it has the GIL since."""
        if self._woken is not None:
            self._note(self._woken, "take", self._woken - self._wanted)
            self._held, self._woken = self._woken, None

    def _note(self, at, kind, value):
        self.rows.append([at, kind, self.index, 1 - self.index, value])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        do(sys.argv[1], json.loads(sys.argv[2]))
    else:
        probe.main(EXPERIMENT, measure)

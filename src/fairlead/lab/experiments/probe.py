"""What all probes share: reading parameters, work, clocks, fences against hangs, and forked children.

Runs on Python 2.7 and everything after it; imports nothing outside the standard library.
"""

from __future__ import absolute_import, division, print_function

import json
import math
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import time
import traceback

# Both clocks count the same for all processes, so that one process may begin what another one ends.
clock = getattr(time, "monotonic", time.time)

_SETTLE_S = 0.01
_BLOCKED_LIMIT_S = 5.0
_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle"}
# What the lab has done to this process before it began; given as parameters, they are only checked.
_COMMON = {"policy": ("other", "rr"), "cores": ("all", "two", "one")}

_printing = threading.Lock()


class Skipped(Exception):
    """This interpreter or machine cannot do what the parameters ask for."""


class Failed(Exception):
    """The experiment did not come to a result."""


def no_fairlead():
    """What an experiment about fairlead raises where that cannot be imported."""
    return Skipped("needs fairlead in this interpreter: %s -m pip install fairlead" % sys.executable)


def main(experiment, measure, sized=True):
    """Run ``measure(params)``, print its result as one line of JSON and end the process.

    ``measure`` returns what is printed; what it raises is printed as the reason for having none. A probe that
    is not ``sized`` has no n, and its parameters may be left out.
    """
    try:
        params = read(experiment, sys.argv[1:] or ([] if sized else ["{}"]), sized)
        fence(params["timeout_s"])
        check_seat(params)
        result = measure(params)
    except Skipped as error:
        result = {"skipped": str(error)}
    except Failed as error:
        result = {"failed": str(error)}
    except Exception:
        result = {"failed": describe()}
    finish(result)


def finish(result):
    """Print the result and end the process at once, whatever its other threads do. The first caller wins."""
    _printing.acquire()
    sys.stdout.write(json.dumps(result, sort_keys=True) + "\n")
    sys.stdout.flush()
    os._exit(0)


def describe():
    """The exception being handled, in one line, with the place it comes from."""
    kind, error, trace = sys.exc_info()
    path, line, name, _ = traceback.extract_tb(trace)[-1]
    return "%s: %s (%s:%d in %s)" % (kind.__name__, error, os.path.basename(path), line, name)


def read(experiment, arguments, sized=True):
    """The parameters: those on the command line, one JSON object, over the experiment's defaults."""
    try:
        (text,) = arguments
        given = json.loads(text)
        if not isinstance(given, dict):
            raise ValueError
    except ValueError:
        raise Failed("give the parameters as one JSON object, such as '{\"n\": 100}'")
    own = experiment.get("cases", {}).get(str(given.get("case")))
    own = own if isinstance(own, dict) else {}
    known = dict(experiment.get("parameters", {}), **own.get("parameters", {}))
    if "ways" in own:
        known[experiment["ways"]] = {"default": own["ways"][0], "choices": own["ways"]}
    params = dict((name, known[name]["default"]) for name in known)
    params.update(timeout_s=experiment["timeout_s"], policy=None, cores=None)
    choices = dict((name, known[name]["choices"]) for name in known)
    choices.update(_COMMON)
    if "cases" in experiment:
        choices["case"] = sorted(experiment["cases"])
    for name in sorted(given):
        value = given[name]
        if name == "n":
            least = experiment.get("smallest", 2)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise Failed("n is a whole number of at least %d, not %s" % (least, json.dumps(value)))
        elif name == "timeout_s":
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < 1e6:
                raise Failed("timeout_s is a number of seconds above 0, not %s" % json.dumps(value))
        elif name not in choices:
            allowed = ", ".join(["n", "timeout_s"] + sorted(choices))
            raise Failed("unknown parameter %s: there are %s" % (json.dumps(name), allowed))
        elif value not in choices[name]:
            allowed = ", ".join(str(choice) for choice in choices[name])
            raise Failed("%s is one of %s, not %s" % (name, allowed, json.dumps(value)))
        params[str(name)] = value
    if sized and "n" not in params:
        raise Failed("the size n is missing")
    if "cases" in experiment and "case" not in params:
        raise Failed("the case is missing: one of %s" % ", ".join(choices["case"]))
    return params


def fence(timeout_s):
    """Have the kernel end this process after its time, whatever it does.

    Forked children inherit all of it but the alarm.
    """
    seconds = int(math.ceil(timeout_s))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    # Processor time counts all threads: every core may be busy all the time.
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = seconds * os.sysconf("SC_NPROCESSORS_ONLN") + 1
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


# ---- work


def work(name):
    """The function that a thread that keeps running calls over and over.

    sleep0: time.sleep(0). yield: the system call sched_yield. spin: nothing, so that only Python code runs.
    """
    if name == "sleep0":
        sleep = time.sleep
        return lambda: sleep(0)
    if name == "yield":
        return sched_yield()
    return lambda: None


def sched_yield():
    """The system call, which gives up the GIL around itself."""
    if hasattr(os, "sched_yield"):
        return os.sched_yield
    try:
        import ctypes

        return ctypes.CDLL(None).sched_yield
    except (ImportError, OSError, AttributeError):
        raise Skipped("this interpreter has neither os.sched_yield nor ctypes to call it")


# ---- the interpreter's switches between threads


def switch(interval_ms):
    """Set the switch interval; before Python 3.2, which had none, only the default will do."""
    if hasattr(sys, "setswitchinterval"):
        sys.setswitchinterval(interval_ms / 1000.0)
    elif interval_ms != 5:
        raise Skipped("this interpreter has no switch interval")


# ---- the measured region


class Usage(object):
    """Processor seconds and context switches, of one process or added up."""

    FIELDS = ("ru_utime", "ru_stime", "ru_nvcsw", "ru_nivcsw")

    def __init__(self, values=(0.0, 0.0, 0, 0)):
        self.values = tuple(values)

    @classmethod
    def of(cls, rusage):
        return cls(getattr(rusage, field) for field in cls.FIELDS)

    @classmethod
    def mine(cls):
        return cls.of(resource.getrusage(resource.RUSAGE_SELF))

    def __add__(self, other):
        return Usage(a + b for a, b in zip(self.values, other.values))

    def __sub__(self, other):
        return Usage(a - b for a, b in zip(self.values, other.values))


def used():
    """What this process and the children that it has waited for have used."""
    return Usage.mine() + Usage.of(resource.getrusage(resource.RUSAGE_CHILDREN))


def cores():
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.sysconf("SC_NPROCESSORS_ONLN")


class Region(object):
    """The measured time of one process: begun once, ended once, from whichever threads."""

    def __init__(self):
        self._marks = {}

    def begin(self):
        self._marks.setdefault("begin", (clock(), Usage.mine()))

    def end(self):
        # of two threads that both see the end, the first counts
        self._marks.setdefault("end", (clock(), Usage.mine()))

    def mark(self, name):
        """Note the time so far as one of the further figures; the first note counts."""
        self._marks.setdefault(name, (clock(), None))

    def result(self, details, turns=0):
        marks = dict(self._marks)
        begin, used_before = marks.pop("begin")
        end, used_after = marks.pop("end")
        metrics = dict((name, at - begin) for name, (at, _) in marks.items())
        return result(end - begin, used_after - used_before, [peak_kb()], details, metrics, turns)


def result(wall_s, usage, peaks_kb, details, metrics=None, turns=0):
    """The line that a probe prints: the shape that all of them share.

    With ``turns``, those that the picture of the schedule has, the switches are told per turn as well.
    """
    if not wall_s > 0:
        raise Failed("the clock did not move: n is too small for this machine")
    user_s, sys_s, voluntary, involuntary = usage.values
    further = dict(metrics or {})
    if turns:
        further["per_turn"] = (voluntary + involuntary) / turns
    if further:
        details = dict(details, metrics=further)
    return {
        "wall_s": wall_s,
        "user_s": user_s,
        "sys_s": sys_s,
        "cpu_percent": (user_s + sys_s) / wall_s * 100,
        "ctx_voluntary": int(voluntary),
        "ctx_involuntary": int(involuntary),
        "max_rss_kb": max(peaks_kb),
        "sum_rss_kb": sum(peaks_kb),
        "details": dict(details, processes=len(peaks_kb), **seat()),
    }


def seat():
    """The scheduling policy and the cores that this process runs under; None where there is no /proc."""
    stat = _slurp("/proc/self/stat")
    cores = _field(_slurp("/proc/self/status"), "Cpus_allowed_list")
    policy = int(stat.rpartition(")")[2].split()[38]) if stat else None
    return {"policy": _POLICIES.get(policy, policy), "cpus": cores}


def check_seat(params):
    """Fail if the lab says that it has set a policy or pinned to one or two cores, and it is not so."""
    seen = seat()
    if params["policy"] is not None and seen["policy"] not in (params["policy"], None):
        raise Failed("policy is to be %(policy)s, and is %%(policy)s" % params % seen)
    if params["cores"] == "one" and not (seen["cpus"] or "0").isdigit():
        raise Failed("is to run on one core, and may use %(cpus)s" % seen)
    if params["cores"] == "two" and cores() > 2:
        raise Failed("is to run on two cores, and may use %(cpus)s" % seen)


def peak_kb():
    """The most memory that this process ever held. getrusage also counts the program before exec."""
    peak = status_kb("VmHWM")
    return _rss_kb(resource.getrusage(resource.RUSAGE_SELF)) if peak is None else peak


def status_kb(name, pid="self"):
    """A size in the status of a process, in KiB; None where there is no /proc, or the process has ended."""
    size = _field(_slurp("/proc/%s/status" % pid), name)
    return int(size.split()[0]) if size else None


def _rss_kb(rusage):
    return rusage.ru_maxrss // 1024 if sys.platform == "darwin" else rusage.ru_maxrss


def _slurp(path):
    try:
        with open(path) as file:
            return file.read()
    except (IOError, OSError):
        return ""


def _field(status, name):
    """The value of one line of a /proc/*/status text; None if it has no such line."""
    _, found, rest = status.partition("\n" + name + ":")
    return rest.partition("\n")[0].strip() if found else None


# ---- many threads


def start(count, body):
    """Start threads that run ``body(index)``; the list of them. One that raises ends the probe as failed."""
    threads = make(count, body)
    for thread in threads:
        thread.start()
    return threads


def make(count, body):
    """The same threads, not yet started."""
    threads = [threading.Thread(target=_guarded, args=(body, index)) for index in range(count)]
    for thread in threads:
        thread.daemon = True
    return threads


def together(count, body):
    """Have threads run ``body(index)``, all let go at once; the region from then to the last's return."""
    region = Region()
    gate = threading.Event()
    through = []

    def gated(index):
        gate.wait()
        body(index)
        through.append(index)
        if len(through) == count:
            region.end()

    threads = start(count, gated)
    wait_until_blocked(other_threads)
    region.begin()
    gate.set()
    for thread in threads:
        thread.join()
    return region


def _guarded(body, index):
    try:
        body(index)
    except Exception:
        # A thread that waits for this one waits for ever: the thread itself has the last word.
        finish({"failed": "in a thread: " + describe()})


def wait_until(condition, what):
    """Look again and again, asleep in between, until the condition holds."""
    limit = clock() + _BLOCKED_LIMIT_S
    while not condition():
        if clock() > limit:
            raise Failed("after %g s still not: %s" % (_BLOCKED_LIMIT_S, what))
        time.sleep(0.001)


def wait_until_blocked(others):
    """Wait until all the others are blocked for good; whether that was seen.

    ``others()`` gives the /proc directories of threads or processes. A thread that waits for
    the GIL is asleep too, so all must be asleep with none having run in between, while this thread slept and
    left the GIL to the others. Where there is no /proc, only the sleep is left: False.
    """
    before = None
    limit = clock() + _BLOCKED_LIMIT_S
    while clock() < limit:
        time.sleep(_SETTLE_S)
        seen = [_state(directory) for directory in others()]
        if not all(seen):
            time.sleep(10 * _SETTLE_S)
            return False
        if seen == before and all(state.startswith("S") for state, _, _ in seen):
            return True
        before = seen
    raise Failed("after %g s some have still not come to rest" % _BLOCKED_LIMIT_S)


def _state(directory):
    status = _slurp(directory + "/status")
    fields = ("State", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
    return tuple(_field(status, field) for field in fields) if "\nnonvoluntary" in status else None


def other_threads():
    """The /proc directories of all threads of this process but the one that asks."""
    try:
        mine = os.readlink("/proc/thread-self").rpartition("/")[2]
        return ["/proc/self/task/" + task for task in sorted(os.listdir("/proc/self/task")) if task != mine]
    except OSError:
        return ["/proc/self/task/unknown"]


# ---- many processes


class Flags(object):
    """One small counter each for n processes, in memory that they share. Made before they are forked."""

    def __init__(self, n):
        self._bytes = mmap.mmap(-1, n)

    def add(self, index):
        self._bytes[index : index + 1] = struct.pack("B", self.values()[index] + 1)

    def values(self):
        return list(bytearray(self._bytes[:]))

    def none_is_set(self):
        return not any(self.values())

    def all_are_set(self):
        return self._bytes.find(b"\0") < 0


class Numbers(object):
    """Floating-point numbers that processes share; each has one writer, and is read once that has ended."""

    def __init__(self, count):
        self._bytes = mmap.mmap(-1, 8 * count)

    def put(self, index, *values):
        struct.pack_into("%dd" % len(values), self._bytes, 8 * index, *values)

    def get(self, index, count=1):
        return struct.unpack_from("%dd" % count, self._bytes, 8 * index)


class Family(object):
    """Forked children, each waited for by name. Leaving the ``with`` block kills and reaps the others.

    After ``wait``, ``usage`` is the sum of their processor seconds and switches from birth to end,
    ``peaks_kb`` the peak memory of each, the parent's own first.
    """

    def __init__(self, timeout_s):
        if not hasattr(os, "fork"):
            raise Skipped("this system has no os.fork")
        self.usage = Usage()
        self.peaks_kb = []
        self._alive = set()
        self._seconds = int(math.ceil(timeout_s))
        self._ear, self._mouth = os.pipe()

    def fork(self, body, index):
        """Have a new child run ``body(index)`` and end."""
        pid = os.fork()
        if pid:
            self._alive.add(pid)
            return
        status = 1
        try:
            signal.alarm(self._seconds)
            body(index)
            status = 0
        except Exception:
            os.write(self._mouth, describe().encode("utf-8", "replace")[:1000])
        finally:
            os._exit(status)

    def wait(self):
        """Wait until all have ended; one that failed ends the wait for the others."""
        while self._alive:
            pid, status, rusage = os.wait4(-1, 0)
            self._alive.discard(pid)
            self.usage += Usage.of(rusage)
            self.peaks_kb.append(_rss_kb(rusage))
            if os.WIFSIGNALED(status):
                raise Failed("a process was ended by signal %d" % os.WTERMSIG(status))
            if status:
                raise Failed("in a process: " + os.read(self._ear, 1000).decode("utf-8", "replace"))
        self.peaks_kb.insert(0, peak_kb())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for pid in self._alive:
            os.kill(pid, signal.SIGKILL)
        for pid in self._alive:
            os.waitpid(pid, 0)
        self._alive = set()
        os.close(self._ear)
        os.close(self._mouth)

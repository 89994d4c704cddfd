"""Signals come to a process whose main thread waits in join() while n threads compute."""

EXPERIMENT = {
    "id": "gil.signal",
    "title": "A signal beside computing threads",
    "question": "How long does a signal wait for its Python handler while n threads compute?",
    "explanation": (
        "The kernel delivers the signal at once, but its Python handler runs in the main thread, and that "
        "needs the GIL: it wakes, waits a switch interval before it may ask for it, and with several "
        "computing threads the GIL may be taken by another first. Before Python 3.2 a waiting join() could "
        "not be interrupted at all: the handler ran when the threads had ended, and until then the "
        "interpreter looked after every instruction whether the main thread was there. Ticks are the most "
        "instructions that a computing thread of such an interpreter had left till its next check, once a "
        "signal had come: of sys.getcheckinterval() that is 1 at most."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "value": "delay_s",
    "metrics": [
        {"name": "delay_s", "title": "delay", "unit": "s"},
        {"name": "longest_s", "title": "longest", "unit": "s"},
        {"name": "handled", "title": "handled", "unit": "count"},
        {"name": "switches", "title": "switches", "unit": "count"},
        {"name": "ticks", "title": "ticks", "unit": "count"},
    ],
    "claims": [
        {
            "topic": "signal",
            "of": {"interval_ms": 5, "n": "greatest"},
            "over": {"interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "a signal's handler waits longer beside more threads that compute",
            "otherwise": "a signal's handler waits no longer beside more threads that compute",
            "main": False,
        },
    ],
    "parameters": {
        "signals": {"default": 20, "choices": [3, 20], "help": "how many signals are sent, one by one"},
        "interval_ms": {
            "default": 5,
            "choices": [0.5, 5, 50],
            "help": "the switch interval in milliseconds, sys.setswitchinterval",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}, "modes": ["full"]},
        {"label": "scheduled", "params": {"scheduler": "interactive"}, "modes": ["standard", "full"]},
    ],
    "sizes": {"quick": [1, 4], "standard": [1, 2, 4, 8], "full": [1, 2, 4, 8]},
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402

PATIENCE_S = 0.5
"""So long the threads go on computing when no handler has run."""
PAUSE_S = 0.02


def measure(params):
    probe.switch(params["interval_ms"])
    probe_fairlead.schedule(params["scheduler"])
    n, signals = params["n"], params["signals"]
    sent = probe.Numbers(signals)
    due, told = probe.Flags(1), probe.Flags(1)
    handled = []

    def handle(number, frame):
        handled.append(probe.clock())
        told.add(0)

    def sender(index):
        """A process of its own, so that it waits for no GIL."""
        parent = os.getppid()
        for number in range(signals):
            time.sleep(PAUSE_S)
            sent.put(number, probe.clock())
            os.kill(parent, signal.SIGUSR1)
            time.sleep(0.001)
            due.add(0)
            limit = probe.clock() + PATIENCE_S
            while told.values()[0] <= number and probe.clock() < limit:
                time.sleep(0.0005)
            if told.values()[0] <= number:
                return

    over = []
    ticker = old_ticker()
    ticks = [0]

    def compute(index):
        while not over and ticker is None:
            pass
        while not over:
            if due.values()[0] > told.values()[0]:
                ticks[0] = max(ticks[0], ticker.value)

    signal.signal(signal.SIGUSR1, handle)
    region = probe.Region()
    with probe.Family(params["timeout_s"]) as family:
        family.fork(sender, 0)
        region.begin()
        watch = watcher(family, over)
        computing = probe.start(n, compute)
        for thread in computing:
            thread.join()
        region.end()
        watch.join()
    if not handled:
        raise probe.Failed("no signal was handled")
    starts = [sent.get(number)[0] for number in range(len(handled))]
    delays = [at - start for start, at in zip(starts, handled)]
    answer = region.result({"computed": n})
    answer["details"]["metrics"] = {
        "delay_s": sum(delays) / len(delays),
        "longest_s": max(delays),
        "handled": len(handled),
        "switches": (answer["ctx_voluntary"] + answer["ctx_involuntary"]) / float(len(handled)),
    }
    if ticker is not None:
        answer["details"]["metrics"]["ticks"] = ticks[0]
    return answer


def old_ticker():
    """The instructions left till the next check of an interpreter before Python 3.2, where it can be read."""
    if hasattr(sys, "setswitchinterval"):
        return None
    try:
        import ctypes

        return ctypes.c_int.in_dll(ctypes.pythonapi, "_Py_Ticker")
    except (ImportError, AttributeError, ValueError):
        return None


def watcher(family, over):
    """Ends the computing when the sender has ended. It sleeps in the kernel till then."""

    def body(index):
        family.wait()
        over.append(True)

    (thread,) = probe.start(1, body)
    return thread


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

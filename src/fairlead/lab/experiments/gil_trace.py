"""Two threads compute; every request, drop and take of the GIL between them is recorded, in order.

Unlike the others this experiment needs fairlead in the interpreter that is measured: it makes the recording.
"""

EXPERIMENT = {
    "id": "gil.trace",
    "title": "The battle for the GIL, event by event",
    "question": "What happens to the GIL, in which order, while two threads compute?",
    "explanation": (
        "A thread that finds the GIL taken waits a switch interval before it may even ask for it. Then the "
        "holder drops it at the next safe place and sleeps until the other has taken it, so that it cannot "
        "take it back at once: one request, one forced drop and one hand-over for each switch, and a "
        "wake-up of a thread in the kernel in between. Before Python 3.2 a holder only let go and took "
        "again, and often won the battle against the thread that it had just woken."
    ),
    "size_name": "thousand steps",
    "parameters": {
        "interval_ms": {
            "default": 5,
            "choices": [0.5, 5, 50],
            "help": "the switch interval, sys.setswitchinterval",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "one core", "cores": "one", "modes": ["standard", "full"]},
        {"label": "0.5 ms", "params": {"interval_ms": 0.5}, "modes": ["standard", "full"]},
    ],
    "sizes": {
        "quick": [1000, 2000, 4000],
        "standard": [1000, 2000, 4000, 8000],
        "full": [2000, 4000, 8000, 16000, 32000],
    },
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402

import probe  # noqa: E402

MOST_EVENTS = 400
"""So many events from the beginning are kept in their order; of all of them the counts."""

KINDS = {1: "want", 2: "request", 3: "take", 4: "drop"}
FORCED = 1


def measure(params):
    try:
        import fairlead.gil
        from fairlead.errors import UnsupportedInterpreterError
        from fairlead.record.recording import LOST, BlockType, Recording
    except ImportError:
        raise probe.no_fairlead()
    sys.setswitchinterval(params["interval_ms"] / 1000.0)
    region = probe.Region()
    gate = threading.Event()
    counted = [0, 0]

    def body(index):
        gate.wait()
        for _ in range(params["n"]):
            for _ in range(1000):
                pass
            counted[index] += 1
        if min(counted) == params["n"]:
            region.end()

    threads = probe.make(2, body)
    for index, thread in enumerate(threads):
        thread.name = "cpu-%d" % (index + 1)
    handle, path = tempfile.mkstemp(suffix=".flrec")
    os.close(handle)
    try:
        try:
            recorder = fairlead.gil.record(path, wait_threshold=None).start()
        except UnsupportedInterpreterError as error:
            raise probe.Skipped(str(error))
        for thread in threads:
            thread.start()
        probe.wait_until_blocked(probe.other_threads)
        region.begin()
        begin = probe.clock()
        gate.set()
        for thread in threads:
            thread.join()
        recorder.stop()
        recording = Recording(path)
        names = dict((serial, thread.name) for serial, thread in recording.threads().items())
        lost = sum(LOST.unpack_from(block.payload)[2] for block in recording.blocks(BlockType.LOST))
        events = [event for block in recording.blocks(BlockType.EVENTS) for event in block.rows()]
    finally:
        os.unlink(path)
    if lost:
        raise probe.Failed("%d events of the recording are lost: the machine was too busy" % lost)
    details = account(events, names, int(begin * 1e9))
    return region.result(dict(details, counted=min(counted)))


def account(events, names, begin_ns):
    """The events since the beginning of those two threads, in order, and how many of each kind there are."""
    battle = dict((serial, name) for serial, name in names.items() if name in ("cpu-1", "cpu-2"))
    order = sorted(battle, key=battle.get)
    rows, counts, holder, switches = [], {}, 0, 0
    asked_ns, dropped_ns, answers_us, gaps_us = 0, 0, [], []

    def note(name, t_ns, thread, other, value_ns):
        counts[name] = counts.get(name, 0) + 1
        concerned = order.index(other) if other in battle else None
        rows.append([(t_ns - begin_ns) / 1000.0, name, order.index(thread), concerned, value_ns / 1000.0])

    for t_ns, thread, other, value_ns, _, kind, flags, _ in events:
        if t_ns < begin_ns or kind not in KINDS or thread not in battle:
            continue
        name = KINDS[kind]
        if name == "drop" and flags & FORCED:
            name = "forced drop"
        if name == "request" and not asked_ns:
            asked_ns = t_ns
        elif name == "take":
            if holder not in (0, thread):
                switches += 1
                gaps_us.append((t_ns - dropped_ns) / 1000.0)
                if value_ns:
                    # a waiter has it now: the thread that dropped it has handed it over
                    note("hand-over", t_ns, holder, thread, 0)
            holder = thread
        elif name in ("drop", "forced drop"):
            if asked_ns:
                answers_us.append((t_ns - asked_ns) / 1000.0)
            asked_ns, dropped_ns = 0, t_ns
        note(name, t_ns, thread, other, value_ns)
    counts["switch"] = switches
    return {
        "trace": {
            "threads": [battle[serial] for serial in order],
            "events": rows[:MOST_EVENTS],
            "left_out": max(0, len(rows) - MOST_EVENTS),
            "counts": counts,
            "answer_us": middle(answers_us),
            "gap_us": middle(gaps_us),
        }
    }


def middle(values):
    """The median, None of nothing."""
    return sorted(values)[len(values) // 2] if values else None


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

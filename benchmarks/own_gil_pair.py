"""What fairlead's hooks add to one release and retake of the GIL that no other thread wants.

fairlead lab run benchmarks/own_gil_pair.py --quick
"""

EXPERIMENT = {
    "id": "own.gil-pair",
    "title": "A release and retake of the GIL",
    "question": "What do the hooks add to a release and retake of the GIL that no other thread wants?",
    "explanation": (
        "A C function that does next to nothing is called through ctypes, once by way of CDLL, which lets "
        "go of the GIL for the call, and once by way of PyDLL, which does not. The difference is the "
        "pair, in CPU time; of many short runs the quickest one counts, which nothing has interrupted. "
        "Another thread has waited for the GIL before, unless the hooks are to rest."
    ),
    "size_name": "runs",
    "growth": False,
    "ways": "hooks",
    "base": "stock",
    "value": "pair_s",
    "metrics": [{"name": "pair_s", "title": "pair", "unit": "s"}],
    "parameters": {
        "hooks": {
            "default": "stock",
            "choices": ["stock", "counting", "recording", "scheduling", "resting"],
            "help": "what they do; resting: scheduling, while no thread has waited yet",
        },
    },
    "claims": [
        {"topic": "pair, counting", "of": {"hooks": "counting"}, "over": {"hooks": "stock"}, "more_than": 2,
         "says": "while fairlead counts, a release and retake takes more than twice as long",
         "otherwise": "while fairlead counts, a release and retake takes no longer"},
        {"topic": "pair, recording", "of": {"hooks": "recording"}, "over": {"hooks": "stock"}, "more_than": 2,
         "says": "while fairlead records, a release and retake takes more than twice as long",
         "otherwise": "while fairlead records, a release and retake takes no longer"},
        {"topic": "pair, scheduling", "of": {"hooks": "scheduling"}, "over": {"hooks": "stock"},
         "more_than": 2,
         "says": "while fairlead schedules, a release and retake takes more than twice as long",
         "otherwise": "while fairlead schedules, a release and retake takes no longer"},
        {"topic": "pair, resting", "of": {"hooks": "resting"}, "over": {"hooks": "stock"}, "more_than": 1.1,
         "says": "until a thread waits for the GIL, the scheduler makes a release and retake dearer",
         "otherwise": "until a thread waits for the GIL, the scheduler makes a release and retake no dearer"},
    ],
    "sizes": {"quick": [100], "standard": [400], "full": [400]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import ctypes  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from itertools import repeat  # noqa: E402
from pathlib import Path  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402

CALLS = 2000


def measure(params):
    lets_go, keeps = ctypes.CDLL(None).abs, ctypes.PyDLL(None).abs
    region = probe.Region()
    with ExitStack() as stack:
        hook(params["hooks"], stack)
        if params["hooks"] != "resting":
            other = threading.Thread(target=time.sleep, args=(0,))
            other.start()
            sum(range(1_000_000))  # while it wants to begin
            other.join()
        region.begin()
        times = [(seconds(lets_go), seconds(keeps)) for _ in range(params["n"])]
        region.end()
    answer = region.result({})
    apart = [min(column) for column in zip(*times, strict=True)]
    answer["details"]["metrics"] = {"pair_s": apart[0] - apart[1]}
    return answer


def hook(what, stack):
    if what == "stock":
        return
    gil = own.gil()
    if what == "counting":
        stack.enter_context(gil.observe())
    elif what == "recording":
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(gil.record(Path(directory) / "recording"))
    else:
        gil.schedule()


def seconds(function):
    begin = time.thread_time()
    for _ in repeat(None, CALLS):
        function(1)
    return (time.thread_time() - begin) / CALLS


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

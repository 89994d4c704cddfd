"""n threads are started, live at the same time, and end."""

EXPERIMENT = {
    "id": "gil.thread-cost",
    "title": "What a thread costs",
    "question": "What does it cost to start and to end a thread, and how much memory does it take?",
    "explanation": (
        "A Python thread is a thread of the operating system and a thread state of the interpreter. All "
        "threads have the process id in common and each has a native id of its own. Starting one waits until "
        "it has come to life, so beside threads that compute it waits for the GIL as well, twice. Of its "
        "stack only address space is taken at first; memory follows page by page as it is used. With glibc "
        "most of that space is no stack: up to eight threads a core get 64 MiB each to allocate from."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "value": "start_s",
    "metrics": [
        {"name": "start_s", "title": "start", "unit": "s"},
        {"name": "end_s", "title": "join", "unit": "s"},
        {"name": "memory_kb", "title": "memory", "unit": "KiB"},
        {"name": "address_space_kb", "title": "space", "unit": "KiB"},
        {"name": "process_ids", "title": "pids", "unit": "count"},
        {"name": "native_ids", "title": "tids", "unit": "count"},
        {"name": "names", "title": "names", "unit": "count"},
    ],
    "claims": [
        {
            "topic": "starting a thread",
            "of": {"beside": 1, "stack_kb": "default", "n": "greatest"},
            "over": {"beside": 0, "stack_kb": "default", "n": "greatest"},
            "more_than": 1.1,
            "says": "a thread starts more slowly beside one that computes",
            "otherwise": "a thread starts no more slowly beside one that computes",
        },
    ],
    "parameters": {
        "stack_kb": {
            "default": "default",
            "choices": ["default", 32, 256],
            "help": "the size of each thread's stack in KiB, threading.stack_size; 32 is the least",
        },
        "beside": {
            "default": 0,
            "choices": [0, 1, 2],
            "help": "how many other threads compute meanwhile",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": ""},
        {"label": "stacks of 32 KiB", "params": {"stack_kb": 32}, "modes": ["standard", "full"]},
        {"label": "stacks of 256 KiB", "params": {"stack_kb": 256}, "modes": ["standard", "full"]},
        {
            "label": "beside 1 CPU thread",
            "params": {"beside": 1},
            "sizes": {"quick": [20], "standard": [10, 20, 40], "full": [10, 20, 40]},
        },
        {
            "label": "beside 1 CPU thread, scheduled",
            "params": {"beside": 1, "scheduler": "interactive"},
            "modes": ["standard", "full"],
        },
    ],
    "sizes": {"quick": [50], "standard": [50, 100, 200, 400], "full": [50, 100, 200, 400, 800]},
    "timeout_s": 120,
    "pythons": ">=2.7",
}

import os  # noqa: E402
import threading  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402


def measure(params):
    n = params["n"]
    probe_fairlead.schedule(params["scheduler"])
    over = []

    def compute(index):
        while not over:
            pass

    computing = probe.start(params["beside"], compute)
    if params["stack_kb"] != "default":
        try:
            threading.stack_size(params["stack_kb"] * 1024)
        except ValueError as error:
            raise probe.Skipped("the threads of this interpreter need larger stacks: %s" % error)
    region = probe.Region()
    gate = threading.Event()
    lived = []

    def body(index):
        lived.append((os.getpid(), native_id(index), threading.current_thread().name))
        gate.wait()

    threads = probe.make(n, body)
    memory_before, space_before = sizes()
    region.begin()
    for thread in threads:
        thread.start()
    region.end()
    # all are alive, and have used of their stacks what they use
    probe.wait_until(lambda: len(lived) == n, "all threads have come to life")
    memory, space = sizes()
    ending = probe.clock()
    gate.set()
    for thread in threads:
        thread.join()
    ended = probe.clock() - ending
    over.append(True)
    for thread in computing:
        thread.join()
    answer = region.result({"lived": len(lived)})
    answer["details"]["metrics"] = {
        "start_s": answer["wall_s"] / n,
        "end_s": ended / n,
        "process_ids": len(set(pid for pid, _, _ in lived)),
        "native_ids": len(set(native for _, native, _ in lived)),
        "names": len(set(name for _, _, name in lived)),
    }
    if memory is not None:
        answer["details"]["metrics"]["memory_kb"] = (memory - memory_before) / float(n)
        answer["details"]["metrics"]["address_space_kb"] = (space - space_before) / float(n)
    return answer


def native_id(index):
    """What the kernel calls this thread."""
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    try:
        return os.readlink("/proc/thread-self").rpartition("/")[2]
    except OSError:
        return index


def sizes():
    """(resident memory, address space) of this process in KiB; None where there is no /proc."""
    return probe.status_kb("VmRSS"), probe.status_kb("VmSize")


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

"""Does a function scale with threads? The same calls of it, shared among n threads."""

EXPERIMENT = {
    "id": "my.scaling",
    "title": "Counting words in threads",
    "question": "Do n threads finish the same calls sooner than one?",
    "explanation": (
        "Each thread makes its share of the calls, and touches nothing that the others touch. With a GIL "
        "only one of them computes. Without one, what they still share (the classes, the text's reference "
        "count) is all that can keep n threads from being n times as fast."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "parameters": {
        "calls": {
            "default": 512,
            "choices": [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
            "help": "how many calls all threads make together: calibrated, so that one takes 0.2 s for them",
        },
    },
    "calibrated": {"parameter": "calls", "seconds": 0.2},
    "claims": [
        {
            "topic": "counting words",
            "of": {"n": 1},
            "over": {"n": "greatest"},
            "more_than": 1.5,
            "says": "threads on all cores are faster than one",
            "otherwise": "threads on all cores are no faster than one",
        },
    ],
    "sizes": {"quick": [1, 2], "standard": [1, 2, 4, 8], "full": [1, 2, 4, 8, 16, 32, 64]},
    "timeout_s": 60,
    "pythons": ">=3.8",
}

from collections import Counter  # noqa: E402

import probe  # noqa: E402

TEXT = "to have many threads is not to have many cores " * 100


def work():
    """The function: put yours here, or import it from a module beside this file."""
    return Counter(TEXT.split())


def measure(params):
    n, calls = params["n"], params["calls"]
    if n > probe.cores():
        raise probe.Skipped(f"needs {n} cores")
    done = []

    def body(index):
        for call in range(index, calls, n):
            work()
            done.append(call)

    region = probe.together(n, body)
    if len(done) != calls:
        raise probe.Failed(f"{len(done)} calls of {calls}")
    return region.result({"calls": calls})


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

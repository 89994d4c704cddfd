"""Eight messages are hashed by n threads, each in one call of C code that lets go of the GIL."""

EXPERIMENT = {
    "id": "gil.sha256",
    "title": "Hashing in n threads",
    "question": "How long does hashing a fixed number of bytes take, shared among n threads?",
    "explanation": (
        "hashlib lets go of the GIL while it works on a large block. So the threads hash at the same time, "
        "and the time falls with their number until every core has one; beyond that it stays. Each of the "
        "eight messages is hashed in one piece, by one call: the GIL is taken between two of them only."
    ),
    "size_name": "threads",
    "smallest": 1,
    "growth": False,
    "metrics": [
        {"name": "mb_per_s", "title": "MB", "unit": "per s"},
    ],
    "claims": [
        {
            "topic": "threads that hash",
            "of": {"n": 1},
            "over": {"n": 2},
            "more_than": 1.1,
            "says": "2 threads hash faster than one",
            "otherwise": "2 threads hash no faster than one",
        },
    ],
    "parameters": {
        "megabytes": {
            "default": 128,
            "choices": [8, 128, 512, 1024],
            "help": "how many MiB the eight messages have together, which the threads share",
        },
    },
    "variants": [
        {"label": "", "modes": ["quick", "standard"]},
        {"label": "1 GB", "params": {"megabytes": 1024}, "modes": ["full"]},
    ],
    "sizes": {"quick": [1, 2], "standard": [1, 2, 4, 8], "full": [1, 2, 4, 8]},
    "timeout_s": 120,
    "pythons": ">=2.7",
}

import hashlib  # noqa: E402

import probe  # noqa: E402

MESSAGES = 8


def measure(params):
    n, size = params["n"], (params["megabytes"] << 20) // MESSAGES
    message = b"0" * size
    shares = [MESSAGES // n + (index < MESSAGES % n) for index in range(n)]
    digests = []

    def body(index):
        digests.append([hashlib.sha256(message).hexdigest() for _ in range(shares[index])])

    region = probe.together(n, body)
    if len(set(sum(digests, []))) > 1:
        raise probe.Failed("two calls that hashed the same have different digests")
    answer = region.result({"hashed": len(digests)})
    answer["details"]["metrics"] = {"mb_per_s": params["megabytes"] / answer["wall_s"]}
    return answer


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

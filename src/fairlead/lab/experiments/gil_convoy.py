"""A threaded echo server answers n clients, alone or beside something that computes."""

EXPERIMENT = {
    "id": "gil.convoy",
    "title": "The convoy: a server beside a computing thread",
    "question": "How long does a request to a threaded server take when something else computes?",
    "explanation": (
        "Before every call that may block a thread lets go of the GIL, and takes it again when the call "
        "returns, even if that took a microsecond. If another thread computes it has taken the GIL "
        "meanwhile, and it keeps it for a whole switch interval: 5 ms for a request that needs a few "
        "microseconds. The computing thread never waits long, and the server's threads queue up like cars "
        "behind a lorry. A process that computes beside the server takes a core at most; a thread takes the "
        "GIL. On one core, client included, the kernel decides which of the two threads runs, and lets the "
        "one that has waited go first: the GIL is free when it comes."
    ),
    "size_name": "clients",
    "smallest": 1,
    "growth": False,
    "value": "request_s",
    "metrics": [
        {"name": "request_s", "title": "request", "unit": "s"},
        {"name": "requests_per_s", "title": "rate", "unit": "per s"},
        {"name": "p50_s", "title": "p50", "unit": "s"},
        {"name": "p99_s", "title": "p99", "unit": "s"},
        {"name": "max_s", "title": "max", "unit": "s"},
        {"name": "steps_per_s", "title": "steps", "unit": "per s"},
    ],
    "claims": [
        {
            "topic": "convoy",
            "of": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "over": {"beside": "nothing", "interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "a request takes longer beside a thread that computes than alone",
            "otherwise": "a request takes no longer beside a thread that computes than alone",
        },
        {
            "topic": "convoy vs a process",
            "of": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "over": {"beside": "processes", "computing": 1, "interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "a request takes longer beside a thread that computes than beside a process",
            "otherwise": "a request takes no longer beside a thread that computes than beside a process",
            "main": False,
        },
        {
            "topic": "convoy, GIL scheduled",
            "of": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "over": {
                "beside": "threads",
                "computing": 1,
                "interval_ms": 5,
                "scheduler": "interactive",
                "n": "least",
            },
            "more_than": 1.1,
            "says": "beside a thread that computes, a request is faster with the GIL scheduled",
            "otherwise": "beside a thread that computes, a request is no faster with the GIL scheduled",
        },
        {
            "topic": "convoy, switch 0.5 ms",
            "of": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "over": {"beside": "threads", "computing": 1, "interval_ms": 0.5, "n": "least"},
            "more_than": 1.1,
            "says": "beside a thread that computes, a request is faster with setswitchinterval(0.0005)",
            "otherwise": (
                "beside a thread that computes, a request is no faster with setswitchinterval(0.0005)"
            ),
            "main": False,
        },
        {
            "topic": "convoy, 1 core",
            "of": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "over": {"beside": "threads", "computing": 1, "interval_ms": 5, "cores": "one", "n": "least"},
            "more_than": 1.1,
            "says": "beside a thread that computes, a request is faster on one core than on all",
            "otherwise": "beside a thread that computes, a request is no faster on one core than on all",
        },
        {
            "topic": "convoy, 2 threads",
            "of": {"beside": "threads", "computing": 2, "interval_ms": 5, "n": "least"},
            "over": {"beside": "threads", "computing": 1, "interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "a request takes longer beside 2 threads that compute than beside one",
            "otherwise": "a request takes no longer beside 2 threads that compute than beside one",
            "main": False,
        },
        {
            "topic": "beside 4 processes",
            "of": {"beside": "processes", "computing": 4, "interval_ms": 5, "n": "least"},
            "over": {"beside": "processes", "computing": 1, "interval_ms": 5, "n": "least"},
            "more_than": 1.1,
            "says": "a request takes longer beside 4 processes that compute than beside one",
            "otherwise": "a request takes no longer beside 4 processes that compute than beside one",
            "main": False,
        },
    ],
    "parameters": {
        "beside": {
            "default": "nothing",
            "choices": ["nothing", "threads", "processes"],
            "help": "what computes beside the server",
        },
        "computing": {"default": 1, "choices": [1, 2, 3, 4, 8], "help": "how many of them"},
        "seconds": {
            "default": 1,
            "quick": 0.2,
            "choices": [0.2, 1, 2],
            "help": "how long the clients ask",
        },
        "interval_ms": {
            "default": 5,
            "choices": [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 50, 100],
            "help": "the switch interval in milliseconds, sys.setswitchinterval",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "alone"},
        {"label": "1 CPU thread", "params": {"beside": "threads"}},
        {"label": "1 CPU process", "params": {"beside": "processes"}},
        {"label": "1 CPU thread, scheduled", "params": {"beside": "threads", "scheduler": "interactive"}},
        {"label": "2 CPU threads", "params": {"beside": "threads", "computing": 2}, "modes": ["full"]},
        {
            "label": "2 CPU threads, scheduled",
            "params": {"beside": "threads", "computing": 2, "scheduler": "interactive"},
            "modes": ["full"],
        },
        {"label": "2 CPU processes", "params": {"beside": "processes", "computing": 2}, "modes": ["full"]},
        {"label": "1 CPU thread, 0.5 ms", "params": {"beside": "threads", "interval_ms": 0.5}},
        {"label": "1 CPU thread, one core", "params": {"beside": "threads"}, "cores": "one"},
        {"label": "alone, one core", "cores": "one", "modes": ["full"]},
        {"label": "3 CPU processes", "params": {"beside": "processes", "computing": 3}, "modes": ["full"]},
        {"label": "4 CPU processes", "params": {"beside": "processes", "computing": 4}, "modes": ["full"]},
        {
            "label": "1 CPU thread, 0.1 ms",
            "params": {"beside": "threads", "interval_ms": 0.1},
            "modes": ["full"],
        },
        {
            "label": "1 CPU thread, 50 ms",
            "params": {"beside": "threads", "interval_ms": 50},
            "modes": ["full"],
        },
    ],
    "sizes": {"quick": [1], "standard": [1, 4, 16], "full": [1, 4, 16, 64]},
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import socket  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402
import probe_load  # noqa: E402

MOST = 1 << 17
"""So many requests of a client are kept, the first."""


def measure(params):
    probe.switch(params["interval_ms"])
    n, seconds = params["n"], params["seconds"]
    in_threads = params["computing"] if params["beside"] == "threads" else 0
    in_processes = params["computing"] if params["beside"] == "processes" else 0
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(n)
    gate, over = probe.Flags(1), probe.Flags(1)
    steps = probe.Numbers(max(1, in_processes))
    times = [probe.Numbers(1 + MOST) for _ in range(n)]

    def client(index):
        ask(listener.getsockname(), seconds, gate, times[index])

    def computer(index):
        steps.put(index, probe_load.compute(over))

    with probe.Family(params["timeout_s"]) as family, probe.Family(params["timeout_s"]) as computers:
        for index in range(in_processes):
            computers.fork(computer, index)
        for index in range(n):
            family.fork(client, index)
        probe_fairlead.schedule(params["scheduler"])
        connections = [listener.accept()[0] for _ in range(n)]
        listener.close()
        counted = []
        computing = probe.start(in_threads, lambda index: counted.append(probe_load.compute(over)))
        answering = probe.start(n, lambda index: echo(connections[index]))
        region = probe.Region()
        region.begin()
        gate.add(0)
        family.wait()
        region.end()
        over.add(0)
        for thread in computing + answering:
            thread.join()
        computers.wait()
    counted += [steps.get(index)[0] for index in range(in_processes)]
    return told(region.result({"asked": n, "requests": 0}), [kept(one) for one in times], sum(counted))


def told(answer, taken, steps):
    """The result with what the clients say in it."""
    seen = sorted(second for one, _ in taken for second in one)
    requests = sum(count for _, count in taken)
    if not seen:
        raise probe.Failed("no request was answered")
    answer["details"]["requests"] = int(requests)
    answer["details"]["metrics"] = {
        "request_s": sum(seen) / len(seen),
        "requests_per_s": requests / answer["wall_s"],
        "p50_s": probe_load.percentile(seen, 0.50),
        "p99_s": probe_load.percentile(seen, 0.99),
        "max_s": seen[-1],
        "steps_per_s": steps / answer["wall_s"],
    }
    return answer


def kept(times):
    """(seconds of each request that was kept, how many requests there were)."""
    (count,) = times.get(0)
    return times.get(1, int(min(count, MOST))), count


def ask(address, seconds, gate, times):
    """A client: one byte there and back, again and again."""
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    probe.wait_until(gate.all_are_set, "the server is ready")
    clock, send, receive = probe.clock, connection.sendall, connection.recv
    taken = []
    before = clock()
    end = before + seconds
    while before < end:
        send(b"x")
        if receive(1) != b"x":
            raise probe.Failed("the server closed the connection")
        after = clock()
        taken.append(after - before)
        before = after
    connection.close()
    times.put(0, float(len(taken)))
    times.put(1, *taken[:MOST])


def echo(connection):
    """The server's side of one connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        data = connection.recv(1)
        if not data:
            break
        connection.sendall(data)
    connection.close()


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

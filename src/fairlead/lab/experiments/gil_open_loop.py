"""A threaded server of short and long requests that arrive whether it keeps up or not."""

EXPERIMENT = {
    "id": "gil.open-loop",
    "title": "The convoy in an open loop: requests that do not wait for each other",
    "question": "How long do short requests take when they arrive at random among long ones?",
    "explanation": (
        "Clients that wait for each answer before they ask again slow down with the server, so that the "
        "requests that would have waited are never sent (coordinated omission). Here requests arrive at "
        "random moments, seven of ten with 0.1 ms of Python work, two with 1 ms and one with 20 ms, and "
        "each latency counts from the moment at which the request should have been sent. A short request "
        "that arrives while a long one, or a thread beside the server, holds the GIL waits a switch "
        "interval, and again after each of its own blocking calls."
    ),
    "size_name": "connections",
    "growth": False,
    "value": "short_s",
    "metrics": [
        {"name": "short_s", "title": "0.1 ms", "unit": "s"},
        {"name": "short_p99_s", "title": "0.1 ms, p99", "unit": "s"},
        {"name": "middle_s", "title": "1 ms", "unit": "s"},
        {"name": "long_s", "title": "20 ms", "unit": "s"},
        {"name": "p99_s", "title": "all, p99", "unit": "s"},
        {"name": "steps_per_s", "title": "steps", "unit": "per s"},
    ],
    "claims": [
        {
            "topic": "arrivals, scheduled",
            "of": {"beside": "threads", "interval_ms": 5, "n": "least"},
            "over": {"beside": "threads", "interval_ms": 5, "scheduler": "interactive", "n": "least"},
            "more_than": 1.1,
            "says": "requests of 0.1 ms that arrive at random are faster with the GIL scheduled",
            "otherwise": "requests of 0.1 ms that arrive at random are no faster with the GIL scheduled",
        },
        {
            "topic": "arrivals, 0.5 ms",
            "of": {"beside": "threads", "interval_ms": 5, "n": "least"},
            "over": {"beside": "threads", "interval_ms": 0.5, "n": "least"},
            "more_than": 1.1,
            "says": "requests of 0.1 ms that arrive at random are faster with setswitchinterval(0.0005)",
            "otherwise": (
                "requests of 0.1 ms that arrive at random are no faster with setswitchinterval(0.0005)"
            ),
            "main": False,
        },
    ],
    "parameters": {
        "beside": {
            "default": "nothing",
            "choices": ["nothing", "threads"],
            "help": "what computes beside the server",
        },
        "per_s": {
            "default": 60,
            "choices": [30, 60, 120],
            "help": "requests that arrive a second, on average",
        },
        "seconds": {
            "default": 4,
            "quick": 1,
            "choices": [0.2, 1, 4],
            "help": "how long requests arrive",
        },
        "interval_ms": {
            "default": 5,
            "choices": [0.1, 0.5, 5],
            "help": "the switch interval in milliseconds, sys.setswitchinterval",
        },
        "scheduler": {
            "default": "off",
            "choices": ["off", "interactive"],
            "help": "whether fairlead schedules the GIL meanwhile",
        },
    },
    "variants": [
        {"label": "alone", "modes": ["standard", "full"]},
        {"label": "alone, scheduled", "params": {"scheduler": "interactive"}, "modes": ["full"]},
        {"label": "1 CPU thread", "params": {"beside": "threads"}},
        {"label": "1 CPU thread, scheduled", "params": {"beside": "threads", "scheduler": "interactive"}},
        {"label": "1 CPU thread, 0.5 ms", "params": {"beside": "threads", "interval_ms": 0.5}},
        {
            "label": "1 CPU thread, one core",
            "params": {"beside": "threads"},
            "cores": "one",
            "modes": ["full"],
        },
    ],
    "sizes": {"quick": [16], "standard": [16], "full": [16, 64]},
    "timeout_s": 60,
    "pythons": ">=2.7",
}

import collections  # noqa: E402
import random  # noqa: E402
import select  # noqa: E402
import socket  # noqa: E402
import time  # noqa: E402

import probe  # noqa: E402
import probe_fairlead  # noqa: E402
import probe_load  # noqa: E402

KINDS = (("short", b"s", 0.0001, 0.7), ("middle", b"m", 0.001, 0.2), ("long", b"l", 0.02, 0.1))
"""Name, what is sent, seconds of work, share of the requests."""
SEED = 19


def measure(params):
    probe.switch(params["interval_ms"])
    n = params["n"]
    arrivals = planned(params["per_s"], params["seconds"])
    steps = work_of_a_request()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(n)
    gate, over = probe.Flags(1), probe.Flags(1)
    times = probe.Numbers(len(arrivals))

    def visitors(index):
        times.put(0, *visit(listener.getsockname(), n, arrivals, gate))

    with probe.Family(params["timeout_s"]) as family:
        family.fork(visitors, 0)
        probe_fairlead.schedule(params["scheduler"])
        connections = [listener.accept()[0] for _ in range(n)]
        listener.close()
        counted = []
        beside = 1 if params["beside"] == "threads" else 0
        computing = probe.start(beside, lambda index: counted.append(probe_load.compute(over)))
        answering = probe.start(n, lambda index: answer(connections[index], steps))
        region = probe.Region()
        region.begin()
        gate.add(0)
        family.wait()
        region.end()
        over.add(0)
        for thread in computing + answering:
            thread.join()
    return told(region.result({"asked": n}), arrivals, times.get(0, len(arrivals)), sum(counted))


def planned(per_s, seconds):
    """(when, which kind) of every request: the same for every sample. Each kind comes once at least."""
    draw = random.Random(SEED)
    arrivals = [(0.001 * place, place) for place in range(len(KINDS))]
    due = 0.0
    while due < seconds:
        due += draw.expovariate(per_s)
        point, kind = draw.random(), 0
        while kind < len(KINDS) - 1 and point >= KINDS[kind][3]:
            point -= KINDS[kind][3]
            kind += 1
        arrivals.append((due, kind))
    return sorted(arrivals)


def work_of_a_request():
    """Steps of pure Python for each kind, by what they take on this core at its best."""
    best = None
    for _ in range(5):
        before = probe.clock()
        probe_load.spin(20000)
        took = probe.clock() - before
        best = took if best is None or took < best else best
    return dict((sent, max(1, int(20000 * seconds / best))) for _, sent, seconds, _ in KINDS)


def visit(address, n, arrivals, gate):
    """Send every request when it is due, or as soon as a connection is free; seconds from due to answered."""
    free = [socket.create_connection(address) for _ in range(n)]
    for connection in free:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    probe.wait_until(gate.all_are_set, "the server is ready")
    taken = [0.0] * len(arrivals)
    waiting, asked, sent = collections.deque(), {}, 0
    begin = probe.clock()
    while sent < len(arrivals) or waiting or asked:
        now = probe.clock() - begin
        while sent < len(arrivals) and arrivals[sent][0] <= now:
            waiting.append(sent)
            sent += 1
        while waiting and free:
            place, connection = waiting.popleft(), free.pop()
            connection.sendall(KINDS[arrivals[place][1]][1])
            asked[connection] = place
        left = max(0.0, arrivals[sent][0] - now) if sent < len(arrivals) else None
        if not asked:
            time.sleep(left or 0.0)
            continue
        for connection in select.select(list(asked), [], [], left)[0]:
            if not connection.recv(1):
                raise probe.Failed("the server closed a connection")
            place = asked.pop(connection)
            taken[place] = probe.clock() - begin - arrivals[place][0]
            free.append(connection)
    for connection in free:
        connection.close()
    return taken


def answer(connection, steps):
    """The server's side of one connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        kind = connection.recv(1)
        if not kind:
            break
        probe_load.spin(steps[kind])
        connection.sendall(kind)
    connection.close()


def told(result, arrivals, taken, steps):
    """The result with what the visitors say in it."""
    result["details"]["requests"] = len(arrivals)
    figures = {"p99_s": probe_load.percentile(sorted(taken), 0.99), "steps_per_s": steps / result["wall_s"]}
    for number, (name, _, _, _) in enumerate(KINDS):
        of_kind = sorted(one for one, (_, kind) in zip(taken, arrivals) if kind == number)
        figures[name + "_s"] = sum(of_kind) / len(of_kind)
        if name == "short":
            figures["short_p99_s"] = probe_load.percentile(of_kind, 0.99)
    result["details"]["metrics"] = figures
    return result


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

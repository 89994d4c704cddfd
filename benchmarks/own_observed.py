"""What it costs a program to have its GIL counted, served or recorded.

    fairlead lab run benchmarks/own_observed.py --quick

A sample is one process, in which blocks alternate, in an order that is drawn anew for each round: nothing
observed, nothing once more, the GIL counted, an endpoint that is scraped ten times a second, every event
recorded into a file on disk. Blocks of one process are nearer to each other than processes are; so they are
compared within each sample, and samples tell how far that varies.
"""

EXPERIMENT = {
    "id": "own.observed",
    "question": "How much of its work does a program do while its GIL is counted, served or recorded?",
    "explanation": (
        "The time is what a piece of work takes while nothing is observed: an answer of a threaded "
        "server, or a hundred empty loops of a thread. The other times are those of the other blocks of "
        "the same process, and CPU time is that of a piece of work over that with nothing observed. Of "
        "nothing twice the ratio is 1, as near as the machine can tell."
    ),
    "size_name": "rounds",
    "smallest": 1,
    "growth": False,
    "ways": "case",
    "value": "nothing_s",
    "metrics": [
        {"name": "nothing_s", "title": "nothing", "unit": "s"},
        {"name": "again_s", "title": "again", "unit": "s"},
        {"name": "counting_s", "title": "counting", "unit": "s"},
        {"name": "scraped_s", "title": "scraped", "unit": "s"},
        {"name": "recording_s", "title": "recording", "unit": "s"},
        {"name": "again_cpu", "title": "again, CPU", "unit": "ratio"},
        {"name": "counting_cpu", "title": "counting, CPU", "unit": "ratio"},
        {"name": "scraped_cpu", "title": "scraped, CPU", "unit": "ratio"},
        {"name": "recording_cpu", "title": "recording, CPU", "unit": "ratio"},
        {"name": "scrapes", "title": "scrapes", "unit": "count"},
    ],
    "claims": [
        {"topic": "{case}, again", "over_metric": "again_s", "more_than": 0.99, "main": False,
         "says": "{title} does within 1 % as much with nothing observed a second time",
         "otherwise": "{title} does more than 1 % less with nothing observed a second time"},
        {"topic": "{case}, counting", "over_metric": "counting_s", "more_than": 0.95,
         "says": "{title} does more than 95 % of its work while its GIL is counted",
         "otherwise": "{title} does less than 95 % of its work while its GIL is counted"},
        {"topic": "{case}, scraped", "over_metric": "scraped_s", "more_than": 0.95,
         "says": "{title} does more than 95 % of its work while an endpoint is scraped",
         "otherwise": "{title} does less than 95 % of its work while an endpoint is scraped"},
        {"topic": "{case}, recording", "over_metric": "recording_s", "more_than": 0.9,
         "says": "{title} does more than 90 % of its work while its GIL is recorded",
         "otherwise": "{title} does less than 90 % of its work while its GIL is recorded"},
    ],
    "cases": {
        "echo-1": "a server of one client",
        "echo-4": "a server of four clients",
        "cpu-1": "a thread that computes",
        "cpu-4": "a program of four threads that compute",
    },
    "sizes": {"quick": [3], "standard": [8], "full": [20]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import http.client  # noqa: E402
import math  # noqa: E402
import mmap  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import select  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from contextlib import nullcontext  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402

BLOCK_S = 0.1
SETTLE_S = 0.02
SCRAPE_S = 0.1


class Work:
    """Threads that do something over and over, and what counts it."""

    def __init__(self, name):
        self.stop = False
        self.client = None
        kind, number = name.split("-")
        self.counts = [[0] for _ in range(int(number))]
        if kind == "echo":
            bodies = self.serve(len(self.counts))
        else:
            bodies = [partial(self.compute, count) for count in self.counts]
        self.threads = [threading.Thread(target=body) for body in bodies]
        for thread in self.threads:
            thread.start()

    def serve(self, clients):
        listener = socket.create_server(("127.0.0.1", 0))
        with tempfile.TemporaryFile() as file:
            file.truncate(8)
            self.answers = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
            self.client = beside("--client", listener.getsockname()[1], clients, file.fileno())
            return [partial(self.answer, listener.accept()[0]) for _ in range(clients)]

    def answer(self, connection):
        with connection:
            while not self.stop and (data := connection.recv(1)):
                connection.send(data)

    def compute(self, count):
        while not self.stop:
            for _ in range(100):
                pass
            count[0] += 1

    def done(self):
        return self.answers[0] if self.client else sum(count[0] for count in self.counts)

    def each(self):
        """Seconds, and CPU seconds of this process, for each piece of work, from now on."""
        before, begun, used = self.done(), time.perf_counter(), time.process_time()
        done = 0
        while not done:  # a busy machine may give the clients no time in a short block
            if self.client and self.client.poll() is not None:
                raise probe.Failed("the clients have ended")
            time.sleep(BLOCK_S)
            done = self.done() - before
        return (time.perf_counter() - begun) / done, (time.process_time() - used) / done

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()
        if self.client is not None:
            self.client.wait()


def beside(*arguments):
    """This script in another role, in a process of its own. The last argument is a file that it inherits."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, pass_fds=[int(arguments[-1])], stdout=subprocess.PIPE)


def client(port, clients, file):
    """Send a byte on every connection that has answered, and count the answers, until the server hangs up."""
    answers = memoryview(mmap.mmap(file, 8)).cast("Q")
    connections = {}
    poll = select.epoll()
    for _ in range(clients):
        connection = socket.create_connection(("127.0.0.1", port))
        connections[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
        connection.send(b"x")
    while connections:
        for number, _ in poll.poll():
            try:
                if connections[number].recv(1):
                    answers[0] += 1
                    connections[number].send(b"x")
                    continue
            except ConnectionError:
                pass
            poll.unregister(number)
            connections.pop(number).close()


def scrape(port, stop):
    """Ask for /metrics ten times a second until the pipe is closed; print how often it answered."""
    answered = 0
    while not select.select([stop], [], [], SCRAPE_S)[0]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            answered += bool(connection.getresponse().read())
        except OSError:
            pass  # nothing serves in this block
        finally:
            connection.close()
    print(answered)


def measure(params):
    gil = own.gil()
    with gil.serve("0") as server:
        port = server.port
    stop, stopped = os.pipe()
    region = probe.Region()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:  # which is on a disk
        modes = {
            "nothing": nullcontext,
            "again": nullcontext,
            "counting": gil.observe,
            "scraped": partial(gil.serve, f"127.0.0.1:{port}"),
            "recording": partial(gil.record, Path(directory) / "overhead.flrec"),
        }
        found = {mode: [] for mode in modes}
        scraper, work = beside("--scrape", port, stop), Work(params["case"])
        region.begin()
        try:
            for _ in range(params["n"]):
                for mode in random.sample(list(modes), len(modes)):
                    with modes[mode]():
                        time.sleep(SETTLE_S)
                        found[mode].append(work.each())
        finally:
            region.end()
            work.end()
            os.close(stopped)
            scrapes = int(scraper.communicate()[0])
    answer = region.result({})
    middles = {
        mode: [middle(column) for column in zip(*blocks, strict=True)] for mode, blocks in found.items()
    }
    times = {f"{mode}_s": seconds for mode, (seconds, _) in middles.items()}
    cpu = {
        f"{mode}_cpu": used / middles["nothing"][1]
        for mode, (_, used) in middles.items()
        if mode != "nothing"
    }
    answer["details"]["metrics"] = {**times, **cpu, "scrapes": scrapes}
    return answer


def middle(values):
    """The geometric mean, as of ratios."""
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    roles = {"--client": client, "--scrape": scrape}
    if sys.argv[1] in roles:
        roles[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        probe.main(EXPERIMENT, measure)

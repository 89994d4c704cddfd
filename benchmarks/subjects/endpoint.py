"""A program whose endpoint is asked. Settings: situation, seconds. Prints what was seen.

Situations: it is asked for /metrics ten times a second while a C call keeps the GIL (``c-call``), while eight
threads compute (``convoy``), while eight drop the GIL every few microseconds (``quick``), while a thousand
wait for a condition and two compute (``threads``), and while two compute and one forks, or starts programs,
all the time (``fork``, ``exec``).
"""

import ctypes
import json
import os
import subprocess
import sys
import threading

import subject

import fairlead.gil

SCRAPER = """
import glob, http.client, json, sys, time
port, seconds, process, times, given = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], [], []

def read(file):
    try:
        with open(file) as opened:
            return opened.read()
    except OSError:
        return ""  # that thread has ended, as around a fork

def serving():
    for comm in sorted(glob.glob("/proc/" + process + "/task/*/comm"), reverse=True):
        if read(comm) == "fairlead-serve\\n":
            return comm.replace("comm", "schedstat")

def coreless():
    "Seconds in which we, and the endpoint's thread, were ready to run and had no core."
    both = [(read(file).split() or "00")[1] for file in ("/proc/thread-self/schedstat", endpoint)]
    return [int(one) / 1e9 for one in both]

endpoint = serving() or ""
due = time.perf_counter()
end = due + seconds
while due < end:
    time.sleep(max(0, due - time.perf_counter()))
    if not read(endpoint):
        endpoint = serving() or ""
    before = coreless()
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read()
    connection.close()
    times.append(time.perf_counter() - begun)
    waits = [max(0, later - earlier) for earlier, later in zip(before, coreless())]
    given.append(times[-1] - min(times[-1], sum(waits)))
    due += 0.1
print(json.dumps([times, given]))
"""


def scraper(server: fairlead.gil.Server, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", SCRAPER, str(server.port), str(seconds), str(os.getpid())],
        stdout=subprocess.PIPE,
    )


def answers(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """``with_cores_s``: without the time in which the client, or the endpoint's thread, waited for a core."""
    times, given = map(sorted, json.loads(process.communicate()[0]))
    return {
        "median_s": times[len(times) // 2],
        "worst_s": times[-1],
        "with_cores_s": given[-1],
    }


def situation(name: str, seconds: float) -> dict[str, float]:
    with fairlead.gil.serve("0", stalled_after=1) as server:
        stop = threading.Event()
        waiting = 1000 if name == "threads" else 0
        computing = {"c-call": 0, "convoy": 8, "quick": 0}.get(name, 2)
        dropping = 8 if name == "quick" else 0

        def compute() -> None:
            while not stop.is_set():
                sum(range(1000))

        def drop() -> None:
            ends = os.pipe()
            while not stop.is_set():
                os.write(ends[1], b"x")
                os.read(ends[0], 1)

        def fork() -> None:
            while not stop.is_set():
                child = os.fork()
                if not child:
                    os._exit(0)
                os.waitpid(child, 0)

        def execute() -> None:
            while not stop.is_set():
                subprocess.run(["true"], check=True)

        starting = {"fork": [fork], "exec": [execute]}.get(name, [])
        bodies = starting + [stop.wait] * waiting + [compute] * computing + [drop] * dropping
        threads = [threading.Thread(target=body) for body in bodies]
        for thread in threads:
            thread.start()
        asked = scraper(server, seconds)
        if name == "c-call":
            ctypes.PyDLL(None).usleep(round((seconds + 0.2) * 1e6))  # keeps the GIL
        else:
            asked.wait()
        figures = answers(asked)
        stop.set()
        for thread in threads:
            thread.join()
    return figures


subject.say(**situation(subject.SETTINGS["situation"], subject.SETTINGS["seconds"]))

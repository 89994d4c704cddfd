"""How long does a thread wait for the GIL after a system call, beside threads that compute?

    ./python reproduce.py [CPU_THREADS] [SECONDS]

Needs a CPython and nothing else. A thread echoes 64 bytes over a socket pair for a client in another process,
which sends its next request a millisecond after the last was answered. Printed are the latency of the
requests, how many were answered, and the part of the time that the computing threads used a core.
"""

import os
import socket
import sys
import threading
import time


def client(sock, seconds):
    took = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        sock.sendall(b"x" * 64)
        if not sock.recv(64):
            break
        took.append(time.perf_counter() - begin)
        time.sleep(0.001)
    took = sorted(took) or [seconds]
    for part in (0.5, 0.99, 1):
        print(f"  p{part * 100:<4g} {took[min(len(took) - 1, int(len(took) * part))] * 1e6:10.0f} us")
    print(f"  {len(took) / seconds:.0f} requests/s", flush=True)


def compute(stop, used):
    begin = time.thread_time()
    while not stop:
        for _ in range(1000):
            pass
    used.append(time.thread_time() - begin)


def main():
    cpu_threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
    ours, theirs = socket.socketpair()
    print(f"{sys.version.split()[0]}, {cpu_threads} computing threads, {os.cpu_count()} cores", flush=True)
    if os.fork() == 0:
        ours.close()
        client(theirs, seconds)
        os._exit(0)
    theirs.close()
    stop, used = [], []
    threads = [threading.Thread(target=compute, args=(stop, used)) for _ in range(cpu_threads)]
    for thread in threads:
        thread.start()
    begin = time.perf_counter()
    while data := ours.recv(64):
        ours.sendall(data)
    elapsed = time.perf_counter() - begin
    stop.append(True)
    for thread in threads:
        thread.join()
    os.wait()
    print(f"  computing threads: {sum(used) / elapsed * 100:.0f} % of the time")


main()

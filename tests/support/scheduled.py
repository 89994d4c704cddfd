"""Programs for a Python process of its own, each printing what the tests want to know as one JSON line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

HEAD = """
import json, os, sys, threading, time
import fairlead.gil as gil

stop = threading.Event()

def spin():
    while not stop.is_set():
        sum(range(100))

def spinners(n, daemon=False):
    threads = [threading.Thread(target=spin, daemon=daemon) for _ in range(n)]
    for thread in threads:
        thread.start()
    return threads

def start_and_join(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def end(threads):
    stop.set()
    for thread in threads:
        thread.join()

"""

INTERPRETERS = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def create(kind):
    '''"legacy" has the main interpreter's GIL, "isolated" one of its own, from 3.12 on.'''
    if sys.version_info >= (3, 13):
        return interpreters.create(kind)
    return interpreters.create(isolated=kind == "isolated")

def run_in(made, program):
    failure = interpreters.run_string(made, program)
    assert failure is None, failure

"""
"""For programs with several interpreters."""

ECHO = """
import os, sys, threading
stop = threading.Event()
def spin():
    while not stop.is_set():
        sum(range(100))
threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
ends = os.pipe()
sys.setswitchinterval(1000)
for _ in range(50):
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
sys.setswitchinterval(0.005)
stop.set()
for thread in threads:
    thread.join()
"""
"""Each round trip through a pipe costs two takes of the GIL. Stock makes both of them wait for a switch
interval, while another thread computes: it would not come to its end."""

HELD = """
import ctypes, signal, subprocess

sleepers = []

def handlers():
    '''SIGUSR1 keeps the thread that gets it in its handler, until SIGUSR2 comes.'''
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(signal.SIGUSR1, ctypes.cast(libc.pause, ctypes.c_void_p))
    libc.signal(signal.SIGUSR2, ctypes.cast(libc.getpid, ctypes.c_void_p))

def let_them_end(process):
    libc = ctypes.CDLL(None)
    for thread in sleepers:
        libc.pthread_kill(ctypes.c_ulong(thread.ident), signal.SIGUSR2)
    for thread in sleepers:
        thread.join()
    process.wait()

def hold_up(tool):
    '''Brings threads to wait for the GIL, and a process outside to do a thing to them; what it said.'''
    pipes = [os.pipe() for _ in range(5)]
    for ends in pipes:
        sleepers.append(threading.Thread(target=os.read, args=(ends[0], 1)))
        sleepers[-1].start()
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER
    wakes = [ends[1] for ends in pipes]
    command = [sys.executable, "-c", OUTSIDE + tool, str(os.getpid()), json.dumps(wakes)]
    command.append(json.dumps([thread.native_id for thread in sleepers]))
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=wakes, text=True
    )
    assert process.stdout.readline() == "ready\\n"
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.05)  # so that none of them is just looking at its timer
    answer = ctypes.create_string_buffer(99)
    ctypes.PyDLL(None).read(process.stdout.fileno(), answer, 99)  # keeps the GIL
    sys.setswitchinterval(before)
    assert answer.value
    return process, answer.value.decode().strip()

OUTSIDE = '''
import ctypes, json, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, wakes, threads = (json.loads(word) for word in sys.argv[1:])
read, futex = {"x86_64": ("0", "202"), "aarch64": ("63", "98")}[os.uname().machine]
def call(thread):
    with open(f"/proc/{pid}/task/{thread}/syscall") as file:
        return file.read().split()
def waits(thread):
    return call(thread)[0] == futex
def tgkill(thread, signum):
    libc.syscall(ctypes.c_long({"x86_64": 234, "aarch64": 131}[os.uname().machine]), pid, thread, int(signum))
def stop(thread):
    for request in 0x4206, 0x4207:  # PTRACE_SEIZE, PTRACE_INTERRUPT
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) < 0:
            print("refused:", os.strerror(ctypes.get_errno()), flush=True)
            sys.exit()
    os.waitpid(thread, 0x40000000)  # __WALL
def all_wait():
    while True:  # until our answer is read, of 99 bytes at most: from then on the GIL is kept
        now = call(pid)
        if now[0] == read and int(now[3], 16) == 99:
            break
    for fd in wakes:
        os.write(fd, b"x")
    calm = 0
    while calm < 50:
        calm = calm + 1 if all(map(waits, threads)) else 0
print("ready", flush=True)
all_wait()
'''
"""
"""For threads that something is done to while they wait for the GIL."""

GIL = """
import ctypes

def pointer(function):
    function.restype = ctypes.c_void_p
    return function()

state = pointer(ctypes.pythonapi.PyThreadState_Get)
interpreter = pointer(ctypes.pythonapi.PyInterpreterState_Get)
member = (ctypes.c_void_p * 8).from_address(state)[:].index(interpreter) * 8

def gil_address():
    '''By what is known to stand in it: the switch interval, our thread state, and that it is locked.'''
    sys.setswitchinterval(0.012345)
    in_runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    start = interpreter if sys.version_info >= (3, 12) else in_runtime
    for address in range(start, start + 1_000_000, 8):
        interval, holder, locked = (ctypes.c_uint64 * 3).from_address(address)
        if interval == 12345 and holder == state and locked & 0xFFFFFFFF == 1:
            return address

MUTEX = 80  # bytes into it: after the interval, the holder, a flag, a count, and a condition of 48 bytes
"""
"""Finds the interpreter's GIL in memory."""


def start(program: str, *arguments: str, head: str = HEAD) -> subprocess.Popen[str]:
    """The program, running, with pipes to it and from it."""
    return subprocess.Popen(
        [sys.executable, "-c", head + program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout: float = 50, said: str = "") -> Any:
    """What it printed last, read as JSON; it must end with status 0, and fairlead have said just this."""
    with process:  # so that one that is killed is no other test's warning
        try:
            printed, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    expected = [f"fairlead: process {process.pid}: {said}"] * bool(said)
    assert [line for line in errors.splitlines() if line.startswith("fairlead:")] == expected
    return json.loads(printed.splitlines()[-1])


def run(program: str, *arguments: str, timeout: float = 50, said: str = "", head: str = HEAD) -> Any:
    """``start`` and ``finish``."""
    return finish(start(program, *arguments, head=head), timeout, said)

"""The GIL hooks in confined processes: no /proc, few descriptors, filtered system calls, one core."""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
import sys
from typing import Any

import confined
import pytest
from builds import SCHEDULED, answer, ran
from scheduled import ECHO, HEAD, INTERPRETERS

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
only_own = pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")

FILTER = """
import ctypes, os, struct

EACCES, EPERM, ENOSYS = (0x00050000 | errno for errno in (13, 1, 38))
KILL = 0x80000000
NUMBERS = {
    "x86_64": {"process_vm_readv": 310, "pipe2": 293},
    "aarch64": {"process_vm_readv": 270, "pipe2": 59},
}

def refuse(answers):
    '''From now on this process gets these answers to these system calls, as under a container's profile.'''
    numbers = NUMBERS[os.uname().machine]
    code = [(0x20, 0, 0, 0)]  # the call's number
    for name, answer in answers.items():
        code += [(0x15, 0, 1, numbers[name]), (0x06, 0, 0, answer)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(rules)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:  # PR_SET_SECCOMP
        print('"refused"')
        raise SystemExit
"""

OWN_GIL = f"""
{HEAD}{INTERPRETERS}
made = create("isolated")
gil.schedule()
with gil.observe() as watch:
    run_in(made, {ECHO!r})
    print(json.dumps(len({{thread.gil for thread in watch.threads}})))
"""
"""Prints how many GILs were seen."""


def ran_confined(steps: str, program: str) -> subprocess.CompletedProcess[str]:
    """After these steps of a shell, in a mount namespace of its own."""
    if shutil.which("unshare") is None or ran(["unshare", "--mount", "true"]).returncode != 0:
        pytest.skip("this user may not make a mount namespace")
    return ran(
        ["unshare", "--mount", "sh", "-c", f'{steps} && exec "$@"', "-", sys.executable, "-c", program]
    )


def filtered(program: str) -> Any:
    """The answer of one that gives itself a filter."""
    told = answer(ran([sys.executable, "-c", program]))
    if told == "refused":
        pytest.skip("this system does not let one filter system calls")
    return told


def test_without_proc_it_is_refused_and_said_why() -> None:
    program = """
import fairlead.gil as gil
try:
    gil.schedule()
except Exception as error:
    print(type(error).__name__, error)
"""
    done = ran_confined("mount -t tmpfs none /proc", program)
    assert done.returncode == 0, done.stderr
    assert "UnsupportedInterpreterError" in done.stdout
    assert "mount /proc" in done.stdout


@pytest.mark.parametrize("options", ["size=4k", "size=4k,ro"])
def test_without_room_for_the_page_of_orders_the_program_is_scheduled(options: str) -> None:
    fill = "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero >/dev/shm/full"
    assert answer(ran_confined(f"{fill} && mount -o remount,{options} /dev/shm", SCHEDULED)) == "interactive"


@only_own
@pytest.mark.parametrize("answer_to_it", ["EACCES", "EPERM", "ENOSYS", "KILL"])
def test_own_gils_are_seen_where_a_filter_refuses_to_read_memory(answer_to_it: str) -> None:
    assert filtered(f"{FILTER}\nrefuse({{'process_vm_readv': {answer_to_it}}})\n{OWN_GIL}") == 2


@only_own
def test_an_interpreter_whose_gil_was_not_found_is_observed_when_it_asks_for_that() -> None:
    """Nothing tells of its GIL where memory that may not be there cannot be read in any way."""
    program = f"""
{HEAD}{INTERPRETERS}{FILTER}
made = create("isolated")
run_in(made, "import fairlead._probe, fairlead.gil.observe.observation, fairlead.gil")
with gil.observe():
    pass
refuse({{"process_vm_readv": EACCES, "pipe2": EPERM}})
gil.schedule()
run_in(made, '''
import time
import fairlead.gil as gil
with gil.observe() as watch:
    for _ in range(10):
        time.sleep(0)
    assert any(thread.acquisitions >= 10 for thread in watch.threads), watch.threads
''')
print(json.dumps("seen"))
"""
    assert filtered(program) == "seen"


@pytest.mark.parametrize(
    "first",
    [
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))",
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])",
    ],
    ids=["sixteen descriptors", "one core"],
)
def test_with_sixteen_descriptors_or_on_one_core(first: str) -> None:
    assert answer(ran([sys.executable, "-c", f"{first}\n{SCHEDULED}"])) == "interactive"


RUN = ["-m", "fairlead", "run", "--", sys.executable, "-c"]


@pytest.mark.parametrize("cores", [0.5, 1.1, 2.0])
def test_with_a_cpu_quota(cores: float) -> None:
    program = SCHEDULED + "import fairlead.machine\nprint(json.dumps(fairlead.machine.cores().quota))"
    with confined.quota(cores) as within:
        assert answer(ran([*within, sys.executable, *RUN, program])) == cores


@pytest.mark.long
def test_watchdog_does_not_take_a_quota_that_is_used_up_for_threads_that_do_not_wake() -> None:
    """All threads stand still for .9 s of each second."""
    program = (
        SCHEDULED
        + """
with gil.observe():
    stop.clear()
    began = time.process_time()
    threads = [threading.Thread(target=spin) for _ in range(2)]
    ticking = [threading.Thread(target=tick) for _ in range(6)]
    for thread in (*threads, *ticking):
        thread.start()
    while time.process_time() - began < 0.25:
        time.sleep(0.01)
    stop.set()
    for thread in (*threads, *ticking):
        thread.join()
print(json.dumps(gil.scheduler().watchdog_tripped))
"""
    )
    ticks = "import time\ndef tick():\n    while not stop.is_set():\n        time.sleep(0.001)\n"
    with confined.quota(0.1, period_s=1.0) as within:
        assert answer(ran([*within, sys.executable, *RUN, ticks + program])) is False


SPINS_UNTIL_CALM = """
import json, os, threading, time
import fairlead.gil as gil
def spin():
    while True:
        sum(range(100))
from fairlead.gil.schedule import control
control.may_spin = lambda cores: True  # as under a quota that is large, and used up by other threads
there, back = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.close(there[1])
    while os.read(there[0], 1):
        os.write(back[1], b"x")
    os._exit(0)
gil.schedule()
def ask():
    while True:
        sum(range(5000))  # meanwhile the other thread spins, so that the quota is used up while one does
        os.write(there[1], b"x")
        os.read(back[0], 1)
threading.Thread(target=ask, daemon=True).start()
threading.Thread(target=spin, daemon=True).start()
while True:
    before = gil.scheduler()
    time.sleep(1)
    after = gil.scheduler()
    if after.waits > before.waits + 10 and after.spins == before.spins > 0:
        break
os.kill(child, 9)
os.waitpid(child, 0)  # the control group is to be empty
print(json.dumps("calm"))
"""


@pytest.mark.long
def test_no_thread_spins_for_a_while_after_a_quota_was_used_up() -> None:
    with confined.quota(0.7) as within:
        assert answer(ran([*within, sys.executable, "-c", SPINS_UNTIL_CALM])) == "calm"


@pytest.mark.parametrize("profile", ["docker", "systemd"])
def test_under_a_filter_of_system_calls(profile: str) -> None:
    if ctypes.util.find_library("seccomp") is None:
        pytest.skip("no libseccomp on this machine")
    if profile == "systemd" and shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine, which has the list")
    python = confined.python_under_docker() if profile == "docker" else confined.python_under_systemd()
    done = ran([*python, *RUN, SCHEDULED])
    if done.returncode == 77:
        pytest.skip("this system does not let one filter system calls")
    assert answer(done) == "interactive"

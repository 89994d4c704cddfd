"""The GIL hooks on interpreters that are built, embedded and linked in different ways."""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import builds
import pytest
from builds import NATIVE, SCHEDULED, answer, compiled, embedder, ran, runtime, writable_dynamic_cleared
from commands import FAIRLEAD
from scheduled import GIL, HEAD, INTERPRETERS, run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_interpreter_whose_dynamic_section_is_read_only(tmp_path: Path) -> None:
    """The dynamic linker leaves the addresses in there as they are in the file."""
    whole = runtime()
    copy = writable_dynamic_cleared(whole, tmp_path / whole.name)
    if whole == Path(sys.executable).resolve():
        done = ran([sys.executable, "-c", SCHEDULED], executable=copy)
    else:
        done = ran([sys.executable, "-c", SCHEDULED], {"LD_PRELOAD": copy})
    assert answer(done) == "interactive"


EMBEDDERS = {
    "no-pie": (["-fno-pie", "-no-pie"], False),
    "pie": (["-fPIE", "-pie"], False),
    "lazy": ([], True),
    "stripped": (["-s"], True),
    "now-no-plt": (["-Wl,-z,now", "-fno-plt"], True),
    "norelro": (["-Wl,--gc-sections", "-Wl,-z,norelro"], True),
}
"""How a program is linked that takes the address of the interpreter's functions, and whether it has the
interpreter within itself, as deadsnakes' and python-build-standalone's: then its calls into libc are in its
own table."""


@pytest.mark.parametrize(
    "kind",
    [name if name.endswith("pie") else pytest.param(name, marks=pytest.mark.long) for name in EMBEDDERS],
)
def test_program_that_embeds_the_interpreter(kind: str, tmp_path: Path) -> None:
    flags, within = EMBEDDERS[kind]
    done = ran([embedder(tmp_path, *flags, static=within), sys.executable, SCHEDULED])
    assert answer(done) == "interactive"


def test_interpreter_that_is_ended_and_begun_again(tmp_path: Path) -> None:
    done = ran([embedder(tmp_path), sys.executable, *[SCHEDULED] * 3])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == '"interactive"\n' * 3


def test_interpreter_that_is_ended_and_begun_again_under_fairlead_run(tmp_path: Path) -> None:
    program = [embedder(tmp_path), sys.executable, *[SCHEDULED.replace("gil.schedule()", "")] * 3]
    done = ran([*FAIRLEAD, "run", "--children", "--", *program])
    assert (done.returncode, done.stdout, done.stderr) == (0, '"interactive"\n' * 3, "")


@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc_minimal", ""])
def test_beside_another_allocator_and_with_all_symbols_bound_at_the_start(allocator: str) -> None:
    given = {"LD_PRELOAD": ctypes.util.find_library(allocator)} if allocator else {"LD_BIND_NOW": "1"}
    if None in given.values():
        pytest.skip(f"{allocator} is not installed")
    assert answer(ran([sys.executable, "-c", SCHEDULED], given)) == "interactive"


@pytest.mark.long
@pytest.mark.parametrize("clock", ["+1d", "+1d x10", "-3d"])
def test_scheduling_works_beside_a_library_that_fakes_the_time(clock: str) -> None:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("libfaketime is not installed")
    # the times of files stay true: an editable install would find all changed, and build itself anew
    preloaded = {"LD_PRELOAD": str(found[0]), "FAKETIME": clock, "NO_FAKE_STAT": "1"}
    assert answer(ran([sys.executable, "-c", SCHEDULED], preloaded)) == "interactive"


def test_another_c_library_is_refused_by_name() -> None:
    """With musl's headers: what the hooks would be built to say. No Python of musl's is run."""
    compiler = shutil.which("musl-gcc")
    if compiler is None:
        pytest.skip("musl-gcc is not installed")
    said = subprocess.run(
        [compiler, "-E", "-P", f"-I{NATIVE}", f"-I{builds.include()}", "-"],
        input='#include "gil/interpreter/compat.h"\nFL_PROBE_REFUSAL\n',
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.endswith('and this is another one (musl?)"\n')


INTERPOSER = """
import ctypes
other = ctypes.CDLL(sys.argv[1])
landmark = ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p)
"""


@pytest.fixture(scope="module")
def interposed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Runs a program that has the library of a profiler, say: what it prints."""
    text = (Path(builds.__file__).parent / "interposer.c").read_text()
    got = NATIVE / "gil" / "interpreter" / "got.c"
    library = tmp_path_factory.mktemp("library") / "interposer.so"
    return partial(run_with, compiled(library, text, str(got), "-shared", "-fPIC"))


def run_with(library: Path, program: str, said: str = "") -> Any:
    return run(program, str(library), head=HEAD + INTERPOSER, said=said)


def test_another_library_that_has_hooked_sleep_keeps_its_hook(
    interposed: Callable[..., Any],
) -> None:
    program = """
assert other.hook(landmark)
gil.schedule()
for _ in range(5):
    time.sleep(0)
print(json.dumps(other.count()))
"""
    assert interposed(program) == 5


def test_library_that_hooks_the_gil_while_the_hooks_rest_leaves_the_program_unscheduled_and_fairlead_says_so(
    interposed: Callable[..., Any],
) -> None:
    program = """
from fairlead import errors
from fairlead.gil.schedule import outside
gil.schedule()
assert other.hook_signal(landmark)
spinners(1)
for _ in range(30):
    os.stat("/")  # beside the other thread, which computes: a wait for ever would be seen
stop.set()
try:
    state = gil.scheduler()
except errors.UnsupportedInterpreterError as error:
    state = str(error)
print(json.dumps([state, outside.send(os.getpid(), "status").hooks]))
"""
    why = "another library has hooked the functions that the interpreter takes its GIL with"
    said = f"{why}; the interpreter's own scheduling is in force"
    assert interposed(program, said) == [why, "out"]


def test_page_for_orders_that_is_made_while_a_thread_first_waits_does_not_say_that_the_hooks_rest(
    interposed: Callable[..., Any],
) -> None:
    program = """
import _thread
from fairlead import _probe
from fairlead.gil.schedule import outside
own = ctypes.cast(ctypes.PyDLL(_probe.__file__).PyInit__probe, ctypes.c_void_p)
done = []
@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
def fill(file, offset, size):
    _thread.start_new_thread(done.append, (1,))
    while not done:
        pass  # the thread waits for the GIL
    os.posix_fallocate(file, offset, size)
    return 0
assert other.replace(own, b"posix_fallocate64", fill)
gil.schedule()
print(json.dumps([done, outside.send(os.getpid(), "status").hooks]))
"""
    assert interposed(program) == [[1], "awake"]


def test_a_hook_that_the_dynamic_linker_overwrites_is_put_in_again_while_only_the_scheduler_is_on(
    interposed: Callable[..., Any],
) -> None:
    program = """
gil.schedule()
gil.scheduler()  # the hooks do not rest
pipes = [os.pipe() for _ in range(2)]
def answer():
    while os.read(pipes[0][0], 1) == b"x":
        os.write(pipes[1][1], b"y")
thread = threading.Thread(target=answer)
thread.start()
assert other.overwrite(landmark, b"pthread_cond_timedwait")
rounds = 0
while other.is_overwritten() and rounds < 20_000:
    os.write(pipes[0][1], b"x")
    os.read(pipes[1][0], 1)
    rounds += 1
os.write(pipes[0][1], b"z")
thread.join()
print(json.dumps(bool(other.is_overwritten())))
"""
    assert interposed(program) is False


def test_wait_that_ends_the_rest_of_the_hooks_does_not_begin_before_they_were_in(
    interposed: Callable[..., Any],
) -> None:
    """Its thread once waited for the GIL's mutex, while the hooks were in, and did not take the GIL then."""
    program = """
import mmap
from fairlead.gil.schedule import outside
library = ctypes.PyDLL(sys.argv[1])  # keeps the GIL
with gil.observe():
    assert library.lock_in_a_thread(landmark, ctypes.c_void_p(gil_address() + MUTEX))
    gil.counters()  # what it imports; reading a file would drop the GIL
gil.schedule(policy="stock")
taken = threading.Event()
@ctypes.CFUNCTYPE(None)
def take():
    taken.set()
sys.setswitchinterval(1000)
with outside._page(os.getpid()) as (file, place, page), mmap.mmap(file, 0) as mapped:
    said = lambda: outside.HOOKS[outside._Page(*outside._LAYOUT.unpack_from(mapped, place)).hooks]
    assert said() == "resting"
    told = time.monotonic()
    library.call_in_the_thread(take)
    while said() == "resting":
        pass
    with gil.observe():
        waited = gil.counters()["fairlead_gil_waited_seconds_total"]
        since = time.monotonic() - told
        assert not taken.is_set()
taken.wait()
print(json.dumps([0 < waited, waited <= since]))
"""
    assert interposed(GIL + program) == [True, True]


UNSEEN = "threads wait for the GIL, and fairlead's hooks do not see them"


def test_program_whose_waits_another_library_hides_is_not_scheduled_and_fairlead_says_so_once(
    interposed: Callable[..., Any],
) -> None:
    program = """
import subprocess
gil.schedule()
before = gil.scheduler().policy
assert other.hide_waits(landmark)
spinners(2)
while gil.scheduler().policy != "stock":
    pass
gil.schedule()  # which asks for it again
while gil.scheduler().policy != "stock":
    pass
stop.set()
status = [sys.executable, "-m", "fairlead", "ctl", "--pid", str(os.getpid()), "status"]
answer = subprocess.run(status, stdout=subprocess.PIPE, text=True).stdout
print(json.dumps([before, answer.partition(": ")[2]]))
"""
    said = f"{UNSEEN}; the interpreter's own scheduling is in force"
    status = "policy stock: threads wait for the GIL, and the hooks do not see them\n"
    assert interposed(program, said) == ["interactive", status]


def test_observation_whose_waits_another_library_hides_says_so_once(
    interposed: Callable[..., Any],
) -> None:
    program = """
before, pipe = os.dup(2), os.pipe()
with gil.observe():
    assert other.hide_waits(landmark)
    os.dup2(pipe[1], 2)
    spinners(2)
    line = os.read(pipe[0], 1000)
    stop.set()
os.dup2(before, 2)
os.write(2, line)
print("true")
"""
    assert interposed(program, f"{UNSEEN}; such waits are not counted")


def test_a_hook_that_the_dynamic_linker_overwrites_while_threads_compute_is_put_in_again(
    interposed: Callable[..., Any],
) -> None:
    program = """
gil.schedule()
gil.scheduler()  # the hooks do not rest
assert other.overwrite(landmark, b"pthread_cond_timedwait")
spinners(2)
while other.is_overwritten():
    pass
stop.set()
print(json.dumps(gil.scheduler().policy))
"""
    assert interposed(program) == "interactive"


PENDING = """
#include <Python.h>
#include <time.h>

int _PyEval_AddPendingCall(PyInterpreterState *, int (*)(void *), void *, int); /* exported, if not public */

static int nothing(void *unused)
{
    return unused != NULL;
}

/* Signals the holder of the GIL from a thread that has it not, and then does something else. */
void signal_and_go_on(int times, long ns)
{
    struct timespec rest = {0, ns};
    for (int i = 0; i < times; i++) {
        (void)_PyEval_AddPendingCall(PyInterpreterState_Main(), nothing, NULL, 0);
    }
    (void)nanosleep(&rest, NULL);
}
"""


@pytest.mark.timing
@pytest.mark.skipif(
    sys.version_info < (3, 13), reason="before 3.13 a pending call does not lock the GIL's mutex"
)
def test_a_thread_that_only_signals_the_holder_is_not_said_to_have_waited(tmp_path: Path) -> None:
    """It may find the GIL's mutex locked, which is not the beginning of a wait for the GIL."""
    library = compiled(tmp_path / "pending.so", PENDING, "-shared", "-fPIC", f"-I{builds.include()}")
    program = """
import ctypes
signal = ctypes.CDLL(sys.argv[1]).signal_and_go_on
def switch():
    while not stop.is_set():
        time.sleep(0)
with gil.observe() as watch:
    thread = threading.Thread(target=switch)
    thread.start()
    for _ in range(20):
        signal(20_000, ctypes.c_long(100_000_000))
    stop.set()
    thread.join()
    seen = [one.wait_histogram for one in watch.threads if one.native_id == threading.get_native_id()]
print(json.dumps(seen[0]))
"""
    # from 67 ms on, which some waits may take on a busy machine, and each of the 20 rests does
    assert sum(run(program, str(library))[26:]) < 10


HOLD_MUTEX = """
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int locked;
static double seconds;

static void *hold(void *mutex)
{
    struct timespec now = {0, 0};
    pthread_mutex_lock(mutex);
    locked = 1;
    while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < seconds) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Has another thread, which is of the calling one's priority, lock the mutex until it has run for so long. */
int hold_mutex(pthread_mutex_t *mutex, double how_long)
{
    pthread_t thread;
    struct timespec moment = {0, 100000};
    seconds = how_long;
    locked = 0;
    int error = pthread_create(&thread, NULL, hold, mutex) || pthread_detach(thread);
    while (!error && !locked) {
        nanosleep(&moment, NULL);
    }
    return error;
}
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 all interpreters share one GIL")
def test_reading_another_gil_lets_threads_of_lower_priority_run(tmp_path: Path) -> None:
    """On one core, a real-time thread that spins until another unlocks keeps that other from running."""
    library = compiled(tmp_path / "holder.so", HOLD_MUTEX, "-shared", "-fPIC", "-pthread")
    program = """
import ctypes
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
hold_mutex = ctypes.PyDLL(sys.argv[1]).hold_mutex  # keeps the GIL

def pointer(function, *arguments):
    function.restype = ctypes.c_void_p
    return function(*map(ctypes.c_void_p, arguments))

api = ctypes.pythonapi
main, state = pointer(api.PyInterpreterState_Main), pointer(api.PyThreadState_Get)
sys.setswitchinterval(0.012345)
offset = next(
    offset
    for offset in range(0, 1_000_000, 8)
    if (ctypes.c_uint64 * 2).from_address(main + offset)[:] == [12345, state]
)
made = create("isolated")
mutex = pointer(api.PyInterpreterState_Head) + offset + 80
ends = os.pipe()
with gil.observe():
    computing = "import os; os.write(%d, b'x'); sum(range(30_000_000))" % ends[1]
    thread = threading.Thread(target=interpreters.run_string, args=(made, computing))
    thread.start()
    os.read(ends[0], 1)
    seconds = []
    try:
        for _ in range(4):
            assert hold_mutex(ctypes.c_void_p(mutex), ctypes.c_double(0.005)) == 0
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            began = time.thread_time()
            gil.counters()
            seconds.append(time.thread_time() - began)
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        pass
    thread.join()
print(json.dumps(seconds))
"""
    seconds = run(program, str(library), head=HEAD + INTERPRETERS)
    if not seconds:
        pytest.skip("this user may not use the real-time classes")
    # a reader that spins does so until the kernel keeps it from its core, near the end of a second
    assert max(seconds) < 0.2, "CPU time of the reader, whatever else the core does"

#!/bin/sh
# Build for AArch64 with warnings as errors, run the C tests under qemu, and compile both extensions.
#
#     tools/test_aarch64.sh [PYTHON...]
#
# PYTHON: interpreters whose headers the extensions are compiled with (default: python3). Their own processor
# does not matter: the headers of all 64-bit Linux builds agree in what is used. Needs meson and ninja on PATH
# (make test brings them into .venv), gcc-aarch64-linux-gnu and qemu-user.
#
# With an AArch64 interpreter at hand, PYTHON_AARCH64="qemu-aarch64 -L ROOT ROOT/usr/bin/python3.11", the
# extensions are linked, too, and it observes, records, forks and schedules itself. ROOT is where its packages
# were unpacked. What none of this shows is how such a machine's cores see each other's writes: the emulator
# keeps the stronger order of the machine it runs on.
set -eu
cd "$(dirname "$0")/.."
build=build/aarch64
test -f $build/build.ninja || meson setup -Dpython=false -Dtests=true -Dwerror=true --cross-file tools/aarch64.ini $build
meson test -C $build --timeout-multiplier 5 --print-errorlogs

probe="$(find native/gil -name '*.c' -not -path '*/policy/*' -not -path '*/simulator/*' -not -path '*/trace/*')"
bindings="$(find native/module native/*/bind -name '*.c' -not -path 'native/gil/*')"
core="$(find native/machine native/sync native/interpreters native/gil/policy native/gil/trace -name '*.c' -not -path '*/bind/*' -not -path '*/os/*')"
warnings="-Wall -Wextra -Werror -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wstrict-prototypes"
for python in "${@:-python3}"; do
    include=$($python -c "import sysconfig; print(sysconfig.get_path('include'))")
    for source in $probe $bindings; do
        aarch64-linux-gnu-gcc -std=gnu11 -O2 $warnings -fPIC -isystem "$include" -I native \
            -c "$source" -o $build/checked.o
    done
    echo "extensions compiled with the headers of $($python -V)"
done

test -n "${PYTHON_AARCH64:-}" || exit 0
include=$("${1:-python3}" -c "import sysconfig; print(sysconfig.get_path('include'))")
site=$build/site
rm -rf $site && mkdir -p $site && cp -r src/fairlead $site/
shared="$core native/machine/os/linux.c native/machine/os/ticks_source.c native/machine/os/unix.c"
link="aarch64-linux-gnu-gcc -std=gnu11 -O2 -fPIC -fvisibility=hidden -shared -isystem $include -I native"
$link $probe $shared -lpthread -ldl -o $site/fairlead/_probe.so
$link $bindings native/gil/simulator/*.c $shared -o $site/fairlead/_native.so
PYTHONPATH=$site $PYTHON_AARCH64 - $build/program.flrec <<'PROGRAM'
import ctypes, os, platform, sys, threading, time
import fairlead.gil

def nap():
    for _ in range(4):
        ctypes.PyDLL(None).usleep(60_000)
        time.sleep(0.001)

def compute():
    while not stop.is_set():
        sum(range(500))

def late(naps=40):
    begun = time.monotonic()
    for _ in range(naps):
        time.sleep(0.001)
    return (time.monotonic() - begun) / naps

assert platform.machine() == "aarch64"
with fairlead.gil.record(sys.argv[1]), fairlead.gil.observe() as seen:
    stop = threading.Event()
    threads = [threading.Thread(target=work, name=work.__name__) for work in (nap, compute)]
    for thread in threads:
        thread.start()
    threads[0].join()
    child = os.fork()
    if child == 0:
        with fairlead.gil.observe() as afresh:
            sum(range(10_000))
        os._exit(0 if afresh.threads else 1)
    assert os.waitpid(child, 0)[1] == 0
    stop.set()
    threads[1].join()
assert {"nap", "compute", "MainThread"} <= {thread.name for thread in seen.threads}
(long_hold,) = (finding for finding in seen.findings if finding.kind == "long-hold")
assert (long_hold.threads, long_hold.evidence["function"]) == (("nap",), "nap"), long_hold
assert long_hold.evidence["asleep_in_holds_seconds"] > 0.1, long_hold
stop.clear()
busy = [threading.Thread(target=compute) for _ in range(2)]
for thread in busy:
    thread.start()
fairlead.gil.schedule()
scheduled = late()
fairlead.gil.schedule(policy="stock")
stock = late()
stop.set()
print("observed, recorded, forked and scheduled:", platform.machine(), platform.python_version())
print(long_hold.summary)
print(f"sleep(1 ms) beside two threads that compute: {scheduled * 1e3:.1f} ms scheduled, {stock * 1e3:.1f} stock")
PROGRAM

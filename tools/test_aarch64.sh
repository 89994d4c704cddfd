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
# extensions are linked, too, and it observes its own GIL. ROOT is where its packages were unpacked.
set -eu
cd "$(dirname "$0")/.."
build=build/aarch64
test -f $build/build.ninja || meson setup -Dpython=false -Dtests=true -Dwerror=true --cross-file tools/aarch64.ini $build
meson test -C $build --timeout-multiplier 5 --print-errorlogs

warnings="-Wall -Wextra -Werror -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wstrict-prototypes"
for python in "${@:-python3}"; do
    include=$($python -c "import sysconfig; print(sysconfig.get_path('include'))")
    for source in native/probe/*.c native/bind/*.c; do
        aarch64-linux-gnu-gcc -std=gnu11 -O2 $warnings -fPIC -isystem "$include" -I native \
            -c "$source" -o $build/checked.o
    done
    echo "extensions compiled with the headers of $($python -V)"
done

test -n "${PYTHON_AARCH64:-}" || exit 0
include=$("${1:-python3}" -c "import sysconfig; print(sysconfig.get_path('include'))")
site=$build/site
rm -rf $site && mkdir -p $site && cp -r src/fairlead $site/
shared="native/core/*.c native/platform/linux.c native/platform/ticks.c native/platform/unix.c"
link="aarch64-linux-gnu-gcc -std=gnu11 -O2 -fPIC -fvisibility=hidden -shared -isystem $include -I native"
$link native/probe/*.c $shared -lpthread -ldl -o $site/fairlead/_probe.so
$link native/bind/*.c native/sim/*.c $shared -o $site/fairlead/_native.so
PYTHONPATH=$site $PYTHON_AARCH64 - <<'PROGRAM'
import platform, threading, time
import fairlead.gil

def spin():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass

with fairlead.gil.observe() as seen:
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
spun = sorted(seen.threads, key=lambda thread: -thread.held_seconds)[:2]
assert all(thread.forced_drops and thread.waited_seconds for thread in spun), spun
print("observed its own GIL:", platform.machine(), platform.python_version(), seen.findings[0].kind)
PROGRAM

#!/bin/sh
# make_venv.sh PYTHON DIRECTORY - make a virtual environment that fairlead can be built in,
# or say in one line what is missing on this machine.
set -eu
python=$1
directory=$2

fail() { echo "fairlead: $*" >&2; exit 1; }

rm -rf "$directory"
command -v "$python" >/dev/null || fail "there is no $python here; install Python 3.11 or newer, or name one: make PYTHON=python3.13"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "$python does not run"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "needs Python 3.11 or newer, and $python is $version; name another one: make PYTHON=python3.13"
command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null ||
    fail "there is no C compiler here; install one (Debian, Ubuntu: apt install gcc)"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$include/Python.h" ] ||
    fail "$python has no C headers ($include/Python.h); install them (Debian, Ubuntu: apt install python3-dev)"

if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv "$directory"
elif "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --without-pip "$directory"
    "$python" -m pip --quiet --python "$directory/bin/python" install pip
else
    fail "$python has neither ensurepip nor pip; install one (Debian, Ubuntu: apt install python3-venv)"
fi

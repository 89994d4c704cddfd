#!/bin/bash
# get_interpreters.sh - put extra Python interpreters on a Debian machine (amd64), without
# touching the host's libc, its apt sources or its dpkg database.
#
#   get_interpreters.sh [3.14] [3.15] [pypy3.11] [3.13t] [3.14t] [3.15t] ...
#
#   X.Y, pypy3.11  prebuilt: Debian's own packages of $SUITE, closure resolved by apt, unpacked in a
#                  private root $PREFIX/NAME together with their own libc/ld.so, then patchelf'd.
#   X.Yt           free-threaded: built from Debian's source package (apt-get source) of $SUITE: the
#                  newest version whose source the mirror serves (3.13t where tried; two to three minutes).
#
# Result: $PREFIX/bin/{python3.14,python3.15,pypy3.11,python3.14t,...}
#
# Environment:
#   PREFIX      ~/.local/share/pythons
#   SUITE       sid          Debian suite on the machine's own mirror
#   MIRROR      (found)      the machine's Debian mirror; by default read from its apt sources
#   JOBS        nproc        OPT  compiler flags of the free-threaded build
# Needs root (apt, dpkg -x). All downloads go through apt, which checks InRelease signatures and hashes.
set -euo pipefail
PREFIX=${PREFIX:-$HOME/.local/share/pythons}; SUITE=${SUITE:-sid}; JOBS=${JOBS:-$(nproc)}
OPT=${OPT:--DNDEBUG -g1 -O3 -Wall}
W=$PREFIX/.work; KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
say() { echo "[get_interpreters $(date +%H:%M:%S)] $*"; }
die() { say "ERROR: $*" >&2; exit 1; }
[ "$(dpkg --print-architecture)" = amd64 ] || die "only amd64 is handled"
[ $# -gt 0 ] || die "usage: $0 X.Y|X.Yt|pypy3.11 ..."
mkdir -p "$PREFIX/bin" "$W"

find_mirror() {   # the Debian mirror of the machine's existing apt sources
  [ -n "${MIRROR:-}" ] && return
  MIRROR=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
           awk -F'|' '$1=="Debian"{print $2; exit}')
  [ -n "$MIRROR" ] || MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
           grep -E '/debian/?$' | head -1)
  [ -n "$MIRROR" ] || die "no Debian mirror in the machine's apt sources; set MIRROR"
}

mkapt() {         # mkapt NAME 'sources line'... : an isolated apt; use as  apt-get -c $W/apt-NAME/conf
  local d=$W/apt-$1; shift
  mkdir -p "$d"/{state/lists/partial,cache/archives/partial}; : > "$d/status"
  printf '%s\n' "$@" > "$d/sources.list"
  cat > "$d/conf" <<EOF
Dir::Etc::SourceList "$d/sources.list"; Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null"; Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$d/state"; Dir::State::status "$d/status"; Dir::Cache "$d/cache";
Acquire::Languages "none"; Acquire::AllowInsecureRepositories "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
APT::Install-Recommends "false"; APT::Get::AllowUnauthenticated "false"; APT::Sandbox::User "root";
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
EOF
  # skip the update while the lists are for the same sources and under 12 hours old
  cmp -s "$d/sources.list" "$d/sources.list.key" && [ -n "$(find "$d/updated" -mmin -720 2>/dev/null)" ] && return
  say "apt-get update (isolated, $(basename "$d"))"
  apt-get -c "$d/conf" -q update -o APT::Update::Error-Mode=any >"$d/update.log" 2>&1 || { tail -5 "$d/update.log"; die "apt-get update failed"; }
  cp "$d/sources.list" "$d/sources.list.key"; touch "$d/updated"
}
bin_apt() { find_mirror; mkapt bin "deb [signed-by=$KEYRING] $MIRROR $SUITE main"; }
src_apt() { find_mirror; mkapt src "deb-src [signed-by=$KEYRING] $MIRROR $SUITE main"; }

get_patchelf() {  # the host's own release's patchelf, unpacked privately
  PATCHELF=$(command -v patchelf || true); [ -n "$PATCHELF" ] && return
  PATCHELF=$W/patchelf/usr/bin/patchelf; [ -x "$PATCHELF" ] && return
  mkdir -p "$W/dl"; (cd "$W/dl" && rm -f patchelf_*.deb && apt-get -q download patchelf >/dev/null 2>&1) || die "no patchelf"
  dpkg -x "$W"/dl/patchelf_*.deb "$W/patchelf"
}

unpack_closure() { # unpack_closure ROOT 'closure packages' 'extra packages, without their dependencies'
  local root=$1 a=$W/apt-bin
  bin_apt; get_patchelf
  rm -f "$a"/cache/archives/*.deb
  say "downloading $2 $3"
  apt-get -c "$a/conf" -q -y --download-only install $2 >"$a/dl.log" 2>&1 || { tail -5 "$a/dl.log"; die "download failed"; }
  (cd "$a/cache/archives" && apt-get -c "$a/conf" -q download $3 >>"$a/dl.log" 2>&1) || { tail -5 "$a/dl.log"; die "download failed"; }
  rm -rf "$root"; mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  for l in bin sbin lib lib64; do ln -s usr/$l "$root/$l"; done    # merged /usr, as in sid
  for d in "$a"/cache/archives/*.deb; do dpkg -x "$d" "$root"; dpkg-deb -f "$d" Package Version | paste -sd' ' ; done > "$root/PACKAGES"
  rm -f "$a"/cache/archives/*.deb
  rm -rf "$root"/usr/share/{doc,man,locale,zoneinfo,lintian,bug} "$root"/usr/lib/x86_64-linux-gnu/{gconv,libpython*.a} "$root"/usr/lib/python3*/config-*/libpython*.a
  [ -z "$(find "$root" -name 'libpython*.so*' -type l -xtype l -print -delete)" ] || true
}
patch_elf() {     # patch_elf ROOT FILE : run FILE on ROOT's ld.so, find its libraries in ROOT first
  local lib=$1/usr/lib/x86_64-linux-gnu
  "$PATCHELF" --set-interpreter "$lib/ld-linux-x86-64.so.2" "$2"
  "$PATCHELF" --force-rpath --set-rpath "$lib" "$2"
}

launcher() {      # launcher TARGET FILE : not a symlink, or 'venv --copies' would look for the stdlib next to FILE
  rm -f "$2"; printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" > "$2"; chmod 755 "$2"
}

cpython_deb() {   # cpython_deb X.Y
  local v=$1 root=$PREFIX/$1 t=x86_64-linux-gnu
  unpack_closure "$root" "python$v-venv libstdc++6" "libpython$v-dev libpython$v-testsuite"
  patch_elf "$root" "$root/usr/bin/python$v"
  # headers: Debian's pyconfig.h forwards to <TRIPLET/pythonX.Y/pyconfig.h>, which only works under /usr/include
  cp "$root/usr/include/$t/python$v/pyconfig.h" "$root/usr/include/python$v/pyconfig.h"
  # ensurepip's wheels, and other absolute paths of the build
  sed -i "s#'/usr/share/python-wheels\(/\{0,1\}\)'#'$root/usr/share/python-wheels\1'#g" \
      "$root"/usr/lib/python$v/_sysconfigdata*.py "$root"/usr/lib/python$v/ensurepip/__init__.py
  rm -f "$root/usr/lib/python$v/sitecustomize.py"    # dangling link into /etc
  launcher "$root/usr/bin/python$v" "$PREFIX/bin/python$v"
  "$PREFIX/bin/python$v" -c 'import ssl, sqlite3, ctypes, lzma, zlib, bz2, readline, sys; print(sys.version)'
}
pypy_deb() {
  local root=$PREFIX/pypy3.11 b
  unpack_closure "$root" "pypy3-venv libstdc++6" "pypy3-dev"
  b=$(readlink -f "$root/usr/bin/pypy3")
  patch_elf "$root" "$b"
  grep -rlE "/usr/share/python-wheels" "$root"/usr/lib/pypy3*/ --include=*.py 2>/dev/null |
      xargs -r sed -i "s#/usr/share/python-wheels#$root/usr/share/python-wheels#g"
  launcher "$root/usr/bin/pypy3" "$PREFIX/bin/pypy3.11"
  "$PREFIX/bin/pypy3.11" -c 'import ssl, sqlite3, ctypes, lzma, zlib, bz2, sys; assert sys.version_info[:2] == (3, 11); print(sys.version)'
}

BUILD_DEPS="gcc make pkg-config xz-utils libssl-dev zlib1g-dev libffi-dev libsqlite3-dev libbz2-dev liblzma-dev libreadline-dev libncurses-dev uuid-dev libzstd-dev libgdbm-dev"
build_deps() {
  local m=; for p in $BUILD_DEPS; do [ "$(dpkg-query -Wf '${Status}' $p 2>/dev/null)" = "install ok installed" ] || m="$m $p"; done
  [ -z "$m" ] || { say "installing$m"; apt-get -q -y --no-install-recommends install $m >"$W/builddeps.log" 2>&1 || { apt-get -q update >>"$W/builddeps.log" 2>&1; apt-get -q -y --no-install-recommends install $m >>"$W/builddeps.log" 2>&1; }; }
}
try_source() {    # try_source APTNAME PKG DIR : newest version whose orig tarball the archive really serves
  local c=$W/apt-$1/conf ver
  for ver in $(apt-cache -c "$c" showsrc "$2" 2>/dev/null | awk '/^Version:/{print $2}' | sort -rVu); do
    (cd "$3" && apt-get -c "$c" -q source --download-only --tar-only "$2=$ver") >"$3/src.log" 2>&1 && { say "source: $2 $ver ($1)"; return 0; }
    say "$2 $ver: listed, but the archive ($1) does not serve its source"
  done
  return 1
}
cpython_ft() {    # cpython_ft X.Y
  local v=$1 d=$W/src-$1t inst=$PREFIX/$1t
  build_deps; src_apt; rm -rf "$d"; mkdir -p "$d"
  try_source src "python$v" "$d" || die "no source of python$v on the machine's mirror (suite $SUITE)"
  mkdir "$d/s" "$d/b"; tar xf "$d"/*.orig.tar.* -C "$d/s" --strip-components=1
  rm -rf "$inst"
  say "configure"; (cd "$d/b" && nice -n 19 ../s/configure --disable-gil --prefix="$inst" --disable-test-modules --without-static-libpython --with-ensurepip=install OPT="$OPT" >conf.log 2>&1) || { tail -5 "$d/b/conf.log"; die configure; }
  say "make -j$JOBS"; nice -n 19 make -C "$d/b" -j"$JOBS" >"$d/b/make.log" 2>&1 || { tail -20 "$d/b/make.log"; die make; }
  say "make install"; nice -n 19 make -C "$d/b" install >"$d/b/inst.log" 2>&1 || { tail -5 "$d/b/inst.log"; die install; }
  ln -sfn "../$v""t/bin/python$v""t" "$PREFIX/bin/python${v}t"
  "$PREFIX/bin/python${v}t" -c 'import ssl, sqlite3, ctypes, lzma, zlib, bz2, sys, sysconfig; assert sysconfig.get_config_var("Py_GIL_DISABLED") == 1 and not sys._is_gil_enabled(); print(sys.version)'
  rm -rf "$d"
}

rc=0
for name in "$@"; do
  if [ -e "$PREFIX/$name/.complete" ]; then say "$name: already there"; continue; fi
  s=$SECONDS
  set +e    # not 'if (...)' or '(...) ||': those would switch off -e inside
  (set -e
   case $name in
    pypy3.11)  pypy_deb;;
    3.[0-9]*t) cpython_ft "${name%t}";;
    3.[0-9]*)  cpython_deb "$name";;
    *) die "unknown: $name";;
   esac
   touch "$PREFIX/$name/.complete"); r=$?
  set -e
  if [ $r = 0 ]; then say "$name: done in $((SECONDS-s)) s, $(du -sm "$PREFIX/$name" | cut -f1) MB"; else say "$name: FAILED"; rc=1; fi
done
exit $rc

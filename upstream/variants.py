"""Fetch CPython's source, apply the patches, and build each variant with the same flags.

    python upstream/variants.py [--quick]

The source is CPYTHON, a source tree, or the newest source package python3.x that the machine's Debian mirror
serves and that all patches apply to. Everything is put into UPSTREAM_BUILD (build/upstream): for each
variant `source`, `release` (the build that is measured) and, unless it is to be quick, `tsan` (one with
assertions and ThreadSanitizer); `fairlead`, an environment with it, on stock; `site`, packages that are
measured. What is there already is left alone, but for fairlead.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = Path(os.environ.get("UPSTREAM_BUILD", ROOT / "build" / "upstream"))
FAIRLEAD = BUILD / "fairlead"
SERIES = {"stock": [], "a": ["a"], "b": ["b"], "ab": ["b", "ab"]}
"""The variants, and whose patches each consists of."""
FLAGS = {
    "release": ["--without-static-libpython", "OPT=-DNDEBUG -g1 -O3 -Wall"],
    "tsan": [
        "--without-static-libpython",
        "--with-assertions",
        "--with-thread-sanitizer",
        "OPT=-g1 -O1 -Wall",
    ],
}
FIXED_ADDRESSES = ["setarch", "-R"]
"""Before each command of a ThreadSanitizer build: it finds no room for its shadow where the kernel randomises
addresses by more bits than it was made for."""
UNWATCHED = (
    "_bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _curses _curses_panel _dbm"
    " _decimal _gdbm _hashlib _lzma _sqlite3 _ssl _tkinter readline"
)
"""Modules that the GIL's tests do without: a ThreadSanitizer build leaves them out."""
SUITES = ("sid", "forky", "trixie")
PACKAGES = ("python3.15", "python3.14", "python3.13")


def source_of(variant: str) -> Path:
    return BUILD / variant / "source"


def python_of(variant: str, kind: str = "release") -> Path:
    return BUILD / variant / kind / "python"


def results(*, quick: bool) -> Path:
    """A smoke run is not to overwrite what was measured."""
    return BUILD / "quick" if quick else HERE / "results"


def digests() -> dict[str, str]:
    """Which builds figures are of."""
    return {name: hashlib.sha256(python_of(name).read_bytes()).hexdigest()[:16] for name in SERIES}


def arguments(doc: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run: figures mean nothing")
    return parser


def patches(variant: str) -> list[Path]:
    return [path for name in SERIES[variant] for path in sorted((HERE / "patches" / name).glob("*.patch"))]


def call(*command: str | Path, cwd: Path | None = None, log: Path | None = None) -> bool:
    """Run it, quietly; with a log, say where that is when it fails."""
    output = log.open("wb") if log else subprocess.DEVNULL
    done = subprocess.run(command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode and log:
        raise SystemExit(f"{command[0]} failed: see {log}")
    return done.returncode == 0


def applies(tree: Path) -> bool:
    return all(
        call("patch", "-p1", "--forward", "--dry-run", "-i", patches(name)[0], cwd=tree)
        for name in ("a", "b")
    )


def apt_settings() -> Path:
    """An apt of its own: neither the machine's sources nor its package database are touched."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    mirror = next((line for line in targets if line.rstrip("/").endswith("/debian")), None)
    if mirror is None:
        raise SystemExit("no Debian mirror among apt's sources: name a source tree in CPYTHON")
    home = BUILD / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (home / part).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    (home / "sources.list").write_text("".join(f"deb-src {key} {mirror} {suite} main\n" for suite in SUITES))
    settings = home / "conf"
    settings.write_text(
        f'Dir::Etc::SourceList "{home}/sources.list"; Dir::Etc::SourceParts "/dev/null";\n'
        f'Dir::State "{home}/state"; Dir::State::status "{home}/status"; Dir::Cache "{home}/cache";\n'
        'Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache ""; APT::Sandbox::User "root";\n'
        'Acquire::Languages "none"; Acquire::AllowInsecureRepositories "false";\n'
    )
    call("apt-get", "-c", settings, "-q", "update", log=home / "update.log")
    return settings


def fetch(target: Path) -> None:
    if named := os.environ.get("CPYTHON"):
        shutil.copytree(named, target, symlinks=True)
        return
    settings = apt_settings()
    for package in PACKAGES:
        shown = subprocess.run(
            ["apt-cache", "-c", settings, "showsrc", package], capture_output=True, text=True, check=False
        ).stdout
        versions = {line.split()[1] for line in shown.splitlines() if line.startswith("Version:")}
        for version in sorted(versions, key=lambda name: [*map(int, re.findall(r"\d+", name))], reverse=True):
            source = ["source", "--download-only", "--tar-only", f"{package}={version}"]
            if not call("apt-get", "-c", settings, "-q", *source, cwd=BUILD):
                continue  # listed, but not served
            archive = next(BUILD.glob(f"{package}_{version.partition('-')[0]}.orig.tar.*"))
            target.mkdir()
            call("tar", "xf", archive, "-C", target, "--strip-components=1")
            if applies(target):
                print(f"source: {package} {version}")
                return
            shutil.rmtree(target)
    raise SystemExit("no source that the patches apply to is served: name a source tree in CPYTHON")


def prepare(variant: str) -> None:
    """Its patched source."""
    source = source_of(variant)
    if source.exists():
        return
    source.parent.mkdir(parents=True, exist_ok=True)
    if variant == "stock":
        fetch(source)
        return
    shutil.copytree(source_of("stock"), source, symlinks=True)
    for patch in patches(variant):
        call("patch", "-p1", "--forward", "-i", patch, cwd=source, log=BUILD / variant / f"{patch.stem}.log")


def build(variant: str, kind: str) -> None:
    prepare(variant)
    if python_of(variant, kind).exists():
        return
    print(f"build: {variant}, {kind}", flush=True)
    place = BUILD / variant / kind
    place.mkdir(exist_ok=True)
    compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
    # The path is relative, and the directory no part of ccache's keys, for the variants to share objects.
    os.environ["CCACHE_NOHASHDIR"] = "1"
    prefix = BUILD / variant / "installed"
    configure = ["../source/configure", "-q", f"--prefix={prefix}", f"CC={compiler}"]
    before = FIXED_ADDRESSES if kind == "tsan" else []
    if kind == "tsan":
        (place / "Modules").mkdir(exist_ok=True)
        (place / "Modules" / "Setup.local").write_text(f"*disabled*\n{UNWATCHED}\n")
    call(*before, *configure, *FLAGS[kind], cwd=place, log=place / "configure.log")
    call(*before, "make", f"-j{os.cpu_count()}", cwd=place, log=place / "make.log")


def install() -> None:
    """Today's fairlead on stock, which is installed for that (an environment needs an interpreter with its
    files in place), and the packages of servers and programs."""
    pip = (FAIRLEAD / "bin" / "python", "-m", "pip", "-q", "install")
    if (FAIRLEAD / "bin" / "fairlead").exists():
        call(*pip, "--force-reinstall", "--no-deps", ROOT, log=BUILD / "pip.log")
    else:
        print("install: fairlead on stock", flush=True)
        call("make", "install", cwd=BUILD / "stock" / "release", log=BUILD / "install.log")
        call(next((BUILD / "stock" / "installed" / "bin").glob("python3.*[0-9]")), "-m", "venv", FAIRLEAD)
        call(*pip, ROOT, log=BUILD / "pip.log")
    if not (BUILD / "site").exists():
        call(*pip, "--target", BUILD / "site", "flask", "waitress", "pyperformance", log=BUILD / "pip.log")


def main() -> None:
    quick = arguments(__doc__ or "").parse_args().quick
    BUILD.mkdir(parents=True, exist_ok=True)
    for kind in FLAGS:
        if quick and kind == "tsan":
            continue
        for variant in SERIES:
            build(variant, kind)
    install()
    for variant in SERIES:
        version = subprocess.run(
            [python_of(variant), "-VV"], capture_output=True, text=True, check=True
        ).stdout
        print(f"{variant:6} {version.strip()}")


if __name__ == "__main__":
    sys.exit(main())

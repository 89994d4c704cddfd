"""Fetch CPython's source, apply the patches, and build each variant with the same flags.

    python upstream/variants.py

The source is CPYTHON, a source tree, or the newest source package python3.x that the machine's Debian mirror
serves and that all patches apply to. Everything is put into UPSTREAM_BUILD (build/upstream): src-NAME, b-NAME
(the build; its `python` is what is measured), venv (fairlead on stock) and site (packages for the servers).
What is there already is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = Path(os.environ.get("UPSTREAM_BUILD", ROOT / "build" / "upstream"))
SERIES = {"stock": [], "a": ["a"], "b": ["b"], "ab": ["b", "ab"]}
"""The variants, and whose patches each consists of."""
FLAGS = ["-q", "--without-static-libpython", "OPT=-DNDEBUG -g1 -O3 -Wall"]
SUITES = ("sid", "forky", "trixie")
PACKAGES = ("python3.15", "python3.14", "python3.13")


def python_of(variant: str) -> Path:
    return BUILD / f"b-{variant}" / "python"


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
        for version in sorted(versions, reverse=True):
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


def build(variant: str) -> None:
    source, place = BUILD / f"src-{variant}", BUILD / f"b-{variant}"
    if not source.exists():
        if variant == "stock":
            fetch(source)
        else:
            shutil.copytree(BUILD / "src-stock", source, symlinks=True)
            for patch in patches(variant):
                call("patch", "-p1", "--forward", "-i", patch, cwd=source, log=BUILD / f"{patch.stem}.log")
    if python_of(variant).exists():
        return
    print(f"build: {variant}", flush=True)
    place.mkdir(exist_ok=True)
    compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
    prefix = BUILD / f"i-{variant}"
    call(
        source / "configure",
        f"--prefix={prefix}",
        f"CC={compiler}",
        *FLAGS,
        cwd=place,
        log=place / "conf.log",
    )
    call("make", f"-j{os.cpu_count()}", cwd=place, log=place / "make.log")


def install_fairlead() -> None:
    """On stock, which is installed for that: an environment needs an interpreter with its files in place."""
    if (BUILD / "v-stock" / "bin" / "fairlead").exists():
        return
    print("install: fairlead on stock", flush=True)
    call("make", "install", cwd=BUILD / "b-stock", log=BUILD / "install.log")
    call(next((BUILD / "i-stock" / "bin").glob("python3.*[0-9]")), "-m", "venv", BUILD / "v-stock")
    pip = (BUILD / "v-stock" / "bin" / "python", "-m", "pip", "-q", "install")
    call(*pip, ROOT, log=BUILD / "pip.log")
    call(*pip, "--target", BUILD / "site", "flask", "waitress", log=BUILD / "pip.log")


def main() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    for variant in SERIES:
        build(variant)
    install_fairlead()
    for variant in SERIES:
        version = subprocess.run(
            [python_of(variant), "-VV"], capture_output=True, text=True, check=True
        ).stdout
        print(f"{variant:6} {version.strip()}")


if __name__ == "__main__":
    sys.exit(main())

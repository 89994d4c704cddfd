"""Files of samples: a run killed at any moment loses nothing finished, and damage costs one line.

A results file is JSON Lines, one ``Sample`` a line. A run directory holds one, named ``samples.jsonl``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from fairlead.errors import OutputError, RecordError
from fairlead.record.sample import Sample, parse

FILE_NAME = "samples.jsonl"
"""The name of the results file in a run directory."""
PLAN_NAME = "plan.json"
"""That of the plan beside it."""

FINGERPRINT = (
    "hostname", "machine", "processor", "kernel", "cores", "affinity", "quota", "policy", "beside",
)  # fmt: skip
"""The keys of a sample's environment that make its numbers comparable. The others (load, yield probe,
fairlead's version ...) may change from one sample to the next without starting a cell anew."""

PER_SERIES = ("affinity", "policy")
"""Those of them that differ between the series of one run on one machine."""

_NAMED = 20
"""How many damaged lines of one file are named one by one."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a results file holds.

    ``problems`` has one line for each damaged or too new line, with file, line number and fault. A
    command that reads results prints them and ends with exit status 1.
    """

    samples: tuple[Sample, ...]
    problems: tuple[str, ...] = ()


class ResultsWriter:
    """Appends samples to a results file; use it as a context manager.

    Guarantees: a line is handed to the kernel in one ``write`` to a descriptor in append mode before
    ``write`` returns, so that not even ``kill -9`` loses a finished sample; after a failed write the file
    ends with the last whole line; one writer at a time per file. Closing also syncs to the disk.

    An existing file is continued. A last line that was cut short is cut off first; one that lacks
    nothing but its end of line is completed.

    Raises:
        OutputError: the file cannot be opened, is not a results file (it is left as it is), or another
            run is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # non-blocking: opening a FIFO must not wait for a reader
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        self._fd = -1
        try:
            self._fd = os.open(self.path, flags, 0o666)
            self._lock()
            self.count = self._mend()
        except BaseException as error:
            if self._fd >= 0:
                os.close(self._fd)
            if isinstance(error, OSError) and not isinstance(error, OutputError):
                message = f"{self.path}: cannot be written ({error.strerror}); choose another place"
                raise OutputError(message) from error
            raise

    count: int
    """How many lines are safe in the file, those of earlier runs included."""

    def write(self, sample: Sample) -> None:
        """Append one sample.

        Raises:
            RecordError: the sample holds something that could not be read back; nothing was written.
            OutputError: the disk is full, the file too large, or the like; the file has been cut back to
                its last whole line, and the message says how many samples are safe.
        """
        line = json.dumps(sample.to_json(), allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
        end = os.fstat(self._fd).st_size
        try:
            fault = "" if os.write(self._fd, line) == len(line) else os.strerror(errno.ENOSPC)
        except OSError as error:
            fault = error.strerror or str(error)
        if fault:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, end)
            safe = "1 sample is" if self.count == 1 else f"{self.count} samples are"
            raise OutputError(f"{self.path}: {fault}; {safe} safe in it; make room and resume the run")
        self.count += 1

    def close(self) -> None:
        """Sync to the disk and close. Closing again does nothing.

        Raises:
            OutputError: the disk reported at last that something could not be written.
        """
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror}; check the disk and its last lines") from error
        finally:
            os.close(fd)

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise OutputError(f"{self.path}: not a regular file; choose another place")
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{self.path}: another run is writing to it; wait or choose another") from None
        except OSError:
            pass  # a file system without locks: one writer at a time is then the caller's promise

    def _mend(self) -> int:
        """Make the file end with a whole line; return how many lines it has."""
        with open(self._fd, "rb", closefd=False) as file:
            data = file.read()
        if data and not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            raise OutputError(f"{self.path}: not a results file (left as it is); choose another place")
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            try:
                parse(data[whole:])
                os.write(self._fd, b"\n")
                whole = len(data)
            except ValueError:
                os.ftruncate(self._fd, whole)
        return sum(1 for line in data[:whole].split(b"\n") if line.strip())


def read_results(path: str | os.PathLike[str], *, empty_ok: bool = False) -> Results:
    """Read a results file, or the one in a run directory. Files put together with ``cat`` are fine.

    A line that is damaged or of a newer version is left out and named in ``problems``; everything else
    is kept. A line from before samples named their run belongs to the run of the plan beside the file, or to
    one that has the file's name. Blank lines do not count as damage. With ``empty_ok`` a file without a
    single good sample is no error: a run that is resumed may have been stopped before its first.

    Raises:
        RecordError: there is no such file, it cannot be read, it is not a results file, or there is no
            good sample in it; names the file, and the first bad line if that is why.
    """
    file = _results_file(Path(path))
    run = _run_of(file)
    samples: list[Sample] = []
    faults: list[str] = []
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                good, bad = _read_line(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, run)
                samples += good
                faults += [f"{file}:{number}: {fault}" for fault in bad]
    except OSError as error:
        raise RecordError(f"{file}: cannot be read ({error.strerror})") from error
    if not samples and not empty_ok:
        raise RecordError(
            f"{faults[0]}; there is no sample in this file" if faults else f"{file}: no samples"
        )
    problems = [f"{fault}; left out" for fault in faults[:_NAMED]]
    if len(faults) > _NAMED:
        problems.append(f"{file}: {len(faults) - _NAMED} more damaged lines; left out")
    return Results(tuple(samples), tuple(problems))


def runs_in(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The runs that a path names: of a directory that has no results but runs in it, each; else itself."""
    given = Path(path)
    with contextlib.suppress(OSError):
        if given.is_dir() and not (given / FILE_NAME).exists():
            return tuple(sorted(file.parent for file in given.glob(f"*/{FILE_NAME}"))) or (given,)
    return (given,)


def cell_key(
    experiment: str, params: Mapping[str, Any], interpreter: Mapping[str, Any], environment: Mapping[str, Any]
) -> str:
    """A name for what a sample measured: equal for two samples exactly when they can stand in one cell.

    Made of the experiment, all parameters, the interpreter (real path, version, build, state of GIL and JIT)
    and the fingerprint of the environment (``FINGERPRINT``). Stable between runs and machines; 32
    hexadecimal digits.
    """
    identity = [interpreter.get(name) for name in ("executable", "version", "build", "gil", "jit")]
    where = [environment.get(name) for name in FINGERPRINT]
    text = json.dumps([experiment, dict(params), identity, where], sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def _results_file(path: Path) -> Path:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISDIR(mode):
            file = path
        elif (path / FILE_NAME).exists():
            file = path / FILE_NAME
        else:
            raise RecordError(
                f"{path}: no {FILE_NAME} in this directory; name a run's directory or results file"
            )
    except FileNotFoundError:
        raise RecordError(
            f"{path}: no such file or directory; name a run's directory or results file"
        ) from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise RecordError(f"{path}: a device, not a results file")
    return file


def _run_of(file: Path) -> str:
    """The run of samples that do not name theirs."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((file.parent / PLAN_NAME).read_text(encoding="utf-8"))["run"])
    return str(file.resolve())


def _read_line(line: bytes, run: str) -> tuple[list[Sample], list[str]]:
    """The samples on one line, and what is wrong with the rest of it."""
    if not line.strip():
        return [], []
    try:
        data = parse(line)
        return [Sample.from_json({"run": run, **data} if isinstance(data, dict) else data)], []
    except RecordError as error:
        return [], [str(error)]
    except ValueError:
        pass
    pieces = list(_split(line))
    if len(pieces) == 1:
        return [], ["not valid JSON" if line.endswith(b"\n") else "cut short"]
    # a file whose last line was cut short, or lacked its end, and another put behind it
    samples: list[Sample] = []
    faults: list[str] = []
    for piece in pieces:
        good, bad = _read_line(piece, run)
        samples += good
        faults += bad
    return samples, faults


def _split(line: bytes) -> Iterator[bytes]:
    """Split where a sample begins; inside a JSON string the mark would have its quotes escaped."""
    mark = b'{"schema"'
    start = 0
    while (found := line.find(mark, start + 1)) > 0:
        yield line[start:found]
        start = found
    yield line[start:]

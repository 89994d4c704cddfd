"""Another process that does what it is told to shared primitives; one line in, one line out.

A line is a pickle in hex of (the pickle of a primitive, operations, whether it is killed after them), and is
done in a child that is forked for it; the answer is what came of each operation. Told to stay, it does them
itself, in the process that all such lines have.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from typing import Any

from fairlead import errors

Operation = tuple[str, tuple[Any, ...]]


class Peer:
    """Its parent's side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def does(self, subject: Any, *operations: Operation, dies: bool = False) -> list[Any]:
        """What came of each: what it returned, or the class of what it raised."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(pickle.dumps((pickle.dumps(subject), operations, dies)).hex() + "\n")
        stdin.flush()
        answer = pickle.loads(bytes.fromhex(stdout.readline()))
        assert not dies or stdout.readline() == "dead\n"
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.stdout.close()  # type: ignore[union-attr]
        assert self._process.wait(40) == 0


def tried(subject: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        result = getattr(subject, name)(*arguments)
    except Exception as error:  # noqa: BLE001 - the machine looks at it
        return getattr(errors, type(error).__name__, type(error))  # not asyncio's as well
    return tuple(result) if isinstance(result, tuple) else result


def does(subject: Any, operations: list[Operation]) -> list[Any]:
    return [tried(subject, name, arguments) for name, arguments in operations]


def main() -> None:
    kept: dict[bytes, Any] = {}
    for line in sys.stdin:
        pickled, operations, dies = pickle.loads(bytes.fromhex(line))
        if not dies:
            if pickled not in kept:
                kept.clear()
                kept[pickled] = pickle.loads(pickled)
            print(pickle.dumps(does(kept[pickled], operations)).hex(), flush=True)
            continue
        child = os.fork()
        if child == 0:
            print(pickle.dumps(does(pickle.loads(pickled), operations)).hex(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        print("dead", flush=True)


if __name__ == "__main__":
    main()

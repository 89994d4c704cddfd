"""What fairlead and other tools say of ten programs whose trouble is known, and what they cost a server.

    python benchmarks/judge_peers.py [--rounds 5] [--seconds 1.5]

Under each tool in turn (none, fairlead counting, ``fairlead record``, ``py-spy record --gil``, the standard
library's ``profiling.sampling --mode gil`` where there is one, gilknocker where it is installed): an echo
server with 1 and with 4 clients in another process, which count the answers, in rounds of another order
each; printed is the median of the ratios to the run without a tool of the same round, with the least and
the greatest. Then ten programs of benchmarks/planted/ once each: what the tool's dearest line is, and
whether it makes the trouble. Prints two tables in Markdown. Tools that are missing are named (``pip install
--group bench``)."""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

from judge import Planted, corpus, names_line

from fairlead.lab.isolation.other_load import Meter

CLIENT = """
import socket, sys, threading, time
end = time.monotonic() + float(sys.argv[3])
counts = []
def ask():
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server:
        count = 0
        while time.monotonic() < end:
            server.sendall(b"x" * 8)
            server.recv(8)
            count += 1
        counts.append(count)
threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(counts))
"""
PROGRAMS = (
    "dumps", "regular_expression", "deletes_a_list", "echo_server", "poller", "collects_after_each_request",
    "two_compute", "log_with_a_slow_handler", "sleeps_in_a_coroutine", "lowest_priority",
)  # fmt: skip
Command = list[str]


class Tool:
    """How a program is run under it, and how its dearest line is found afterwards."""

    def __init__(self, wrap: Callable[[Command, Path], Command], line: Callable[[Path, str], str]) -> None:
        self.wrap = wrap
        self.line = line
        """Of (its file, what the program printed)."""


def own(*arguments: str) -> Command:
    return [sys.executable, "-m", "fairlead", *arguments]


def first_finding(path: Path, _: str) -> str:
    report = subprocess.run(own("report", str(path), "--format", "json"), capture_output=True, check=True)
    first = json.loads(report.stdout)["findings"][0]
    return f"{first['kind']}: {first['title']}"


def dearest_stack(path: Path, _: str) -> str:
    """Of collapsed stacks, the one with most samples, innermost frame first: "function (file:line) < ..."."""
    samples: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [frame for part in stack.split(";") if (frame := _frame(part))]
        samples[" < ".join(reversed(frames))] += int(count)
    samples.pop("", None)
    return samples.most_common(1)[0][0] if samples else "no sample"


def _frame(part: str) -> str:
    """py-spy writes "function (file:line)", the standard library "file:function:line"."""
    if found := re.fullmatch(r"(.+) \((.+):(\d+)\)", part):
        function, file, number = found.groups()
    elif found := re.fullmatch(r"(.+):(.+):(\d+)", part):
        file, function, number = found.groups()
    else:
        return ""
    return f"{function.rpartition('<locals>.')[2]} ({Path(file).name.strip('<>')}:{number})"


def tools() -> tuple[dict[str, Tool], list[str]]:
    """Those that are here, and those that are not."""
    found = {
        "none": Tool(lambda command, _: command, lambda *_: ""),
        "fairlead, counting": Tool(
            lambda command, _: [sys.executable, str(Path(__file__).resolve()), "--count", *command[1:]],
            lambda *_: "",
        ),
        "fairlead record": Tool(
            lambda command, path: own("record", "-o", str(path), "--", *command), first_finding
        ),
    }
    missing = []
    if spy := shutil.which("py-spy", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin"):
        raw = ("--gil", "--threads", "--format", "raw", "--output")
        found["py-spy record --gil"] = Tool(
            lambda command, path: [spy, "record", *raw, str(path), "--", *command], dearest_stack
        )
    else:
        missing.append("py-spy")
    if not subprocess.run(
        [sys.executable, "-c", "import profiling.sampling"], capture_output=True
    ).returncode:
        collapsed = ("run", "--mode", "gil", "--all-threads", "--collapsed", "--output")
        found["profiling.sampling --mode gil"] = Tool(
            lambda command, path: [
                command[0],
                "-m",
                "profiling.sampling",
                *collapsed,
                str(path),
                *command[1:],
            ],
            dearest_stack,
        )
    else:
        missing.append("profiling.sampling (CPython 3.15)")
    if not subprocess.run([sys.executable, "-c", "import gilknocker"], capture_output=True).returncode:
        found["gilknocker, every 1 ms"] = Tool(
            lambda command, _: [sys.executable, str(Path(__file__).resolve()), "--knock", *command[1:]],
            lambda _, printed: f"contention {printed.rpartition('contention ')[2].split()[0]}",
        )
    else:
        missing.append("gilknocker")
    return found, missing


def under(tool: Tool, command: Command) -> tuple[str, str]:
    """What it printed, and the dearest line."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "seen")
        done = subprocess.run(tool.wrap(command, path), capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return done.stdout, tool.line(path, done.stdout)


def echo(clients: int, seconds: float) -> None:
    """In this process; prints how many answers a second."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = [str(listener.getsockname()[1]), str(clients), str(seconds)]
        child = subprocess.Popen(
            [sys.executable, "-c", CLIENT, *arguments], stdout=subprocess.PIPE, text=True
        )

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(8):
                    connection.sendall(data)

        threads = [
            threading.Thread(target=answer, args=(listener.accept()[0],), name=f"answers-{n}")
            for n in range(clients)
        ]
        for thread in threads:
            thread.start()
        answers = int(child.communicate()[0])
        for thread in threads:
            thread.join()
        print(json.dumps({"answers": answers / seconds}))


def cost(found: dict[str, Tool], rounds: int, seconds: float) -> None:
    """The table of answers under each tool."""
    ratios: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    meter = Meter()
    meter.begin()
    for _ in range(rounds):
        for clients in (1, 4):
            command = [sys.executable, str(Path(__file__).resolve()), "--echo", str(clients), str(seconds)]
            answers = {}
            for name in random.sample(list(found), len(found)):
                printed, _ = under(found[name], command)
                answers[name] = json.loads(re.search(r'\{"answers".*', printed).group())["answers"]  # type: ignore[union-attr]
            for name, count in answers.items():
                ratios[name, clients].append(count / answers["none"])
    busy = meter.end() or 0.0
    print(
        f"Answers relative to the run without a tool; {rounds} rounds, other processes had {busy:.0%} of the"
        " cores\n"
    )
    print("| tool | 1 client | 4 clients |\n| -- | -- | -- |")
    for name in found:
        cells = [ratios[name, clients] for clients in (1, 4)]
        said = [f"{median(cell):.2f} [{min(cell):.2f} {max(cell):.2f}]" for cell in cells]
        print(f"| {name} | {' | '.join(said)} |", flush=True)


def compare(found: dict[str, Tool]) -> None:
    """The table of what each tool says of the ten programs."""
    asked = [name for name in found if name not in ("none", "fairlead, counting")]
    print("\n| program | its trouble | " + " | ".join(asked) + " |\n" + "| -- " * (len(asked) + 2) + "|")
    programs: dict[str, Planted] = {one.name: one for one in corpus()}
    for program in (programs[name] for name in PROGRAMS):
        command = [sys.executable, str(program.file), program.name]
        cells = []
        for name in asked:
            try:
                _, said = under(found[name], command)
            except RuntimeError as error:
                said = f"failed: {error}"
            right = program.lines and names_line(said, program)
            cells.append(f"{said.partition(' < ')[0]}{' **(its line)**' if right else ''}")
        print(f"| {program.name} | {program.causes[0]} | {' | '.join(cells)} |", flush=True)


def run_file(arguments: list[str]) -> None:
    """A script, as ``python FILE ARGUMENTS`` runs it, in this process."""
    import runpy

    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent)
    runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    role, *arguments = sys.argv[1:] or [""]
    if role == "--echo":
        echo(int(arguments[0]), float(arguments[1]))
    elif role == "--count":
        import fairlead.gil

        with fairlead.gil.observe():
            run_file(arguments)
    elif role == "--knock":
        import gilknocker

        knocker = gilknocker.KnockKnock(polling_interval_micros=1000)
        knocker.start()
        run_file(arguments)
        print(f"contention {knocker.contention_metric:.0%}")
        knocker.stop()
    else:
        parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
        parser.add_argument("--rounds", type=int, default=5)
        parser.add_argument("--seconds", type=float, default=1.5)
        options = parser.parse_args()
        found, missing = tools()
        print(f"CPython {platform.python_version()}")
        cost(found, options.rounds, options.seconds)
        compare(found)
        for name in missing:
            print(f"\nNot compared: {name} is not here.")


if __name__ == "__main__":
    main()

"""The faults that the model must find: each is planted in a copy of one file of the core.

    faults.py list FAULTS                a line for each: name, program, scenario, file
    faults.py plant FAULTS NAME IN OUT   a copy of the file with the fault

FAULTS is faults.toml, whose tables are as those of tools/mutants.toml; `by` names the program and the
scenario that find the fault.
"""

import sys
import tomllib
from pathlib import Path


def main(command: str, faults: str, *more: str) -> None:
    table = tomllib.loads(Path(faults).read_text(encoding="utf-8"))
    if command == "list":
        for name, fault in table.items():
            print(name, *fault["by"].split(), fault["file"])
        return
    name, source, copy = more
    text = Path(source).read_text(encoding="utf-8")
    if text.count(table[name]["old"]) != 1:
        sys.exit(f"{faults}: what {name} replaces does not occur exactly once in {source}")
    Path(copy).write_text(text.replace(table[name]["old"], table[name]["new"]), encoding="utf-8")


main(*sys.argv[1:])

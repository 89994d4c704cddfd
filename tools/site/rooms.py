"""Which room calls or imports which: as SVG for the site, as text for ARCHITECTURE.md.

One picture for native/ (calls) and one for src/fairlead (imports, also inside functions). A box is a room: a
directory of native/, or a package of src/fairlead, with its number of files. An arrow leads from the room
that uses to the room that is used, with the number of functions and variables that are used, or of imports.
A room stands above those that it uses; an arrow that leads back up is red, and one is pale, and without its
number, where a longer way leads to the same room.

python tools/site/rooms.py      prints the floors, as ARCHITECTURE.md has them
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
Edges = Counter[tuple[str, str]]

NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
MACRO = re.compile(r"^#\s*define (\w+)((?:.*\\\n)*.*)", re.MULTILINE)
NAMED = r"(?!static|typedef|return)\w[\w *(),]*?\b(fl_\w+)"
"""What a declaration of a function, or of a variable, that the linker knows begins with."""
FUNCTION = re.compile(rf"^{NAMED}\([^;{{}}]*\)\n\{{", re.MULTILINE)
VARIABLE = re.compile(rf"^(?!extern){NAMED}(?:\)\([^;]*\)|\[\w*\])?(?: FL_\w+)?\s*[=;]", re.MULTILINE)
DECLARED = re.compile(rf"^{NAMED}(?:\)?\([^;{{}}]*\)|\[\])?(?: FL_\w+)?;", re.MULTILINE)
INLINE = re.compile(r"^static inline [^;{}]*?\b(fl_\w+)\([^;{}]*\)\n(\{.*?^\})", re.MULTILINE | re.DOTALL)


@dataclass
class Native:
    """The C sources of a tree: where each function and variable that files share is, and who uses it."""

    base: Path
    files: Counter[str]  # of each room
    defined: dict[str, set[Path]]  # one per system, of what machine/os has; inline functions in their header
    declared: dict[str, Path]
    used: dict[Path, set[str]]

    def room(self, path: Path) -> str:
        return path.parent.relative_to(self.base).as_posix()

    def calls(self) -> dict[tuple[str, str], dict[str, set[Path]]]:
        """What the files of one room use of another room: (user, used) to the names, and these to the files.

        A name is of the room whose header declares it: machine/os has what machine declares.
        """
        home = {name: self.room(min(paths)) for name, paths in self.defined.items()}
        home |= {name: self.room(path) for name, path in self.declared.items()}
        edges: dict[tuple[str, str], dict[str, set[Path]]] = {}
        for path, names in self.used.items():
            for name in names & home.keys():
                if home[name] != self.room(path):
                    edges.setdefault((self.room(path), home[name]), {}).setdefault(name, set()).add(path)
        return edges


def read_native(base: Path = ROOT / "native") -> Native:
    """Of a header, the bodies of its functions are its own; its macros are of the files that use them."""
    paths = [path for path in sorted(base.rglob("*.[ch]")) if "tests" not in path.relative_to(base).parts]
    read = Native(base, Counter(), {}, {}, {})
    read.files.update(map(read.room, paths))
    macros, bodies = {}, {}
    for path in paths:
        text = NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
        if path.suffix == ".h":
            inline = dict(INLINE.findall(text))
            macros |= dict(MACRO.findall(text))
            names, bodies[path] = list(inline), " ".join(inline.values())
            read.declared |= dict.fromkeys(DECLARED.findall(MACRO.sub("", without_bodies(text))), path)
        else:
            names, bodies[path] = FUNCTION.findall(text) + VARIABLE.findall(text), text
        for name in names:
            read.defined.setdefault(name, set()).add(path)
    read.used = {path: names_in(body, macros, read.defined.keys()) for path, body in bodies.items()}
    return read


def without_bodies(text: str) -> str:
    while text != (text := re.sub(r"\{[^{}]*\}", "", text)):
        pass
    return text


def names_in(text: str, macros: dict[str, str], defined: Collection[str]) -> set[str]:
    """The words of this code, with those of the macros that it uses, and the names that ## makes of them."""
    found: set[str] = set()
    pasted: set[tuple[str, str]] = set()
    left = [text]
    while left:
        part = left.pop()
        pasted |= set(re.findall(r"\b(fl_\w*)##\w+##(\w*)", part))
        new = set(re.findall(r"\w+", part)) - found
        found |= new
        left += [macros[name] for name in new & macros.keys()]
    made = {before + word + after for before, after in pasted for word in found}
    return found | made & set(defined)


def native() -> tuple[Counter[str], Edges]:
    """The rooms of the C core with their files, and how many names each uses of each other."""
    read = read_native()
    return read.files, Counter({edge: len(names) for edge, names in read.calls().items()})


def package() -> tuple[Counter[str], Edges]:
    """The packages of src/fairlead with their modules, and the imports between them."""
    base = ROOT / "src" / "fairlead"
    paths = [path for path in base.rglob("*.py") if "experiments" not in path.parts and path.parent != base]
    room = {path: path.relative_to(base).parts[0] for path in paths}
    edges: Edges = Counter()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for target in (name.split(".")[1] for name in names if name.startswith("fairlead.")):
                if target in room.values() and target != room[path]:
                    edges[room[path], target] += 1
    return Counter(room.values()), edges


def floors(rooms: list[str], edges: Edges) -> dict[str, int]:
    """The floor of each room: above all that it uses, as far as there are no circles."""
    floor = dict.fromkeys(rooms, 0)
    for _ in rooms:
        for (user, used), count in edges.items():
            if count >= edges[used, user]:
                floor[user] = min(max(floor[user], floor[used] + 1), len(rooms))
    order = sorted(set(floor.values()))
    return {room: order.index(at) for room, at in floor.items()}


def implied(edges: Edges) -> set[tuple[str, str]]:
    """The edges beside which there is a longer way."""
    reach: dict[str, set[str]] = {}
    for user, used in edges:
        reach.setdefault(user, set()).add(used)
    direct = {user: set(below) for user, below in reach.items()}
    for _ in direct:
        reach = {user: below.union(*(reach.get(room, ()) for room in below)) for user, below in reach.items()}
    return {
        (user, used)
        for user, used in edges
        if any(used in reach.get(room, ()) for room in direct[user] - {used})
    }


def drawing(title: str, rooms: Counter[str], edges: Edges) -> str:
    floor = floors(sorted(rooms), edges)
    height = max(floor.values()) + 1
    widest = max(Counter(floor.values()).values()) * 210
    place: dict[str, tuple[int, int]] = {}
    for level in range(height):

        def middle(room: str) -> tuple[float, str]:
            """Of what it uses, so that lines are short and few cross."""
            below = [place[used][0] for user, used in edges if user == room and used in place]
            return (sum(below) / len(below) if below else 0), room

        here = sorted((name for name in rooms if floor[name] == level), key=middle)
        for at, room in enumerate(here):
            left = 20 + int((at + 0.5) * widest / len(here)) - 95
            place[room] = (left, 50 + (height - 1 - level) * 130)
    lines = []
    beside = implied(edges)
    for (user, used), count in sorted(edges.items(), key=lambda edge: (edge[0] not in beside, edge)):
        (x1, y1), (x2, y2) = place[user], place[used]
        up = floor[user] <= floor[used]
        start, end = (x1 + 95, y1 if up else y1 + 44), (x2 + 95, y2 + 46 if up else y2 - 4)
        if (user, used) in beside and not up:
            lines.append(f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="#e3e8ed"/>')
            continue
        colour = "#c0392b" if up else "#5b6b7b"
        at = (start[0] * 2 + end[0]) / 3, (start[1] * 2 + end[1]) / 3
        lines.append(
            f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="{colour}" marker-end="url(#end)"/>'
            f'<text x="{at[0]:.0f}" y="{at[1]:.0f}" font-size="11" fill="{colour}">{count}</text>'
        )
    boxes = [
        f'<rect x="{x}" y="{y}" width="190" height="44" rx="6" fill="#eef3f8" stroke="#34495e"/>'
        f'<text x="{x + 95}" y="{y + 27}" text-anchor="middle">{room} ({rooms[room]})</text>'
        for room, (x, y) in place.items()
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest + 40} {height * 130 + 20}" '
        'font-family="sans-serif" font-size="14">\n<defs><marker id="end" orient="auto" markerWidth="8" '
        'markerHeight="8" refX="6" refY="4"><path d="M0 0L8 4L0 8z" fill="#34495e"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="30" y="26" font-weight="bold">{title}</text>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


def floors_text(rooms: Counter[str], edges: Edges) -> str:
    """The rooms of each floor in a line, from the highest down."""
    floor = floors(sorted(rooms), edges)
    levels = sorted(set(floor.values()), reverse=True)
    return "".join(
        "  ".join(room for room in sorted(rooms) if floor[room] == level) + "\n" for level in levels
    )


def native_picture() -> str:
    return drawing("native/: functions that rooms call of each other (files)", *native())


def package_picture() -> str:
    return drawing("src/fairlead: imports between packages (modules)", *package())


if __name__ == "__main__":
    print(floors_text(*native()), floors_text(*package()), sep="\n", end="")

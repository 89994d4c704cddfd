"""Which room includes or imports which: as SVG for the site, as text for ARCHITECTURE.md.

One picture for native/ (``#include "..."``) and one for src/fairlead (imports, also inside functions). A
box is a room: a directory of native/, or a package of src/fairlead, with its number of files. An arrow
leads from the room that uses to the room that is used, with the number of such lines. A room stands
above those that it uses; an arrow that leads back up is red.

python tools/site/rooms.py      prints the floors, as ARCHITECTURE.md has them
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
Edges = Counter[tuple[str, str]]


def native() -> tuple[Counter[str], Edges]:
    """The rooms of the C core with their files, and the includes between them."""
    base = ROOT / "native"
    paths = [path for path in base.rglob("*.[ch]") if "tests" not in path.parts]
    room = {path: str(path.parent.relative_to(base)) for path in paths}
    edges: Edges = Counter()
    for path in paths:
        for name in re.findall(r'^#\s*include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            target = next((to for to in (path.parent / name, base / name) if to.resolve() in room), None)
            if target is not None and room[target.resolve()] != room[path]:
                edges[room[path], room[target.resolve()]] += 1
    return Counter(room.values()), edges


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


def drawing(title: str, rooms: Counter[str], edges: Edges) -> str:
    floor = floors(sorted(rooms), edges)
    height, width = max(floor.values()) + 1, 0
    place: dict[str, tuple[int, int]] = {}
    for level in range(height):
        for at, room in enumerate(sorted(name for name in rooms if floor[name] == level)):
            place[room] = (30 + at * 210 + level % 2 * 90, 50 + (height - 1 - level) * 130)
            width = max(width, place[room][0] + 190)
    lines = []
    for (user, used), count in sorted(edges.items()):
        (x1, y1), (x2, y2) = place[user], place[used]
        up = floor[user] <= floor[used]
        start, end = (x1 + 80, y1 if up else y1 + 44), (x2 + 80, y2 + 46 if up else y2 - 4)
        colour = "#c0392b" if up else "#5b6b7b"
        at = (start[0] * 2 + end[0]) / 3, (start[1] * 2 + end[1]) / 3
        lines.append(
            f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="{colour}" marker-end="url(#end)"/>'
            f'<text x="{at[0]:.0f}" y="{at[1]:.0f}" font-size="11" fill="{colour}">{count}</text>'
        )
    boxes = [
        f'<rect x="{x}" y="{y}" width="160" height="44" rx="6" fill="#eef3f8" stroke="#34495e"/>'
        f'<text x="{x + 80}" y="{y + 27}" text-anchor="middle">{room} ({rooms[room]})</text>'
        for room, (x, y) in place.items()
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 20} {height * 130 + 20}" '
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
    return drawing("native/: includes between rooms (files)", *native())


def package_picture() -> str:
    return drawing("src/fairlead: imports between packages (modules)", *package())


if __name__ == "__main__":
    print(floors_text(*native()), floors_text(*package()), sep="\n", end="")

"""Which threads run on each pass while n threads are started, under three schedulers, by the simulator.

Each column is a turn on the GIL, each line a thread, the starting thread at the top; the same program,
kernel, cores and seed for all three.
"""

from __future__ import annotations

from fairlead.gil import simulation as sim

POLICIES: dict[sim.SimulatedPolicy, str] = {
    "old": "CPython to 3.1, every 100 ticks",
    "stock": "CPython since 3.2, switch interval 5 ms",
    "interactive": "fairlead run",
}
TICKS_S = 100e-6
INTERVAL_S = 5e-3
LEFT, RIGHT, WIDTH, ROW, HEAD, GAP, AXIS = 52.0, 12.0, 1000.0, 5.0, 30.0, 16.0, 44.0
COLOURS = {"main": "#c2410c", "other": "#1d4ed8", "text": "#1f2937", "ground": "#ffffff", "band": "#eef2f7"}


def turns(policy: sim.SimulatedPolicy, n: int) -> list[int]:
    """The line of each pass's thread: 0 the starter, k the k-th that was started."""
    run = sim.simulate(
        sim.square_thread_start(n),
        policy=policy,
        cores=2,
        seed=1,
        events=1_000_000,
        interval_seconds=TICKS_S if policy == "old" else INTERVAL_S,
    )
    lines: list[int] = []
    for event in run.events:
        if event.kind == "acquire":
            line = 0 if event.thread == "main" else int(event.thread.removeprefix("T"))
            if not lines or lines[-1] != line:
                lines.append(line)
    return lines


def picture(n: int = 40) -> str:
    """The drawing, as SVG."""
    schedules = {policy: turns(policy, n) for policy in POLICIES}
    longest = max(map(len, schedules.values()))
    column = (WIDTH - LEFT - RIGHT) / longest
    mark = max(column, 2.0)  # a turn must be seen
    panel = HEAD + (n + 1) * ROW + GAP
    height = len(POLICIES) * panel + AXIS
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
        f' aria-label="Which threads run on each pass while {n} threads are started, under three schedulers"'
        ' font-family="system-ui, sans-serif">',
        f'<rect width="100%" height="100%" fill="{COLOURS["ground"]}"/>',
    ]
    for number, (policy, title) in enumerate(POLICIES.items()):
        top = number * panel + HEAD
        lines = schedules[policy]
        drawn += [
            _text(LEFT, top - 10, f"{title}: {len(lines)} passes"),
            f'<rect x="{LEFT:g}" y="{top:g}" width="{WIDTH - LEFT - RIGHT:g}" height="{(n + 1) * ROW:g}"'
            f' fill="{COLOURS["band"]}"/>',
            _text(LEFT - 6, top + ROW, "starter", "end", 11),
            _text(LEFT - 6, top + (n + 1) * ROW, f"T{n}", "end", 11),
        ]
        for kind, chosen in (("other", lambda line: line > 0), ("main", lambda line: line == 0)):
            path = "".join(
                f"M{LEFT + at * column:.2f} {top + line * ROW:g}h{mark:.2f}v{ROW:g}h-{mark:.2f}z"
                for at, line in enumerate(lines)
                if chosen(line)
            )
            drawn.append(f'<path d="{path}" fill="{COLOURS[kind]}"/>')
    foot = len(POLICIES) * panel + 8
    step = 10 ** (len(str(longest)) - 1) // 2
    drawn += [_text(LEFT + at * column, foot, str(at), "middle") for at in range(0, longest + 1, step)]
    drawn.append(_text(WIDTH / 2, foot + 22, "turns on the GIL, in order", "middle"))
    return "\n".join([*drawn, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 13) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="{COLOURS["text"]}">{text}</text>'

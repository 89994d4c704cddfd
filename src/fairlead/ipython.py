"""``%load_ext fairlead.ipython``; then ``%%gil`` before a cell says which threads held the GIL while it ran,
which waited, and behind which. ``%gil`` does so for a line."""

from __future__ import annotations

from typing import Any

from fairlead.gil.observe.observation import Observation

SHOWN = 10
"""Threads, and pairs of threads, at most."""


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext``.

    Raises:
        UnsupportedInterpreterError: this interpreter's GIL cannot be observed.
    """
    from fairlead.gil.observe.access import require

    require()

    def gil(line: str, cell: str | None = None) -> None:
        """Say which threads held the GIL meanwhile, and which waited."""
        import fairlead.gil

        with fairlead.gil.observe() as seen:
            outcome = shell.run_cell(line if cell is None else cell, store_history=False)
        print(told(seen))
        if outcome.error_in_exec is not None:
            raise outcome.error_in_exec

    shell.register_magic_function(gil, "line_cell", "gil")


def told(seen: Observation) -> str:
    """The figures as text: threads, pairs, findings."""
    threads = sorted(seen.threads, key=lambda thread: -(thread.held_seconds + thread.waited_seconds))
    lines = [f"{'held':>9}  {'waited':>9}  {'longest':>9}  thread, of {seen.seconds * 1e3:.1f} ms"]
    lines += [
        f"{_ms(one.held_seconds)}  {_ms(one.waited_seconds)}  {_ms(one.max_wait_seconds)}  {one.name}"
        for one in threads[:SHOWN]
    ]
    if len(threads) > SHOWN:
        lines.append(f"... and {len(threads) - SHOWN} more threads, with less each")
    pairs = sorted(seen.blame.items(), key=lambda pair: -pair[1])
    lines += [f"{_ms(seconds)}  {waiter} behind {holder}" for (waiter, holder), seconds in pairs[:SHOWN]]
    lines += [f"{finding.summary}\n    {finding.advice}" for finding in seen.findings]
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:6.1f} ms"

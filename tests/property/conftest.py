"""How properties are tested: the same examples each time, and no limit on the time of one.

The suite must give the same answer twice, also on a machine that is busy. To look for new examples, run
``pytest tests/property --hypothesis-profile=search --timeout=0``; a failure prints the line that replays it.
"""

from __future__ import annotations

from hypothesis import Phase, settings

PHASES = set(Phase) - {Phase.explain}
"""Hypothesis explains a failure by tracing each line, and a machine's failure would not come in time."""

settings.register_profile("suite", deadline=None, derandomize=True, print_blob=True, phases=PHASES)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True, phases=PHASES)
settings.load_profile("suite")

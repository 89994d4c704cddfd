"""How properties are tested: the same examples each time for the same files, and no limit on the time of one.

The suite must give the same answer twice, also on a machine that is busy. To look for new examples, run
``pytest tests/property --hypothesis-profile=search --timeout=0``; a failure prints the line that replays it.
"""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    print_blob=True,
    report_multiple_bugs=False,
    phases=set(Phase) - {Phase.explain},  # which traces each line: a machine's failure would come too late
)
settings.register_profile("search", settings.get_profile("suite"), derandomize=False, max_examples=2000)
settings.load_profile("suite")

"""What of fairlead a system other than Linux can have, as far as that can be pretended here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "support" / "elsewhere.py"


def test_sync_and_pools_import_nothing_that_only_linux_has_and_what_needs_linux_says_so() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        *["fairlead.sync.shared"] * 2,
        "ProcessPool",
        *["the"] * 2,
    ]

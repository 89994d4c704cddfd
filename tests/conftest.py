"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A deadline measures the machine's load. A failure prints the blob that replays it.
settings.register_profile("fairlead", deadline=None, print_blob=True)
settings.load_profile("fairlead")

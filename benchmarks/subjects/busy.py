"""A CPU-bound process."""

from __future__ import annotations

import subject
from steps import spin

subject.say()
spin()

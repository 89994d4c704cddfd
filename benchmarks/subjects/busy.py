"""A CPU-bound process."""

from __future__ import annotations

import subject

subject.say()
subject.spin()

"""numpy for the lab's arithmetic, or one clear line about the extra that brings it."""

from __future__ import annotations

from fairlead.errors import MissingExtra

try:
    import numpy as np
except ModuleNotFoundError as error:
    raise MissingExtra("the lab's statistics need numpy: pip install 'fairlead[lab]'") from error

__all__ = ["np"]

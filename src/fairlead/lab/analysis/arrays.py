"""numpy for the lab's arithmetic, or one clear line about the extra that brings it."""

from __future__ import annotations

from fairlead.errors import MissingExtraError

try:
    import numpy as np
except ModuleNotFoundError as error:
    raise MissingExtraError("the lab's statistics need numpy: pip install 'fairlead[lab]'") from error

__all__ = ["np"]

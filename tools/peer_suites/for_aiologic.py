"""aiologic's Flag is fairlead.sync.extra's."""

from __future__ import annotations

import aiologic

from fairlead.sync import extra

aiologic.Flag = extra.Flag  # type: ignore[misc,assignment]

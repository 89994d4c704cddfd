"""aiologic's Flag is fairlead.sync's."""

from __future__ import annotations

import aiologic

from fairlead import sync

aiologic.Flag = sync.Flag  # type: ignore[misc,assignment]

"""anyio's primitives are fairlead.sync's."""

from __future__ import annotations

import anyio
import checkpoints
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled

peer = checkpoints.peer
peer.library, peer.EndOfStream, peer.borrowers_as = anyio, anyio.EndOfStream, tuple
peer.checkpoint_if_cancelled = checkpoint_if_cancelled
peer.cancel_shielded_checkpoint = cancel_shielded_checkpoint

for _name in ("Lock", "Condition", "Semaphore", "Event", "CapacityLimiter"):
    setattr(anyio, _name, getattr(checkpoints, _name))
anyio.create_memory_object_stream = checkpoints.Opener()  # type: ignore[misc,assignment]

"""trio's primitives are fairlead.sync's, for its tests. trio's own modules keep theirs."""

from __future__ import annotations

import checkpoints
import trio

peer = checkpoints.peer
peer.library, peer.EndOfStream, peer.borrowers_as = trio, trio.EndOfChannel, list
peer.checkpoint_if_cancelled = trio.lowlevel.checkpoint_if_cancelled
peer.cancel_shielded_checkpoint = trio.lowlevel.cancel_shielded_checkpoint

for _name in ("Lock", "StrictFIFOLock", "Condition", "Semaphore", "Event", "CapacityLimiter"):
    for _place in (trio, trio._sync):
        setattr(_place, _name, getattr(checkpoints, _name))
for _place in (trio, trio._channel):
    _place.open_memory_channel = checkpoints.Opener()  # type: ignore[attr-defined]

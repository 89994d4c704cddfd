"""The table of primitives: what each does, one thing after another. A new one is a class here."""

from __future__ import annotations

from specifications.locks import CombiningLocks, RWLocks, StampedLocks
from specifications.meetings import Barriers, Conditions, Counts, Meetings, Phasers
from specifications.permits import Limiters, Permits, Rates, RLocks
from specifications.queues import Channels, Queues, SimpleQueues, Tapes
from specifications.small import Flags, Onces, ResourceGuards, StripedCounters

SPECIFICATIONS = [
    *(Permits, RLocks, Limiters, Rates, RWLocks, StampedLocks, CombiningLocks),
    *(Counts, Barriers, Conditions, Phasers, Meetings, SimpleQueues, Queues, Channels, Tapes),
    *(Onces, ResourceGuards, Flags, StripedCounters),
]

"""The table of primitives: what each does, one thing after another. A new one is a class here."""

from __future__ import annotations

from specifications.locks import Combiners, RWLocks, StampedLocks
from specifications.meetings import Barriers, Conditions, Counts, Exchanges, Meetings, Phasers
from specifications.permits import Limiters, Permits, Rates, RLocks
from specifications.queues import Channels, Queues, SimpleQueues, Tapes
from specifications.small import Flags, Onces, ResourceGuards, StripedCounters

SPECIFICATIONS = [
    *(Permits, RLocks, Limiters, Rates, RWLocks, StampedLocks, Combiners),
    *(Counts, Barriers, Conditions, Phasers, Exchanges, Meetings, SimpleQueues, Queues, Channels, Tapes),
    *(Onces, ResourceGuards, Flags, StripedCounters),
]

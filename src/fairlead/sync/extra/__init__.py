"""Primitives for special cases, provisional: they may change in any release.

All but Combiner are Python, built on ``fairlead.sync``. docs/reference/extra.md says what each promises.
"""

from fairlead._native import Combiner
from fairlead._native import CombinerStatistics as CombinerStatistics
from fairlead.sync.extra._clock import ManualClock
from fairlead.sync.extra._counter import StripedCounter
from fairlead.sync.extra._counter import StripedCounterStatistics as StripedCounterStatistics
from fairlead.sync.extra._exchanger import Exchanger
from fairlead.sync.extra._exchanger import ExchangerStatistics as ExchangerStatistics
from fairlead.sync.extra._flag import Flag
from fairlead.sync.extra._flag import FlagStatistics as FlagStatistics
from fairlead.sync.extra._guard import ResourceGuard
from fairlead.sync.extra._guard import ResourceGuardStatistics as ResourceGuardStatistics
from fairlead.sync.extra._phaser import Phaser
from fairlead.sync.extra._phaser import PhaserStatistics as PhaserStatistics
from fairlead.sync.extra._stamped import StampedLock
from fairlead.sync.extra._stamped import StampedLockStatistics as StampedLockStatistics

__all__ = [
    "Combiner",
    "Exchanger",
    "Flag",
    "ManualClock",
    "Phaser",
    "ResourceGuard",
    "StampedLock",
    "StripedCounter",
]

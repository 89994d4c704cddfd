"""janus's queues are fairlead.sync's."""

import threading

import janus
import two_sides

two_sides.put_into(janus)
two_sides.Queue._sync_mutex = threading.Lock()  # type: ignore[attr-defined] # the tests wait until it is free
two_sides.Queue._sync_not_empty_waiting = two_sides.Queue.getting  # type: ignore[attr-defined]
two_sides.Queue._async_not_empty_waiting = two_sides.Queue.getting  # type: ignore[attr-defined]
two_sides.Queue._sync_not_full_waiting = two_sides.Queue.putting  # type: ignore[attr-defined]
two_sides.Queue._async_not_full_waiting = two_sides.Queue.putting  # type: ignore[attr-defined]
two_sides.Both._maxsize = two_sides.Both.maxsize  # type: ignore[attr-defined]
two_sides.Both._parent = property(lambda side: side.wrapped)  # type: ignore[attr-defined]

"""Functions whose calls may go to workers elsewhere, or may not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.pools.choose.sharing import Arguments, Sharing, kind_of
from fairlead.pools.serialization.calls import ByValue
from fairlead.pools.serialization.chunks import call_chunk

REMEMBERED = 128


class KnownFunctions:
    """For one pool. Any thread."""

    def __init__(self) -> None:
        self._shared: dict[Any, Sharing | None] = {}
        """What a function shares; None: its calls stay in this process."""

    def remember(self, function: Callable[..., Any], sharing: Sharing | None) -> None:
        with contextlib.suppress(TypeError):  # it may not be hashable
            while len(self._shared) >= REMEMBERED:
                self._shared.pop(next(iter(self._shared)), None)
            self._shared[function] = sharing

    def may_go(self, called: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether this call, or chunk of calls, comes to the same elsewhere. Of a function about which no
        worker was asked, all that it reads must be sent with it."""
        function, calls = function_of(called, args), calls_of(called, args, kwargs)
        try:
            sharing = self._shared[function]
        except (KeyError, TypeError):
            sharing = Sharing(function)
            may_go = sharing.doubt(calls) is None and sharing.goes_with_it()
            self.remember(function, sharing if may_go else None)
            return may_go
        if sharing is None:
            return False
        if sharing.doubt(calls) is None and sharing.stays_the_same():
            return True
        self.remember(function, None)
        return False


def function_of(called: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """The user's, of a call that may be one of a chunk, or of one that was pickled in advance."""
    function: Callable[..., Any] = args[0] if called is call_chunk else called
    return function.function if isinstance(function, ByValue) else function


def calls_of(called: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Arguments]:
    """Each kind of arguments once."""
    if called is not call_chunk:
        return [((*args, *kwargs.values()), bool(kwargs))]
    _, items, star = args
    if star:
        return [(tuple(item), False) for item in {tuple(map(type, item)): item for item in items}.values()]
    return [((item,), False) for item in {kind_of(item): item for item in items}.values()]

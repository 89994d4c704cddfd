"""What is done to a module as soon as the program imports it.

Before the program's first line fairlead imports none of the standard library's modules: they would be there
in place of the program's own of the same names (``types.py``, ``queue.py``), and those of the modules that
they import. What is to be changed in one of them waits here until the program imports it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_waiting: dict[str, list[Callable[[Any], None]]] = {}


def when_imported(name: str, do: Callable[[Any], None]) -> None:
    """Call it with the module of the standard library: now if that has been imported, else right after it
    has been. A module of the program that has its name is none of that."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        do(module)
        return
    _waiting.setdefault(name, []).append(do)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def _of_python(spec: ModuleSpec) -> bool:
    origin = spec.origin or ""
    return origin in ("built-in", "frozen") or origin.startswith(os.path.dirname(os.__file__) + os.sep)  # noqa: PTH120


class _Finder:
    """Finds what is waited for as the other finders do, and is there no longer than something is."""

    @classmethod
    def find_spec(cls, name: str, *where: Any) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is not cls and (spec := finder.find_spec(name, *where)) is not None:
                if spec.loader is not None and _of_python(spec):
                    loader: Any = _Loader(spec.loader)
                    spec.loader = loader
                return spec
        return None


class _Loader:
    """The module's own loader, but for what is done afterwards."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for do in _waiting.pop(module.__name__, []):
            do(module)
        if not _waiting and _Finder in sys.meta_path:
            sys.meta_path.remove(_Finder)

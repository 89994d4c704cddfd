"""fairlead makes Python concurrency measurable, and then makes it fast.

Importing this package imports nothing but itself: every part is a sub-package
of its own, loaded when it is asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead import gil as gil
    from fairlead import pools as pools
    from fairlead import sync as sync
    from fairlead.advice import advise as advise

_PARTS = ("gil", "pools", "sync")


def __getattr__(name: str) -> object:
    if name in _PARTS:
        import importlib

        return importlib.import_module(f"fairlead.{name}")
    if name == "advise":
        from fairlead.advice import advise

        return advise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PARTS, "advise"])

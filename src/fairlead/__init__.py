"""fairlead makes Python concurrency measurable, and then makes it fast.

Importing this package imports nothing but itself: every part is a sub-package
of its own, loaded when it is asked for.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.advice import advise as advise


def __getattr__(name: str) -> object:
    if name != "advise":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairlead.advice import advise

    return advise

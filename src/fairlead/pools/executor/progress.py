"""Progress bars: rich's, or any object that speaks as tqdm's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from fairlead.errors import MissingExtraError, UsageError


@runtime_checkable
class ProgressBar(Protocol):
    """What of tqdm's interface is used."""

    def update(self, n: int) -> Any: ...

    def close(self) -> Any: ...


Progress = bool | ProgressBar | Callable[..., ProgressBar]


def pause(bar: ProgressBar | None) -> None:
    """The code that advances it may raise an exception: a live display is not left behind by that. The next
    update goes on with it."""
    if isinstance(bar, _RichBar):
        bar.close()


def bar(wanted: Progress, total: int | None) -> ProgressBar | None:
    """The bar to advance, or None."""
    if wanted is False:
        return None
    if wanted is True:
        return _RichBar(total)
    if callable(wanted) and (isinstance(wanted, type) or not isinstance(wanted, ProgressBar)):
        made: object = wanted(total=total)
    else:
        made = wanted
    if not isinstance(made, ProgressBar):
        raise UsageError(
            "progress must be True, a bar with update() and close(), as tqdm's, or what makes such a bar, as "
            f"tqdm itself; not {wanted!r}"
        )
    return made


class _RichBar:
    def __init__(self, total: int | None) -> None:
        try:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
        except ImportError as error:
            raise MissingExtraError(
                "progress=True needs rich: pip install 'fairlead[lab]', or give an object as tqdm's"
            ) from error
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns)
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def update(self, n: int) -> None:
        self._progress.start()
        self._progress.advance(self._task, n)

    def close(self) -> None:
        self._progress.stop()

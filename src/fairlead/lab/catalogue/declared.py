"""What an experiment declares that a run is to settle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.record.summary import ClaimKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A claim as an experiment declares it."""

    topic: str
    says: str = "{over} takes less time than {of}"
    """The sentence when the value lies above the threshold; "{n}" in it is the size, "{of}" and "{over}" are
    what the two sides are called."""
    otherwise: str = "{over} takes no less time than {of}"
    """The sentence when it lies below."""
    more_than: float = 1.1
    """The threshold."""
    kind: ClaimKind = "ratio"
    of: dict[str, Any] = field(default_factory=dict)
    """Parameters of the series whose time is divided, ``n`` and ``experiment`` among them; of an exponent, of
    the series. ``n`` is a number, "least" or "greatest"; without it, the greatest n that both sides have."""
    over: dict[str, Any] = field(default_factory=dict)
    """Parameters of the series that it is divided by."""
    over_metric: str = ""
    """A metric of the same sample that is divided by, in place of ``over``."""
    metric: str = ""
    """A metric of both samples that is divided in place of their times."""
    main: bool = True
    """Whether it stands in the short report; the others are shown with the tables."""

    def of_case(self, case: str, title: str) -> Declared:
        """Of a file's claims that of one of its cases, whose names take the places of {case} and {title}."""
        texts = {name: getattr(self, name) for name in ("topic", "says", "otherwise")}
        filled = {key: text.replace("{case}", case).replace("{title}", title) for key, text in texts.items()}
        return replace(self, **filled)

    def said(
        self, above: bool, ends: tuple[float, float] | None, n: int, of: str = "", over: str = ""
    ) -> str:
        """The sentence of a value on this side of the threshold: a difference below it is told as small, and
        not as none."""
        text = self.says if above else self.otherwise
        if not above and self.kind == "ratio" and ends is not None and ends[0] > 1:
            text += f", or by less than {self.more_than - 1:.0%}".replace("%", " %")
        return text.format(n=n, of=of, over=over)

"""A document that experiments repeat: whose it is, and what of the lab shows what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One of its tables, listings or conclusions."""

    title: str
    experiment: str
    settings: tuple[dict[str, Any], ...]
    """Of each series that shows it, the parameters in which its experiment's variants differ."""
    labels: tuple[str, ...] = ()
    """Of the published figures of those series the ones that it prints; empty: all."""
    says: str = ""
    """What the document concludes, in our words, where it prints no figure."""
    claims: tuple[str, ...] = ()
    """Topics of the claims that judge it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Text that is empty is not known."""

    id: str
    author: str
    title: str
    address: str
    licence: str
    tables: tuple[Table, ...]

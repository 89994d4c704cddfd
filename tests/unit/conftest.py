"""Fixtures that several files of tests share."""

from poolkinds import make, several

__all__ = ["make", "several"]

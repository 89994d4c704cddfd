"""Runs side by side, as text, page and data."""

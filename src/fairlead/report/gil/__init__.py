"""A recording of the GIL, as text, page and data."""

"""A run of the lab, or several together, as text, page and data."""

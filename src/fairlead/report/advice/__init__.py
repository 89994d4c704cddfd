"""What ``fairlead advise`` found, as text, page and data."""

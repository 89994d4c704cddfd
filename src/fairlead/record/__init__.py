"""Versioned files of results: what a sample is, how it is written and read, what reports are made of."""

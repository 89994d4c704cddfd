"""Versioned files of results: what a sample is, how samples are written and read, and the pure data reports are made of."""

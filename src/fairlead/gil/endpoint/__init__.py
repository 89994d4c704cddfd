"""Answers about the GIL over HTTP, from a thread that never takes it."""

"""The GIL observed: getting into a program, reading who holds and who waits, counting and recording it."""

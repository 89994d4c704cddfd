"""The GIL observed: getting into a program, reading which threads hold it or wait, counting, recording."""

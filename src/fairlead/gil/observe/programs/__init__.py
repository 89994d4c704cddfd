"""Getting into other programs: starting one with code of fairlead in it, or attaching to one that runs."""

"""A program that is run apart: ended with all its children, and the load of others while it ran."""

"""fairlead makes Python concurrency measurable, and then makes it fast.

Importing this package imports nothing but itself: every part is a sub-package
of its own, loaded when it is asked for.
"""

__version__ = "0.1.0"

"""How a task is stopped. Imported by workers of every kind; without imports of its own."""


class Stopped(BaseException):
    """Sent into a worker's thread to end its task; never leaves the pool."""

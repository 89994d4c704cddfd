"""The tasks of the experiments on models. Workers of every kind import them: this module imports little."""

import probe

FIB = 24
FIB_ANSWER = 46368


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute(address=None):
    """The CPU-bound task."""
    if fib(FIB) != FIB_ANSWER:
        raise probe.Failed("a Fibonacci number came out wrong")


def fetch(address):
    """The task that waits: a document of the local server, by a client that blocks."""
    import http.client

    connection = http.client.HTTPConnection(address[0], address[1])
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    if body != b"answer":
        raise probe.Failed("the local server answered %r" % body)

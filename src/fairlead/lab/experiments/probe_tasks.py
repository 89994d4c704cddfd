"""The tasks of the experiments on models. Workers of every kind import them: this module imports little.

A task is given (host, port, repeat): where the local server is, and how often it does its work.
"""

import probe

FIB = 24
FIB_ANSWER = 46368


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute(work):
    """The CPU-bound task."""
    for _ in range(work[2]):
        if fib(FIB) != FIB_ANSWER:
            raise probe.Failed("a Fibonacci number came out wrong")


def fetch(work):
    """The task that waits: a document of the local server, by a client that blocks."""
    import http.client

    connection = http.client.HTTPConnection(work[0], work[1])
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    if body != b"answer":
        raise probe.Failed("the local server answered %r" % body)

"""Tasks in interpreters of one process, in two designs, with what CPython itself has from 3.13 on.

In the channel design a loop in every interpreter takes items from one queue that all share. In the call
design a thread of the main interpreter sends one call after another into its interpreter. This module is on
both sides of either; for what is in an interpreter it imports little, because every interpreter imports it
anew.
"""

import os
import pickle
import sys

import _interpreters
import _interpqueues

# Before 3.14 a queue has to be told what to do with what cannot be handed over as it is (0: refuse it), and
# with an item whose interpreter has ended (3: put a mark in its place).
_ASKED_FOR = (0, 3) if sys.version_info < (3, 14) else ()

_BOOT = """
import sys
sys.path.insert(0, {path!r})
import probe_interpreters
from probe_workloads import {name} as function
"""


class Board(object):
    """A queue of objects between interpreters, and a pipe by which a reader sleeps until there is one.

    CPython's own queue has no way to wait but to look again. A board is known by its three numbers.
    """

    def __init__(self, numbers=None):
        if numbers is None:
            queue = _interpqueues.create(0, *_ASKED_FOR)
            numbers = (queue,) + os.pipe()
        self.numbers = numbers
        self._queue, self._ear, self._mouth = numbers

    def put(self, value):
        # what cannot be handed over goes as a pickle
        shared = value if type(value) in (int, float, bytes) else None
        message = (1, shared) if shared is not None else (0, pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        _interpqueues.put(self._queue, message, *_ASKED_FOR)
        os.write(self._mouth, b"x")

    def get(self):
        """The next (True, value); (False, None) when the board is closed."""
        if not os.read(self._ear, 1):
            return False, None
        as_it_is, value = _interpqueues.get(self._queue)[0]
        return True, value if as_it_is else pickle.loads(value)

    def close(self):
        """There will be no more; a waiting ``get`` returns."""
        os.close(self._mouth)

    def destroy(self):
        os.close(self._ear)
        _interpqueues.destroy(self._queue)


def make(function):
    """An interpreter with a GIL of its own in which ``function`` has been imported; its number."""
    number = _interpreters.create()
    run(number, _BOOT.format(path=os.path.dirname(os.path.abspath(__file__)), name=function.__name__))
    return number


def run(number, code):
    """Execute code in an interpreter, in the calling thread."""
    error = _interpreters.exec(number, code)
    if error is not None:
        raise RuntimeError("in an interpreter: %s" % error.formatted)


def destroy(number):
    _interpreters.destroy(number)


# ---- in the interpreter


def serve(function, inbox, outbox):
    """The channel design: take items and put results until the board is closed."""
    items, results = Board(inbox), Board(outbox)
    while True:
        there, item = items.get()
        if not there:
            return
        results.put(function(item))


def answer(function, inbox, outbox):
    """The call design where there is no way to call: one item, one result."""
    Board(outbox).put(function(Board(inbox).get()[1]))

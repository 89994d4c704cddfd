"""Has CPython run a module's functions without specialised instructions.

From 3.11 on CPython replaces instructions by faster ones for the types that it meets (PEP 659). Free-threaded
builds have a switch for that from 3.14 on, PYTHON_TLBC=0. Builds with a GIL have none, but for numbers in
each code object, which this module sets to values at which CPython leaves all instructions as they are:

* 3.11 specialises a function when the count of its calls, which begins below zero, reaches zero. A count
  that is zero from the beginning is never looked at again.
* From 3.13 on each instruction has a counter, which has one value for "never".
* 3.12 has counters as well, and none of their values lasts: the greatest is used up after 4,095 runs.

``share`` counts what CPython has specialised, so that a version that does otherwise is found out. The order
comes by the environment, which workers of every kind inherit.
"""

import ctypes
import dis
import opcode
import os
import sys
import types

import probe

VARIABLE = "FAIRLEAD_PROBE_SPECIALISATION"
OFF = "off"

_FREE_THREADED = "free-threading" in sys.version
_WARMUP_OFFSET, _WARMUP_NEW = 52, -8
"""Of 3.11's ``co_warmup``, a short: where it is in a code object, and what it is in a new one."""
_NEVER = 0xFFFF
"""The value of a counter (``_Py_BackoffCounter``, pycore_backoff.h) that never reaches its end."""
_FOR_THE_COMPILER = ("JUMP_BACKWARD", "POP_JUMP_", "RESUME")
"""Instructions whose counters say when the JIT compiler is worth it."""


def begin():
    """Have this process, and workers that it starts, specialise nothing; starts it again where that takes it.

    Raises:
        probe.Skipped: nothing is specialised here anyway, or nothing switches it off.
    """
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
        raise probe.Skipped("this interpreter specialises no instructions: CPython does from 3.11 on")
    if _FREE_THREADED and sys.version_info < (3, 14):
        raise probe.Skipped("free-threaded builds specialise instructions from 3.14 on")
    if not _FREE_THREADED and sys.version_info[:2] == (3, 12):
        raise probe.Skipped("nothing keeps CPython 3.12 from specialising")
    if os.environ.get(VARIABLE) == OFF:
        return
    os.environ[VARIABLE] = OFF
    os.environ["PYTHON_TLBC"] = "0"  # read by free-threaded builds alone
    os.execv(sys.executable, [sys.executable] + sys.argv)


def obey(module):
    """Do as the environment says with all functions of a module: give them new code that stays as it is."""
    if os.environ.get(VARIABLE) == OFF and not _FREE_THREADED:
        for function in _functions(module):
            function.__code__ = _fixed(function.__code__)


def share(module):
    """Of the instructions in a module's functions that can be specialised, the share that is by now."""
    there = specialised = 0
    for function in _functions(module):
        for code in _with_inner(function.__code__):
            now = dict((one.offset, one.opname) for one in dis.get_instructions(code, adaptive=True))
            for one in _adaptive(code):
                there += 1
                specialised += now[one.offset] not in (one.opname, one.opname + "_ADAPTIVE")
    return specialised / there


def _functions(module):
    """The functions of a module, and the methods of its classes."""
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == module.__name__:
            for member in [value] + list(getattr(value, "__dict__", {}).values()):
                if isinstance(member, types.FunctionType):
                    yield member


def _with_inner(code):
    """A code object, and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in _with_inner(constant):
                yield inner


def _fixed(code):
    """A copy of a code object that has not run, and whose instructions stay as they are."""
    constants = [_fixed(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    code = code.replace(co_consts=tuple(constants))
    if sys.version_info < (3, 13):
        warmup = ctypes.c_short.from_address(id(code) + _WARMUP_OFFSET)
        if warmup.value != _WARMUP_NEW:
            raise probe.Failed("this CPython 3.11 counts calls in another place than others")
        warmup.value = 0
    else:
        start = id(code) + types.CodeType.__basicsize__
        for one in _adaptive(code):
            # the counter is the first cache entry behind the instruction, which is two bytes as that is
            ctypes.c_ushort.from_address(start + one.offset + 2).value = _NEVER
    return code


def _adaptive(code):
    """The instructions of a code object that CPython may specialise."""
    caches = opcode._cache_format
    counted = [one for one in dis.get_instructions(code) if "counter" in caches.get(one.opname, ())]
    return [one for one in counted if not one.opname.startswith(_FOR_THE_COMPILER)]

"""What is known of functions that are not followed."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS = _words(
    """
    get items keys values copy index count sum mean min max std var any all dot tolist tobytes astype
    join startswith endswith union intersection difference symmetric_difference issubset issuperset
    isdisjoint most_common elements total strip split lower upper format encode decode hex argmin argmax
    cumsum prod nonzero round clip conj transpose flatten item real imag is_integer bit_length
    """
)
"""Methods that leave their object as it is, of whatever class of a library that is."""
PURE_BUILTINS = _words(
    """
    abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float format
    frozenset hash hex id int isinstance issubclass iter len list map max min oct ord pow range repr
    reversed round set slice sorted str sum tuple type zip object super bytearray memoryview property
    staticmethod classmethod BaseException
    """
)
PURE_LIBRARIES = _words(
    """
    math cmath statistics json re itertools operator functools hashlib zlib bz2 lzma struct base64
    binascii textwrap string copy collections datetime decimal fractions difflib numpy scipy time
    _operator _functools _collections _struct _json _hashlib _md5 _sha1 _sha2 _sha256 _sha512 _bisect
    bisect heapq _statistics calendar colorsys unicodedata html urllib xml csv _csv ast tokenize
    builtins
    """
)
"""Their functions leave their arguments alone, but for CHANGING."""
CHANGING = _words(
    """
    shuffle copyto put place putmask fill_diagonal heappush heappop heapify heapreplace heappushpop
    insort insort_left insort_right setitem delitem pack_into iadd
    """
)
CANNOT_BE_FOLLOWED = _words(
    """
    exec eval compile globals locals vars setattr delattr __import__ open_code input
    """
)
OF_THE_PROCESS = _words(
    """
    chdir fchdir putenv unsetenv umask setlocale signal setrecursionlimit setswitchinterval getcontext
    setcontext localcontext seed setattr set_event_loop tzset
    """
)
"""Functions of libraries that change, or hand out, what the process or the thread has."""

"""What is known of functions that are not followed."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS = _words(
    """
    get items keys values copy index count sum mean min max std var any all dot tolist tobytes astype
    join startswith endswith union intersection difference symmetric_difference issubset issuperset
    isdisjoint most_common elements total strip split lower upper format encode decode hex argmin argmax
    cumsum prod nonzero round clip conj transpose flatten item real imag is_integer bit_length reshape ravel
    squeeze swapaxes view argsort take repeat trace diagonal searchsorted ptp find rfind replace cumprod
    partition is_set isoformat strftime timestamp title fullmatch match search
    """
)
"""Methods that leave their object as it is, of whatever class of a library that is."""
VIEWS = _words(
    """
    asarray asanyarray ascontiguousarray reshape ravel transpose squeeze expand_dims swapaxes moveaxis
    rollaxis atleast_1d atleast_2d atleast_3d broadcast_to broadcast_arrays split array_split hsplit vsplit
    dsplit diag diagonal real imag flip fliplr flipud rot90 nan_to_num require frombuffer as_strided view
    sliding_window_view T flat base __getitem__
    """
)
"""Functions, methods and attributes that hand out the memory of an array."""
KEEPS = _words("append add extend insert put appendleft extendleft setdefault update push write writerow")
"""Methods that have an object hold what they are given, and leave that as it is."""
PURE_BUILTINS = _words(
    """
    abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float format
    frozenset hash hex id int isinstance issubclass iter len list map max min oct ord pow range repr
    reversed round set slice sorted str sum tuple type zip object super bytearray memoryview property
    staticmethod classmethod BaseException getattr hasattr next print
    """
)
MAKES = _words(
    """
    dict enumerate filter frozenset iter list map reversed set sorted tuple zip deque defaultdict Counter
    OrderedDict nlargest nsmallest merge chain copy
    """
)
"""Functions whose result holds what is in their arguments; others of GIVES may hand that out itself."""
ATOMIC = _words(
    """
    abs all any ascii bin bool bytes callable chr complex divmod float format hash hex id int isinstance
    issubclass len oct ord pow range repr round str sum bytearray print deepcopy hasattr is_dataclass
    """
)
GIVES = _words(
    "builtins itertools operator functools collections copy heapq dataclasses random _operator _functools"
    " _collections _heapq contextlib types typing concurrent asyncio"
)
PURE_LIBRARIES = _words(
    """
    math cmath statistics json re itertools operator functools hashlib zlib bz2 lzma struct base64
    binascii textwrap string copy collections datetime decimal fractions difflib numpy scipy time
    _operator _functools _collections _struct _json _hashlib _md5 _sha1 _sha2 _sha256 _sha512 _bisect
    bisect heapq _heapq _statistics calendar colorsys unicodedata html urllib xml csv _csv ast tokenize
    builtins dataclasses
    """
)
"""Their functions leave their arguments alone, but for CHANGING."""
GIVES_ITS_OWN = _words("get values items copy elements most_common")
"""Methods that give what is in their object."""
MAKERS = _words(
    "__new__ __init__ __init_subclass__ __class_getitem__ __post_init__ __annotate__ __annotate_func__"
)
WRITERS = MAKERS | _words(
    "__set_name__ __setitem__ __delitem__ __setattr__ __delattr__ __set__ __delete__ __setstate__ __reduce__"
    " __reduce_ex__ __getstate__ __enter__ __exit__ __next__ __subclasshook__ __iadd__ __isub__ __imul__"
    " __ior__ __iand__ __ixor__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__ __call__"
)
"""Methods that nothing calls of an object that is only read, or that are followed where they are called."""
CHANGING = _words(
    """
    shuffle copyto put place putmask fill_diagonal heappush heappop heapify heapreplace heappushpop
    insort insort_left insort_right setitem delitem pack_into iadd methodcaller at iconcat ior
    """
)
CANNOT_BE_FOLLOWED = _words(
    """
    exec eval compile globals locals vars setattr delattr __import__ open_code input import_module
    """
)
OF_THE_PROCESS = _words(
    """
    chdir fchdir putenv unsetenv umask setlocale signal setrecursionlimit setswitchinterval getcontext
    setcontext localcontext seed setattr set_event_loop tzset warn warn_explicit simplefilter filterwarnings
    getpid getppid get_ident get_native_id current_thread main_thread active_count getsignal register
    unregister _getframe settrace setprofile __subclasses__ register_dialect
    setdefaulttimeout set_int_max_str_digits getLevelName disable captureWarnings basicConfig get_event_loop
    getrefcount collect get_objects get_referrers
    """
)
"""Functions of libraries that change, or hand out, what the process or the thread has."""
FUNCTIONS = _words("function ufunc _ArrayFunctionDispatcher cython_function_or_method")
"""Types of what can be called and has no state of its own."""
LOGGING = _words("debug info warning error critical exception log")
SETTINGS = {
    "sys": ("getrecursionlimit", "get_int_max_str_digits"),
    "numpy": ("get_printoptions", "geterr"),
    "csv": ("list_dialects",),
    "_csv": ("list_dialects",),
    "socket": ("getdefaulttimeout",),
    "_socket": ("getdefaulttimeout",),
    "locale": ("getlocale",),
    "decimal": ("getcontext",),
    "tempfile": ("gettempdir",),
}
"""What a program sets in a library and the library's functions go by: what tells it."""

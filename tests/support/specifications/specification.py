"""Sequential specifications: what a primitive does when one thing happens after another.

A specification is a class. Its attributes that are strategies are the primitive's parameters, ``make`` makes
the primitive, and the methods with ``@waits`` or ``@at_once`` are its operations. Such a method returns what
the call `me` comes to, an exception's class included, or WAITS, and then has changed nothing: it is tried
again, in the order of waiting, whenever something has changed. What a task is granted is its own at once;
the task goes on when the loop runs. Beside an operation NAME there may be

* ``ran_NAME``: its task goes on; what this returns is the result.
* ``undo_NAME``: it had been granted, and its task was cancelled before it could go on.
* ``left_NAME``: it gave up waiting, because it was cancelled or does not wait at all.

``check`` compares what the primitive says of itself, after every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

WAITS = "waits"
CANCELLED = "cancelled"
TASKS = 8
THREAD = TASKS
"""The number of the loop's own thread; those of its tasks are below."""


class Call:
    """One call of an operation, by a task or the thread, and what it comes to."""

    final = False
    """What it was granted cannot be undone: a cancellation comes too late."""
    late = False
    """One did."""
    now = False
    """It is asked for in a form that does not wait."""
    result: Any = WAITS

    def __init__(self, who: int, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.who, self.name, self.arguments = who, name, arguments

    def __repr__(self) -> str:
        return f"{self.name}{self.arguments} of {'the thread' if self.who == THREAD else self.who}"


class Operation(NamedTuple):
    """How it is asked for: ``task`` makes what a task awaits; the forms in ``now`` do not wait, and come to
    ``refused`` where they would have to. A form is called with the specification and the arguments."""

    arguments: tuple[Any, ...]
    """Strategies, or functions that make one of the specification."""
    task: list[Any]
    now: list[Any]
    refused: Any
    when: Any
    """Whether `me` may call it."""
    by_thread: bool
    likely: Any
    """Whether `me` is to call it more often than what comes to nothing, or ends all."""


def waits(*arguments: Any, refused: Any = None, nowait: bool = False, **options: Any) -> Any:
    """An operation that may wait: by default NAME_async(), NAME(timeout=0) and perhaps NAME_nowait()."""
    now = [("", {"timeout": 0}), *[("_nowait", {})] * nowait]
    return _operation(arguments, refused, [("_async", {})], now, **options)


def rare(_: Any) -> bool:
    return False


def at_once(*arguments: Any, **options: Any) -> Any:
    """An operation that never waits: by default NAME()."""
    return _operation(arguments, None, [], [("", {})], **options)


def _operation(
    arguments: tuple[Any, ...],
    refused: Any,
    *defaults: Any,
    on: Any = None,
    task: Any = None,
    now: Any = None,
    when: Callable[[Any], Any] = bool,
    by_thread: bool = False,
    likely: Callable[[Any], Any] = bool,
    **named: Any,
) -> Any:
    """The forms are methods of the subject, or of what `on` makes of the specification and the first
    argument. An argument may have a name, and is left out if it is None."""

    def form(name: str, more: dict[str, Any]) -> Any:
        def ask(it: Any, *given: Any) -> Any:
            target, *rest = (it.subject, *given) if on is None else (on(it, given[0]), *given[1:])
            plain = rest[: len(rest) - len(named)]
            last = zip(named, rest[len(plain) :], strict=True)
            return getattr(target, name)(*plain, **more, **{key: one for key, one in last if one is not None})

        return ask

    def mark(method: Any) -> Any:
        forms = [[form(method.__name__ + ending, more) for ending, more in kind] for kind in defaults]
        if task or now:
            forms = [[task] if task else [], [now] if now else []]
        method.operation = Operation((*arguments, *named.values()), *forms, refused, when, by_thread, likely)
        return method

    return mark


class Specification:
    operations: dict[str, Operation]
    examples = 30
    steps = 25
    barging = False
    """A newcomer may pass those that wait, for a time."""
    age = 0
    me: Call
    """The call that is tried, or goes on, or is given up."""

    def __init_subclass__(cls) -> None:
        methods = {name: getattr(cls, name) for name in dir(cls)}
        cls.operations = {name: one.operation for name, one in methods.items() if hasattr(one, "operation")}

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        for name in dir(type(self)):
            if isinstance(parameter := getattr(self, name), st.SearchStrategy):
                setattr(self, name, draw(parameter))
        self.queue: list[Call] = []
        """Those that wait, in order."""
        self.granted: list[Call] = []
        """Those that have what they waited for, and whose tasks have not run since."""
        self.doomed: list[Call] = []
        """Those of both whose tasks were cancelled and have not run since."""
        self.ended: list[Call] = []
        self.subject = self.make()

    def make(self) -> Any:
        raise NotImplementedError

    def statistics(self) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        assert self.subject.statistics() == self.statistics()

    def stop(self) -> None:
        """Whatever the thread has not brought to an end."""

    def ahead(self, *names: str) -> list[Call]:
        """Those that wait for the same as `me`, or for one of these, and came before."""
        before = self.queue[: self.queue.index(self.me)] if self.me in self.queue else self.queue
        return [call for call in before if call.name in (names or (self.me.name,))]

    def attempt(self, call: Call) -> Any:
        self.me = call
        return getattr(self, call.name)(*call.arguments)

    def hook(self, kind: str, call: Call) -> Any:
        self.me = call
        method = getattr(self, f"{kind}_{call.name}", None)
        return method(*call.arguments) if method and not failed(call.result) else call.result

    def enqueue(self, call: Call) -> None:
        self.queue.append(call)

    def grant(self, call: Call, result: Any) -> None:
        self.queue.remove(call)
        self.granted.append(call)
        call.result = result

    def retry(self, call: Call) -> bool:
        result = self.attempt(call) if call in self.queue else WAITS
        if result is not WAITS:
            self.grant(call, result)
        return result is not WAITS

    def serve(self) -> None:
        """Something has changed."""
        while sum(self.retry(call) for call in list(self.queue)):
            pass

    def end(self, call: Call, result: Any) -> None:
        call.result = result
        self.ended.append(call)

    def refusal(self) -> Any:
        return self.operations[self.me.name].refused

    def call(self, call: Call) -> None:
        self.age += 1
        call.result = self.attempt(call)
        if call.result is not WAITS:
            self.end(call, self.hook("ran", call))
        elif call.now:
            self.hook("left", call)
            self.end(call, self.refusal())
        else:
            self.enqueue(call)
        self.serve()

    def cancel(self, call: Call) -> None:
        if call in self.queue:
            self.queue.remove(call)
            self.hook("left", call)
        elif call.final:
            call.late = True
            return  # its task goes on
        else:
            self.granted.remove(call)
            self.hook("undo", call)
        self.end(call, CANCELLED)

    def run(self) -> None:
        """The loop runs until nothing more happens: cancelled tasks go first."""
        while self.doomed or self.granted:
            if self.doomed:
                self.cancel(self.doomed.pop(0))
            else:
                call = self.granted.pop(0)
                self.end(call, self.hook("ran", call))
            self.serve()


def failed(result: Any) -> bool:
    return isinstance(result, type) and issubclass(result, Exception)

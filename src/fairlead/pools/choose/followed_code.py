"""One function's code, followed with labels: see effects.py. From instruction to instruction as the
interpreter would go, along both ways of each branch, until no label changes any more."""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from fairlead.pools.choose.labels import (
    UNKNOWN,
    Doubt,
    ElementOf,
    Label,
    MadeFunction,
    Method,
    element,
    merged,
    named_in,
)

if TYPE_CHECKING:
    from fairlead.pools.choose.effects import Effects

NULL, SELF = object(), object()
"""What the interpreter has beside a function that it is about to call: nothing, or the method's object."""

_SIMPLE = {
    name: tuple(map(int, effect))
    for effect, names in {
        "00": "CACHE NOP RESUME EXTENDED_ARG MAKE_CELL COPY_FREE_VARS PRECALL NOT_TAKEN DELETE_FAST"
        " DELETE_DEREF SETUP_ANNOTATIONS",
        "01": "LOAD_CLOSURE LOAD_NAME LOAD_LOCALS LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT"
        " LOAD_SMALL_INT RETURN_GENERATOR GET_LEN MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS PUSH_EXC_INFO"
        " WITH_EXCEPT_START",
        "10": "POP_TOP POP_EXCEPT STORE_NAME",
        "11": "TO_BOOL UNARY_NOT UNARY_NEGATIVE UNARY_INVERT UNARY_POSITIVE FORMAT_SIMPLE CONVERT_VALUE"
        " CHECK_EXC_MATCH",
        "21": "COMPARE_OP IS_OP CONTAINS_OP FORMAT_WITH_SPEC CALL_INTRINSIC_2",
    }.items()
    for name in names.split()
}
"""(popped, pushed), where what is popped does not matter."""
_BUILDS = {"BUILD_TUPLE": 1, "BUILD_LIST": 1, "BUILD_SET": 1, "BUILD_MAP": 2}
_ITERATOR = -dis.stack_effect(dis.opmap["POP_ITER"]) if "POP_ITER" in dis.opmap else 1
"""Places on the stack of an iterator and what belongs to it."""
_END = {"RETURN_VALUE", "RERAISE", "RAISE_VARARGS", "RETURN_CONST", "INTERPRETER_EXIT"}
_ALWAYS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "JUMP_NO_INTERRUPT"}
_NULL_FIRST = sys.version_info < (3, 13)
_KWARGS_ALWAYS = sys.version_info >= (3, 14)
_GENERATOR = 0x20


class FollowedCode:
    """
    Args:
        cells: what its closure refers to, where it is no body within another function.
        outer: of a body within another function, that function's.
    """

    def __init__(
        self,
        effects: Effects,
        code: CodeType,
        scope: dict[str, Any],
        cells: dict[str, Any],
        outer: FollowedCode | None,
    ) -> None:
        self._effects = effects
        self.code = code
        self.scope = scope
        self._cells = cells
        self._outer = outer
        self._locals: dict[str, Any] = {}
        self.result: Any = None
        self.running = self.ran = self.again = False
        self._steps = list(dis.get_instructions(code))
        self._places = {step.offset: number for number, step in enumerate(self._steps)}
        self._handlers = [
            (e.start, e.end, e.target, e.depth, e.lasti)
            for e in dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        ]
        self._kwargs = 0
        self._stack: list[Any] = []

    def enter(self, entry: dict[str, Any]) -> bool:
        """Adds labels to its arguments; whether that says anything new."""
        before = dict(self._locals)
        for name, label in entry.items():
            self._store(name, label)
        return before != self._locals

    def _store(self, name: str, label: Any) -> None:
        known = self._locals.get(name)
        both = merged(known, label)
        if both != known:
            self._locals[name] = both
            self.again = True

    # one pass

    def round(self) -> None:
        states: dict[int, list[Any]] = {}
        waiting: list[int] = []

        def reach(offset: int, stack: list[Any]) -> None:
            place = self._places[offset]
            known = states.get(place)
            if known is None:
                states[place] = stack
            else:
                if len(known) != len(stack):
                    raise Doubt(f"{self.code.co_qualname}() cannot be followed")
                both = [merged(*pair) for pair in zip(known, stack, strict=True)]
                if both == known:
                    return
                states[place] = both
            waiting.append(place)

        reach(self._steps[0].offset, [])
        while waiting:
            place = waiting.pop()
            step = self._steps[place]
            self._effects.step()
            self._stack = list(states[place])
            for start, end, target, depth, lasti in self._handlers:
                if start <= step.offset < end and len(self._stack) >= depth:
                    reach(target, [*self._stack[:depth], *([None] if lasti else []), None])
            self._follow(step, place, reach)

    def _follow(self, step: dis.Instruction, place: int, reach: Any) -> None:
        name, stack = step.opname, self._stack
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            if name.startswith("POP_JUMP"):
                stack.pop()
                reach(step.argval, list(stack))
            elif name in _ALWAYS:
                reach(step.argval, stack)
                return
            elif name == "FOR_ITER":
                change = dis.stack_effect(step.opcode, step.arg, jump=True)
                reach(step.argval, [*stack[: len(stack) + min(change, 0)], *[None] * change])
                stack.append(element(stack[-_ITERATOR]))
            elif name.endswith("OR_POP"):
                reach(step.argval, list(stack))
                stack.pop()
            else:
                change = dis.stack_effect(step.opcode, step.arg, jump=True)
                reach(step.argval, [*stack[: len(stack) + min(change, 0)], *[None] * change])
                self._unknown(step)
        elif name in _SIMPLE:
            popped, pushed = _SIMPLE[name]
            if popped:
                del stack[-popped:]
            stack += [None] * pushed
        elif (known := getattr(self, f"_{name.lower()}", None)) is not None:
            known(step)
        elif name in _BUILDS:
            self._build(step.arg * _BUILDS[name] if step.arg else 0)
        elif name.startswith(("LOAD_FAST", "STORE_FAST")):
            self._fast(step)
        else:
            self._unknown(step)
        if name not in _END:
            reach(self._steps[place + 1].offset, stack)

    def _unknown(self, step: dis.Instruction) -> None:
        change = dis.stack_effect(step.opcode, step.arg, jump=False)
        if any(isinstance(one, Label | ElementOf | Method) for one in self._stack[-4:]):
            raise Doubt(f"{self.code.co_qualname}() has a {step.opname}, which cannot be followed")
        if change < 0:
            del self._stack[change:]
        self._stack += [None] * change

    def _end_for(self, step: dis.Instruction) -> None:
        del self._stack[dis.stack_effect(step.opcode, step.arg) :]

    _end_send = _end_for

    def _pop(self, count: int) -> list[Any]:
        if not count:
            return []
        popped = self._stack[-count:]
        del self._stack[-count:]
        return popped

    # variables

    def _fast(self, step: dis.Instruction) -> None:
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        kinds = [part for part in step.opname.split("_") if part in ("LOAD", "STORE")]
        for kind, name in zip(kinds, names, strict=True):
            if kind == "LOAD":
                self._stack.append(self._locals.get(name))
            else:
                self._store(name, self._stack.pop())

    def _load_const(self, step: dis.Instruction) -> None:
        self._stack.append(step.argval if isinstance(step.argval, CodeType) else None)

    def _return_const(self, _: dis.Instruction) -> None:
        pass

    def _load_deref(self, step: dis.Instruction) -> None:
        self._stack.append(self._cell(step.argval))

    _load_classderef = _load_deref

    def _load_from_dict_or_deref(self, step: dis.Instruction) -> None:
        self._stack[-1] = self._cell(step.argval)

    def _load_from_dict_or_globals(self, step: dis.Instruction) -> None:
        self._stack[-1] = self._effects.name(self.scope, step.argval)

    def _cell(self, name: str) -> Any:
        if name in self.code.co_cellvars:
            return self._locals.get(name)
        if self._outer is not None:
            return self._outer._cell(name)
        value = self._cells.get(name, UNKNOWN)
        return None if name == "__class__" else self._effects.thing(name, value)

    def _store_deref(self, step: dis.Instruction) -> None:
        frame: FollowedCode | None = self
        while frame is not None and step.argval not in frame.code.co_cellvars:
            frame = frame._outer
        if frame is None:
            raise Doubt(f"{self.code.co_qualname}() changes {step.argval}, a variable of its closure")
        frame._store(step.argval, self._stack.pop())
        self.again = self.again or frame.again

    def _load_global(self, step: dis.Instruction) -> None:
        found = [self._effects.name(self.scope, step.argval)]
        if step.arg is not None and step.arg & 1:
            found.insert(0 if _NULL_FIRST else 1, NULL)
        self._stack += found

    def _store_global(self, step: dis.Instruction) -> None:
        raise Doubt(f"{self.code.co_qualname}() changes the global {step.argval}")

    _delete_global = _store_global

    def _push_null(self, _: dis.Instruction) -> None:
        self._stack.append(NULL)

    def _copy(self, step: dis.Instruction) -> None:
        self._stack.append(self._stack[-(step.arg or 1)])

    def _swap(self, step: dis.Instruction) -> None:
        place = -(step.arg or 1)
        self._stack[-1], self._stack[place] = self._stack[place], self._stack[-1]

    # attributes and items

    def _load_attr(self, step: dis.Instruction) -> None:
        method = step.opname == "LOAD_METHOD" or (
            sys.version_info >= (3, 12) and step.arg is not None and bool(step.arg & 1)
        )
        owner = self._stack.pop()
        found = self._effects.attribute(owner, step.argval)
        if method:
            # of what is no method, the interpreter says that there is no object
            self._stack += [found, SELF]
        else:
            self._stack.append(None if owner is None else found)

    _load_method = _load_attr

    def _reraise(self, _: dis.Instruction) -> None:
        """Of what was caught: no object of the stack goes anywhere."""

    def _load_super_attr(self, step: dis.Instruction) -> None:
        *_, owner = self._pop(3)
        if isinstance(owner, Label):
            raise Doubt(f"{self.code.co_qualname}() calls super() of {owner.name}, which cannot be followed")
        self._stack += [Method(None, str(step.argval)), SELF] if step.arg and step.arg & 1 else [None]

    def _load_special(self, _: dis.Instruction) -> None:
        self._enter(self._stack.pop())
        self._stack += [None, SELF]

    def _before_with(self, _: dis.Instruction) -> None:
        self._enter(self._stack.pop())
        self._stack += [None, None]

    def _enter(self, owner: Any) -> None:
        if isinstance(owner, Label):
            raise Doubt(
                f"{self.code.co_qualname}() enters {owner.name}, which all calls in this process share"
            )

    def _write(self, owner: Any, values: list[Any], how: str) -> None:
        if isinstance(owner, Label):
            raise Doubt(f"{self.code.co_qualname}() changes {owner.name}")
        if isinstance(owner, ModuleType | type | FunctionType):
            raise Doubt(f"{self.code.co_qualname}() changes {owner.__name__}{how}")
        for value in values:
            if isinstance(value, Label | ElementOf | Method):
                raise Doubt(f"{self.code.co_qualname}() keeps {named_in(value)} in another object")

    def _store_attr(self, step: dis.Instruction) -> None:
        value, owner = self._pop(2)
        self._write(owner, [value], f".{step.argval}")

    def _delete_attr(self, step: dis.Instruction) -> None:
        self._write(self._stack.pop(), [], f".{step.argval}")

    def _store_subscr(self, _: dis.Instruction) -> None:
        value, owner, _ = self._pop(3)
        self._write(owner, [value], "")

    def _delete_subscr(self, _: dis.Instruction) -> None:
        owner, _ = self._pop(2)
        self._write(owner, [], "")

    def _store_slice(self, _: dis.Instruction) -> None:
        value, owner, _, _ = self._pop(4)
        self._write(owner, [value], "")

    def _binary_subscr(self, _: dis.Instruction) -> None:
        owner, _ = self._pop(2)
        self._stack.append(element(owner))

    def _binary_slice(self, _: dis.Instruction) -> None:
        owner = self._pop(3)[0]
        self._stack.append(_copied(owner))

    def _binary_op(self, step: dis.Instruction) -> None:
        left, right = self._pop(2)
        if step.argrepr == "[]":
            self._stack.append(element(left))
        elif step.argrepr.endswith("="):
            self._write(left, [], "")
            self._stack.append(left)
        elif step.argrepr in "+*|" and any(
            isinstance(one, Label) and isinstance(one.value, list | tuple | dict | set)
            for one in (left, right)
        ):
            self._stack.append(merged(_copied(left), _copied(right)))
        else:
            self._stack.append(None)

    # what is made

    def _build(self, count: int) -> None:
        parts = [part for part in self._pop(count) if isinstance(part, Label | ElementOf | Method)]
        self._stack.append(Label(named_in(parts[0]), UNKNOWN) if parts else None)

    def _build_const_key_map(self, step: dis.Instruction) -> None:
        self._build((step.arg or 0) + 1)

    def _build_string(self, step: dis.Instruction) -> None:
        self._pop(step.arg or 0)
        self._stack.append(None)

    _build_slice = _build_string

    def _format_value(self, step: dis.Instruction) -> None:
        self._pop(2 if (step.arg or 0) & 4 else 1)
        self._stack.append(None)

    def _list_append(self, step: dis.Instruction) -> None:
        value = self._stack.pop()
        if isinstance(value, Label | ElementOf | Method):
            self._stack[-(step.arg or 1)] = Label(named_in(value), UNKNOWN)

    _set_add = _list_append

    def _map_add(self, step: dis.Instruction) -> None:
        self._stack[-2:] = [merged(*self._stack[-2:])]
        self._list_append(step)

    def _list_extend(self, step: dis.Instruction) -> None:
        self._stack[-1] = element(self._stack[-1])
        self._list_append(step)

    _set_update = _dict_update = _dict_merge = _list_extend

    def _list_to_tuple(self, _: dis.Instruction) -> None:
        pass

    _call_intrinsic_1 = _list_to_tuple

    def _unpack_sequence(self, step: dis.Instruction) -> None:
        self._stack += [element(self._stack.pop())] * (step.arg or 0)

    def _unpack_ex(self, step: dis.Instruction) -> None:
        owner = self._stack.pop()
        self._stack += [element(owner)] * (((step.arg or 0) & 0xFF) + 1 + ((step.arg or 0) >> 8))

    def _get_iter(self, _: dis.Instruction) -> None:
        owner = self._stack.pop()
        if isinstance(owner, Label):
            if hasattr(owner.value, "__next__"):
                raise Doubt(f"{self.code.co_qualname}() uses up {owner.name}")
            inside = element(owner)
            owner = None if inside is None else ElementOf(inside)
        self._stack += [owner if isinstance(owner, ElementOf) else None, *[None] * (_ITERATOR - 1)]

    def _pop_iter(self, _: dis.Instruction) -> None:
        del self._stack[-_ITERATOR:]

    def _yield_value(self, _: dis.Instruction) -> None:
        self._give(self._stack.pop())
        self._stack.append(None)

    def _return_value(self, _: dis.Instruction) -> None:
        self._give(self._stack.pop())

    def _give(self, value: Any) -> None:
        if self.code.co_flags & _GENERATOR and isinstance(value, Label):
            value = ElementOf(value)
        self.result = merged(self.result, value)

    # calls

    def _make_function(self, step: dis.Instruction) -> None:
        code = self._stack.pop()
        self._pop(-dis.stack_effect(step.opcode, step.arg))
        self._stack.append(body := MadeFunction(code, self))
        self._effects.body(body, [])

    def _set_function_attribute(self, _: dis.Instruction) -> None:
        self._stack[-2:] = self._stack[-1:]

    def _import_name(self, step: dis.Instruction) -> None:
        self._pop(2)
        module: Any = sys.modules.get(step.argval)
        before = self._steps[self._places[step.offset] - 1].argval
        if module is not None and before is None:
            module = sys.modules.get(step.argval.partition(".")[0])
        if module is None and not self._effects.leaves_alone(step.argval):
            module = Label(step.argval, UNKNOWN)
        self._stack.append(module)

    def _import_from(self, step: dis.Instruction) -> None:
        self._stack.append(self._effects.attribute(self._stack[-1], step.argval))

    def _kw_names(self, _: dis.Instruction) -> None:
        self._kwargs = 1

    def _call(self, step: dis.Instruction) -> None:
        args = self._pop(step.arg or 0)
        more, self._kwargs = bool(self._kwargs), 0
        self._make_call(args, more=more)

    def _call_kw(self, step: dis.Instruction) -> None:
        self._stack.pop()
        self._make_call(self._pop(step.arg or 0), more=True)

    def _call_function_ex(self, step: dis.Instruction) -> None:
        args = self._pop(2 if _KWARGS_ALWAYS or (step.arg or 0) & 1 else 1)
        self._make_call([element(one) for one in args if one is not NULL], more=True)

    def _make_call(self, args: list[Any], *, more: bool) -> None:
        one, other = self._pop(2)
        called = other if one is NULL else one
        if one is not NULL and other is not NULL and other is not SELF:
            args = [other, *args]
        if called is super and isinstance(self._locals.get(self.code.co_varnames[0]), Label):
            raise Doubt(f"{self.code.co_qualname}() calls super(), which cannot be followed")
        self._stack.append(self._called(called, args, more=more))

    def _called(self, called: Any, args: list[Any], *, more: bool) -> Any:
        effects = self._effects
        if isinstance(called, MadeFunction):
            return effects.body(called, args)
        if isinstance(called, Method):
            return effects.method(called, args, more=more)
        if isinstance(called, Label) and not effects.can_follow(called.value):
            raise Doubt(f"{self.code.co_qualname}() calls {called.name}, which cannot be followed")
        if called is None or isinstance(called, ElementOf):
            return effects.method(Method(None, "a function"), args)
        return effects.call(called.value if isinstance(called, Label) else called, args, more=more)


def _copied(label: Any) -> Any:
    """A copy of a container: it is new, and what is in it is not."""
    inside = element(label)
    return None if inside is None else Label(named_in(inside), UNKNOWN)

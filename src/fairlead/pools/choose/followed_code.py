"""One function's source, followed with labels: see effects.py. Statement by statement; what is done within a
branch or a loop is taken to be done, and not to be done, at any time."""

from __future__ import annotations

import ast
import importlib.util
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from fairlead.pools.choose.labels import (
    CONTAINERS,
    NOTHING,
    SENT_BY_NAME,
    UNKNOWN,
    Args,
    Doubt,
    Made,
    Value,
    all_of,
    by_identity,
    one,
)  # fmt: skip
from fairlead.pools.choose.libraries import READS
from fairlead.pools.choose.source import first_line
from fairlead.pools.serialization.function import codes

if TYPE_CHECKING:
    from fairlead.pools.choose.effects import Effects

_OPERATIONS = {
    "mult": "mul", "matmult": "matmul", "div": "truediv", "bitor": "or", "bitxor": "xor", "bitand": "and",
}  # fmt: skip
"""Methods that are not called as their operation is."""


class FollowedCode:
    """
    Args:
        within: the function; of one that is made by another, that one's.
    """

    def __init__(
        self,
        effects: Effects,
        node: Any,
        scope: dict[str, Any],
        name: str,
        within: FunctionType | FollowedCode,
    ) -> None:
        self.effects = effects
        self.node = node
        self.scope = scope
        self.name = name
        self.within = within
        self.entry: dict[str, Value] = {}
        self.result = NOTHING
        self.running = False
        self.round = -1
        self._now: dict[str, Value] = {}
        """The variables, where the code is followed."""
        self._ever: dict[str, Value] = {}
        """The same, as they are at any time."""
        self._branches: dict[str, Value] = {}
        """What branches, loops and functions within put in them, in whatever order."""
        self._set_within: set[str] = set()
        self._depth = 0
        outer: CodeType = within.__code__ if isinstance(within, FunctionType) else within.code
        place = (getattr(node, "name", "<lambda>"), first_line(node))
        self.code: CodeType = next(one for one in codes(outer) if (one.co_name, one.co_firstlineno) == place)
        self._locals = {*self.code.co_varnames, *self.code.co_cellvars}
        self._others: dict[str, bool] = {}
        """Variables that it sets and are not its own; and whether they are a function's."""

    def enter(self, args: Args, defaults: dict[str, Value]) -> bool:
        """Adds to its arguments; whether that says anything new."""
        given, named = self.node.args, dict(args.names)
        names = [arg.arg for arg in (*given.posonlyargs, *given.args)]
        entry = dict(zip(names, args.places, strict=False))
        for name in (*names, *(arg.arg for arg in given.kwonlyargs)):
            passed = entry.get(name, NOTHING) | named.pop(name, NOTHING) | args.more
            entry[name] = passed or defaults.get(name, NOTHING)
        for rest, values in ((given.vararg, args.places[len(names) :]), (given.kwarg, named.values())):
            if rest is not None:
                entry[rest.arg] = all_of([args.more, *values]).within
        before = self.entry
        self.entry = {name: value | before.get(name, NOTHING) for name, value in entry.items()}
        return before != self.entry

    def run(self) -> None:
        self._now, self._depth = {}, 0
        for name, value in self.entry.items():
            self._bind(name, value)
        if isinstance(self.node, ast.Lambda):
            self.result |= self._visit(self.node.body)
        else:
            self._all(self.node.body)

    def _visit(self, node: ast.AST) -> Value:
        """What it comes to, of an expression."""
        if isinstance(node, ast.stmt):
            self.effects.step()
        known: Any = getattr(self, f"_{type(node).__name__.lower()}", self._within)
        found: Value | None = known(node)
        return found or NOTHING

    def _all(self, nodes: Any) -> Value:
        return all_of([self._visit(node) for node in nodes])

    def _within(self, node: ast.AST) -> None:
        self._depth += 1
        self._all(ast.iter_child_nodes(node))
        self._depth -= 1

    # statements

    def _for(self, node: ast.For) -> None:
        self._depth += 1
        self._store(node.target, self._iterated(node.iter))
        self._all([*node.body, *node.orelse])
        self._depth -= 1

    _asyncfor = _for

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            owner = self._visit(item.context_expr)
            if owner.shared:
                raise Doubt(f"{self.name}() enters {owner.name}, which all calls in this process share")
            if item.optional_vars is not None:
                self._store(
                    item.optional_vars, owner | self.effects.element(owner) | self.effects.kept("__enter__()")
                )
        self._depth += 1
        self._all(node.body)
        self._depth -= 1

    _asyncwith = _with

    def _match(self, node: ast.Match) -> None:
        subject = self._visit(node.subject)
        part = one(subject.name) if subject.objects else self.effects.kept("[]")
        self._depth += 1
        for case in node.cases:
            for inner in ast.walk(case.pattern):
                for name in (getattr(inner, "name", None), getattr(inner, "rest", None)):
                    if isinstance(name, str):
                        self._bind(name, subject | part | part.within)
            self._all(([case.guard] if case.guard else []) + case.body)
        self._depth -= 1

    def _return(self, node: Any) -> None:
        self.result |= self._visit(node.value) if node.value is not None else NOTHING

    def _yield(self, node: Any) -> None:
        self.result |= self._visit(node.value).within if node.value is not None else NOTHING

    def _yieldfrom(self, node: ast.YieldFrom) -> None:
        self.result |= self._iterated(node.value).within

    def _assign(self, node: Any) -> None:
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else []
        values = [self._visit(part) for part in parts]
        found = all_of(values).within if parts else self._visit(node.value)
        for target in node.targets:
            places = getattr(target, "elts", [])
            rest = any(isinstance(part, ast.Starred) for part in (*places, *parts))
            each = parts and len(places) == len(parts) and not rest
            for place, value in zip(places, values, strict=True) if each else [(target, found)]:
                self._store(place, value)

    def _annassign(self, node: Any) -> None:
        if node.value is not None:
            self._store(node.target, self._visit(node.value))

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        self._annassign(node)
        return self._visit(node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        left, right, name = self._visit(node.target), self._visit(node.value), _operation(node)
        for label in left.shared.values():
            kind = type(label.value)
            of_text = kind in CONTAINERS and isinstance(node.value, ast.Constant | ast.JoinedStr)
            own = self.effects.is_own(kind) and not hasattr(kind, f"__i{name}__")
            if label.value is UNKNOWN or not (own or of_text or kind is tuple):
                raise Doubt(f"{self.name}() changes {label.name}")
        self._store(node.target, left | self._operated(name, left, right) | right.within)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, NOTHING)
            else:
                self._store(target, NOTHING)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            module = self._module(alias.name)
            first = alias.name.partition(".")[0]
            self._bind(alias.asname or first, module if alias.asname else self._module(first))

    def _importfrom(self, node: ast.ImportFrom) -> None:
        name = "." * node.level + (node.module or "")
        name = importlib.util.resolve_name(name, self.scope.get("__package__") or "") if node.level else name
        module = self._module(name)
        for alias in node.names:
            inner = f"{name}.{alias.name}"
            found = (
                self._module(inner) if inner in sys.modules else self.effects.attribute(module, alias.name)
            )
            self._bind(alias.asname or alias.name, found)

    def _module(self, name: str) -> Value:
        self.effects.imports.add(name)
        if name in sys.modules:
            return one(name, sys.modules[name])
        return NOTHING if self.effects.leaves_alone(name) else one(name)

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._others |= dict.fromkeys(node.names, isinstance(node, ast.Nonlocal))

    _nonlocal = _global

    def _functiondef(self, node: Any) -> None:
        made = self._lambda(node)
        for decorator in reversed(node.decorator_list):
            made |= self.effects.call(self._visit(decorator), Args([made]))
        self._bind(node.name, made)

    _asyncfunctiondef = _functiondef

    def _lambda(self, node: Any) -> Value:
        given = node.args
        pairs = [*zip(reversed((*given.posonlyargs, *given.args)), reversed(given.defaults), strict=False)]
        pairs += [pair for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True) if pair[1]]
        made = Value(made={id(node): Made(node, self, {arg.arg: self._visit(value) for arg, value in pairs})})
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, made)  # it may call itself
        self.effects.call(made, Args())  # as its calls may not be seen
        return made

    def _classdef(self, node: ast.ClassDef) -> None:
        for label in self._all([*node.bases, *(keyword.value for keyword in node.keywords)]).shared.values():
            if isinstance(label.value, type):
                self.effects.of_class("__init_subclass__", label.value, Args())
                for hook in ("__new__", "__init__"):
                    self.effects.of_class(hook, type(label.value), Args())
        self._within(node)
        self._bind(node.name, NOTHING)

    # variables

    def _bind(self, name: str, value: Value) -> None:
        frame: Any = self
        if name in self._others:
            frame = self.within
            while self._others[name] and isinstance(frame, FollowedCode) and name not in frame._locals:
                frame = frame.within
            if not (self._others[name] and isinstance(frame, FollowedCode)):
                which = f"{name}, a variable of its closure" if self._others[name] else f"the global {name}"
                raise Doubt(f"{self.name}() changes {which}")
            frame._set_within.add(name)
        if frame is not self or self._depth:
            frame._branches[name] = frame._branches.get(name, NOTHING) | value
        self._now[name] = value | self._now.get(name, NOTHING) if self._depth else value
        before = frame._ever.get(name, NOTHING)
        frame._ever[name] = both = before | value
        self.effects.again = self.effects.again or before != both

    def _name(self, node: ast.Name) -> Value:
        name, found = node.id, self._now.get(node.id, NOTHING)
        if self._depth or name not in self._now or name in self._set_within:
            found |= self._branches.get(name, NOTHING)
        return found if name in self._locals and name not in self._others else found | self._free(name)

    def _free(self, name: str) -> Value:
        frame: Any = self
        while isinstance(frame.within, FollowedCode):
            frame = frame.within
            if name in frame._ever and name not in frame._others:
                found: Value = frame._ever[name]
                return found
        function = frame.within
        if name in function.__code__.co_freevars:
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            try:
                return self.effects.thing(name, cell.cell_contents)
            except ValueError:
                return one(name)
        return (
            NOTHING if name in self._now and name not in self.scope else self.effects.name(self.scope, name)
        )

    def _store(self, target: Any, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._store(part, self.effects.element(value))
        elif isinstance(target, ast.Starred):
            self._store(target.value, (value | self.effects.element(value)).within)
        else:
            name = self._mangled(target.attr) if isinstance(target, ast.Attribute) else "[]"
            self.effects.written(
                self._visit(target.value), f"{self.name}()", "" if name == "[]" else f".{name}"
            )
            self.effects.keep(name, value)
            if name == "[]":
                self._visit(target.slice)

    # expressions

    def _boolop(self, node: ast.BoolOp) -> Value:
        return self._all(node.values)

    def _ifexp(self, node: ast.IfExp) -> Value:
        self._visit(node.test)
        return self._all([node.body, node.orelse])

    def _starred(self, node: ast.Starred) -> Value:
        return self.effects.element(self._visit(node.value))

    def _await(self, node: ast.Await) -> Value:
        return self._visit(node.value)

    def _tuple(self, node: Any) -> Value:
        return self._all(node.elts).within

    _list = _set = _tuple

    def _dict(self, node: ast.Dict) -> Value:
        found = self._all([part for part in (*node.keys, *node.values) if part is not None])
        return (found | self.effects.element(found)).within if None in node.keys else found.within

    def _listcomp(self, node: Any) -> Value:
        self._depth += 1
        for part in node.generators:
            self._store(part.target, self._iterated(part.iter))
            self._all(part.ifs)
        found = self._all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._depth -= 1
        return found.within

    _setcomp = _dictcomp = _generatorexp = _listcomp

    def _iterated(self, node: ast.expr) -> Value:
        owner = self._visit(node)
        for label in owner.shared.values():
            if hasattr(label.value, "__next__"):
                raise Doubt(f"{self.name}() uses up {label.name}")
        return self.effects.element(owner)

    def _compare(self, node: ast.Compare) -> None:
        values = [self._visit(part) for part in (node.left, *node.comparators)]
        labels = [label for value in values for label in value.objects.values() if by_identity(label.value)]
        others = [label for label in labels if not label.of_arguments]
        if others and len(labels) > 1 and all(value.objects for value in values):
            raise Doubt(f"{self.name}() compares {others[0].name} by identity")

    def _binop(self, node: ast.BinOp) -> Value:
        return self._operated(_operation(node), self._visit(node.left), self._visit(node.right))

    def _operated(self, name: str, left: Value, right: Value) -> Value:
        both = left | right
        containers = {i: o for i, o in both.shared.items() if isinstance(o.value, CONTAINERS)}
        inside = (
            self.effects.element(Value(containers, both.held)).within if containers or both.held else NOTHING
        )
        return inside | all_of(self.effects.kept(f"__{part}{name}__()") for part in ("", "i", "r"))

    def _subscript(self, node: ast.Subscript) -> Value:
        owner, index = self._visit(node.value), node.slice
        self._visit(index)
        if isinstance(index, ast.Slice):
            arrays = {
                i: o for i, o in owner.shared.items() if not isinstance(o.value, (*CONTAINERS, bytearray))
            }
            return self.effects.element(owner).within | Value(arrays)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        rows = any(isinstance(part, ast.Slice) for part in parts)
        numbers = [
            i for i, o in owner.shared.items() if getattr(o.value, "ndim", 0) == len(parts) and not rows
        ]
        rest = Value({i: o for i, o in owner.shared.items() if i not in numbers}, owner.held, owner.made)
        return self.effects.element(rest) if rest or not numbers else NOTHING

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.effects.attribute(self._visit(node.value), self._mangled(node.attr))

    def _mangled(self, name: str) -> str:
        path = self.name.replace(".<locals>.", "\0.").split(".")
        owner = next((one for one in reversed(path[:-1]) if not one.endswith("\0")), "")
        return (
            f"_{owner.lstrip('_')}{name}"
            if owner and name.startswith("__") and not name.endswith("__")
            else name
        )

    def _call(self, node: ast.Call) -> Value:
        more, called, places = NOTHING, node.func, list[Value]()
        for part in node.args:
            value = self._visit(part)
            if isinstance(part, ast.Starred) or more:
                more |= value
            else:
                places.append(value)
        names = {keyword.arg: self._visit(keyword.value) for keyword in node.keywords if keyword.arg}
        for keyword in node.keywords:
            more |= NOTHING if keyword.arg else self.effects.element(self._visit(keyword.value))
        args = Args(places, names, more)
        last: Any = node.args[-1] if node.args else None
        constant: Any = last.value if isinstance(last, ast.Constant) else None
        if isinstance(called, ast.Attribute):
            if isinstance(called.value, ast.Call) and _is_name(called.value.func, "super"):
                return self._super(called.attr, args)
            if called.attr == "import_module" and constant:
                return self._module(constant)
            return self.effects.method(self._visit(called.value), self._mangled(called.attr), args)
        if _is_name(called, "getattr") and constant and len(places) == 2 and not _by_name(places[0]):
            return self.effects.attribute(places[0], constant)
        return self.effects.call(self._visit(called), args)

    def _super(self, name: str, args: Args) -> Value:
        owner: Any = next(iter(self._free("__class__").shared.values()), None)
        first = (*self.node.args.posonlyargs, *self.node.args.args)
        if owner is None or not first:
            raise Doubt(f"{self.name}() calls super(), which cannot be followed")
        owner, self_, found = owner.value, self._now.get(first[0].arg, NOTHING), NOTHING
        kinds = {o.value if isinstance(o.value, type) else type(o.value) for o in self_.shared.values()}
        for kind in kinds | {*self_.kinds, owner}:
            mro: Any = kind.__mro__ if owner in kind.__mro__ else type(kind).__mro__
            rest = mro[mro.index(owner) + 1 :] if owner in mro else ()
            inner = next((vars(one)[name] for one in rest if name in vars(one)), None)
            inner = inner.__func__ if isinstance(inner, staticmethod | classmethod) else inner
            if isinstance(inner, FunctionType) and self.effects.of_own_code(inner):
                found |= self.effects.call_one(name, inner, args if name == "__new__" else args.after(self_))
            elif name == "__new__":
                found |= Value(made={id(kind): kind})
            elif not hasattr(object, name) or name == "__setattr__":
                if not _by_name(self_) and name not in READS:
                    self.effects.written(self_, f"super().{name}()")
                self.effects.keep("[]", args.all)
        return found


def _operation(node: Any) -> str:
    name = type(node.op).__name__.lower()
    return _OPERATIONS.get(name, name)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _by_name(value: Value) -> bool:
    return any(isinstance(label.value, SENT_BY_NAME) for label in value.shared.values())

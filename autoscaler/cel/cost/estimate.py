"""The static worst case of an expression's cost: the API server refuses new selectors above 1,000,000.

The scheduler does not use it. Sizes and costs are pairs (least, most) that saturate at 2^64-1 (cel-go v0.26.0
checker/cost.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.cel.common.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Select,
    parts,
)
from autoscaler.cel.common.types import Type, unwrapped
from autoscaler.cel.cost.call_estimates import Operand, estimated_call
from autoscaler.cel.cost.intervals import (
    SATURATED,
    UNKNOWN,
    Interval,
    Path,
    device_size,
    fixed,
    plus,
    scaled,
    times,
    union,
)

# Container kind, size of keys and size of values.
Entries = tuple[str, Interval, Interval]
Variable = tuple[Path, Interval | None, Entries | None]

_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


def estimated_max_cost(root: Expression, *, modern: bool) -> int:
    """The worst case in cost units, 2^64-1 without a bound. `root` has been checked; `modern` is cel-go 0.29."""
    return _Estimator(modern=modern).cost(root)[1]


class _Estimator:
    """One estimate; corresponds to upstream's coster."""

    def __init__(self, *, modern: bool) -> None:
        self._modern = modern
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Interval] = {}
        self._entries: dict[int, Entries] = {}
        self._costs: dict[int, Interval] = {}
        self._scope: Mapping[str, Variable] = {}

    def cost(self, node: Expression) -> Interval:
        """The cost of evaluating `node`. Records paths and sizes, parts first."""
        pending = [(node, False)]
        while pending:
            at, ready = pending.pop()
            if id(at) in self._costs:
                continue
            if ready:
                self._costs[id(at)] = self._cost(at)
                continue
            pending.append((at, True))
            pending.extend((part, False) for part in reversed(parts(at)))
        return self._costs[id(node)]

    def _cost(self, node: Expression) -> Interval:
        match node:
            case Identifier():
                variable = self._scope.get(node.name.removeprefix("."))
                self._paths[id(node)] = variable[0] if variable else (node.name.removeprefix("."),)
                return fixed(1)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case MessageLiteral():
                return plus(fixed(40), *(self.cost(value) for _, value, _ in node.fields))
            case Comprehension():
                return self._comprehension(node)
        return fixed(0)

    def _select(self, node: Select) -> Interval:
        if node.qualified is not None:
            self._paths[id(node)] = (node.qualified,)
            return fixed(1)
        below = self.cost(node.operand)
        if node.test_only:
            return below
        self._paths[id(node)] = (*self._path(node.operand), node.name)
        return plus(below, fixed(1)) if node.operand.type.kind in ("map", "struct", "param") else below

    def _call(self, node: Call) -> Interval:
        if node.function == "dyn":
            (argument,) = node.arguments
            cost = plus(fixed(1), self.cost(argument))
            self._copy(node, argument)
            return cost
        costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self._operand(argument) for argument in node.arguments]
        if node.function in ("_&&_", "_||_"):
            self._sizes[id(node)] = fixed(1)
            return costs[0][0], plus(*costs)[1]
        target, reached = None, fixed(0)
        if node.target is not None:
            reached = self.cost(node.target)
            target = self._operand(node.target)
        if not node.overloads:
            return fixed(0)
        total: Interval = (SATURATED, 0)
        size: Interval | None = None
        for overload in node.overloads:
            cost, result = self._overload(node, overload, target=target, arguments=arguments, costs=costs)
            total = union(total, cost)
            if result is not None:
                size = result if size is None else union(size, result)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(node.arguments[0])
                size = entries[2] if entries else None
                below = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.arguments[0]), below)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return plus(reached, total)

    def _overload(
        self,
        node: Call,
        overload: str,
        *,
        target: Operand | None,
        arguments: list[Operand],
        costs: list[Interval],
    ) -> tuple[Interval, Interval | None]:
        if overload == "conditional":
            chosen = [self._entries_of(argument) for argument in node.arguments[1:]]
            if chosen[0] and chosen[1]:
                self._entries[id(node)] = _joined(chosen[0], chosen[1])
            size = union(arguments[1].size_or_unknown, arguments[2].size_or_unknown)
            return plus(costs[0], union(costs[1], costs[2])), size
        if overload in ("add_string", "add_bytes", "add_list"):
            both = [self._entries_of(argument) for argument in node.arguments]
            if both[0] and both[1]:
                self._entries[id(node)] = _joined(both[0], both[1])
            size = plus(arguments[0].size_or_unknown, arguments[1].size_or_unknown)
            own = fixed(1) if overload == "add_list" else scaled(size, 0.1)
            return plus(own, *costs), size
        own, result = estimated_call(node.function, overload, target, arguments, modern=self._modern)
        return plus(own, *costs), result

    def _list(self, node: ListLiteral) -> Interval:
        total = plus(fixed(10), *(self.cost(item) for item in node.items))
        sizes = [self._size(item) or UNKNOWN for item in node.items]
        self._entries[id(node)] = ("list", fixed(1), _union_of(sizes))
        return total

    def _map(self, node: MapLiteral) -> Interval:
        total = plus(fixed(30), *(plus(self.cost(key), self.cost(value)) for key, value, _ in node.entries))
        keys = [self._size(key) or UNKNOWN for key, _, _ in node.entries]
        values = [self._size(value) or UNKNOWN for _, value, _ in node.entries]
        self._entries[id(node)] = ("map", _union_of(keys), _union_of(values))
        return total

    def _comprehension(self, node: Comprehension) -> Interval:
        total = plus(self.cost(node.iteration_range), self.cost(node.initial))
        outside = self._scope
        initial = (self._path(node.initial), self._size(node.initial), self._entries_of(node.initial))
        self._scope = {**outside, node.accumulator: initial}
        if _is_bind(node):
            total = plus(total, self.cost(node.result))
            self._scope = outside  # upstream reads the result after the variable has ended
            self._note(node, self._size(node.result), self._entries_of(node.result))
            return total
        accumulating = self._scope
        self._scope = {**accumulating, **self._loop_variables(node)}
        step = plus(self.cost(node.condition), self.cost(node.step))
        self._scope = accumulating
        total = plus(total, self.cost(node.result))
        self._scope = outside
        count = self._size(node.iteration_range) or UNKNOWN
        if isinstance(node.initial, Literal):
            self._note(node, self._size(node.initial), None)
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self._note(node, count, self._entries.get(id(node.step)))
        return plus(total, times(count, step))

    def _loop_variables(self, node: Comprehension) -> dict[str, Variable]:
        entries = self._entries_of(node.iteration_range)
        path = self._path(node.iteration_range)
        is_list = (entries[0] if entries else node.iteration_range.type.kind) == "list"
        keys, values = (entries[1], entries[2]) if entries else (None, None)
        if node.second_variable:
            key, value = ("@indices", "@items") if is_list else ("@keys", "@values")
            if _leaves_room(path):
                key = value
            return {
                node.variable: ((*path, key), keys, None),
                node.second_variable: ((*path, value), values, None),
            }
        if is_list:
            return {node.variable: ((*path, "@items"), values, None)}
        return {node.variable: ((*path, "@keys"), keys, None)}

    def _path(self, node: Expression) -> Path:
        if isinstance(node, Identifier):
            variable = self._scope.get(node.name.removeprefix("."))
            if variable:
                return variable[0]
        return self._paths.get(id(node), ())

    def _size(self, node: Expression) -> Interval | None:
        known = self._sizes.get(id(node)) or _literal_size(node)
        if known is not None:
            return known
        measured = device_size(self._path(node))
        if measured is not None:
            self._sizes[id(node)] = measured
            return measured
        if _is_scalar(node.type):
            return fixed(1)
        if isinstance(node, Identifier):
            variable = self._scope.get(node.name.removeprefix("."))
            return variable[1] if variable else None
        return None

    def _entries_of(self, node: Expression) -> Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Identifier):
            variable = self._scope.get(node.name.removeprefix("."))
            return variable[2] if variable else None
        return known

    def _operand(self, node: Expression) -> Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return Operand(node, path, self._size(node) or device_size(path))

    def _copy(self, node: Expression, source: Expression) -> None:
        self._note(node, self._size(source), self._entries_of(source))

    def _note(self, node: Expression, size: Interval | None, entries: Entries | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries


def _joined(left: Entries, right: Entries) -> Entries:
    return left[0], union(left[1], right[1]), union(left[2], right[2])


def _union_of(sizes: list[Interval]) -> Interval:
    if not sizes:
        return 0, 0
    return min(low for low, _ in sizes), max(high for _, high in sizes)


def _leaves_room(path: Path) -> bool:
    """True if appending to the Go slice of this path, grown one name at a time, writes into the slice itself.

    Upstream appends both the key's and the value's name to the same slice (pushIterKey, pushIterValue); if it has room,
    the second name replaces the first. Capacities are powers of two.
    """
    return len(path) & (len(path) - 1) != 0


def _is_bind(node: Comprehension) -> bool:
    return isinstance(node.condition, Literal) and node.condition.value is False and node.accumulator != ACCUMULATOR


def _literal_size(node: Expression) -> Interval | None:
    if isinstance(node, Literal):
        return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
    if isinstance(node, ListLiteral):
        return fixed(len(node.items))
    return fixed(len(node.entries)) if isinstance(node, MapLiteral) else None


def _is_scalar(t: Type) -> bool:
    if t.kind == "opaque" and t.name == "optional_type":
        return _is_scalar(t.parameters[0])
    return unwrapped(t).kind in _SCALARS

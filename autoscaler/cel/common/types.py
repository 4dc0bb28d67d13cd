"""CEL's static types, the values of the checker (cel-go v0.26.0, common/types/types.go and checker/types.go).

Types are values; two types are the same if they compare equal. Type parameters are types too: `Substitution`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MAX_DEPTH: Final = 250


class NestingError(Exception):
    """A type is nested deeper than expressions may be."""


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """`kind` is the Go kind in lower case; lists, maps, opaque types and types of types have `parameters`.

    `ground` means that it contains no type parameter.
    """

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()
    depth: int = field(default=0, init=False, repr=False)
    ground: bool = field(default=True, init=False, repr=False)
    _hash: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.name, self.parameters)))
        if self.kind == "param" or not all(p.ground for p in self.parameters):
            object.__setattr__(self, "ground", False)
        if self.parameters:
            depth = max(p.depth for p in self.parameters) + 1
            if depth > MAX_DEPTH:
                raise NestingError
            object.__setattr__(self, "depth", depth)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """True if the contents are equal. Without recursion: types are nested as deeply as expressions."""
        if not isinstance(other, Type):
            return NotImplemented
        pending = [(self, other)]
        while pending:
            left, right = pending.pop()
            if left is right:
                continue
            if (left._hash, left.kind, left.name) != (right._hash, right.kind, right.name):
                return False
            if len(left.parameters) != len(right.parameters):
                return False
            pending.extend(zip(left.parameters, right.parameters, strict=True))
        return True

    def __str__(self) -> str:
        if self.kind == "type" and self.parameters:
            return f"type({self.parameters[0]})"
        if not self.parameters or self.kind == "wrapper":
            return self.name
        return f"{self.name}({', '.join(str(p) for p in self.parameters)})"


BOOL = Type("bool", "bool")
INT = Type("int", "int")
UINT = Type("uint", "uint")
DOUBLE = Type("double", "double")
STRING = Type("string", "string")
BYTES = Type("bytes", "bytes")
NULL = Type("null", "null_type")
DYN = Type("dyn", "dyn")
ANY = Type("any", "any")
ERROR = Type("error", "!error!")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
DURATION = Type("duration", "google.protobuf.Duration")
TYPE = Type("type", "type")
QUANTITY = Type("struct", "kubernetes.Quantity")
SEMVER = Type("struct", "kubernetes.Semver")
URL = Type("struct", "kubernetes.URL")
FORMAT = Type("struct", "kubernetes.NamedFormat")
DEVICE = Type("struct", "kubernetes.DRADevice")
IP = Type("opaque", "net.IP")
CIDR = Type("opaque", "net.CIDR")

_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp", "dyn", "null", "wrapper"})


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """optional_type(value)."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """type(value): the type of a type name."""
    return Type("type", "type", (value,))


def parameter(name: str) -> Type:
    return Type("param", name)


def wrapper_of(value: Type) -> Type:
    """A protobuf wrapper: its value's type, or null."""
    return Type("wrapper", f"wrapper({value})", (value,))


def unwrapped(t: Type) -> Type:
    """The type inside a wrapper; any other type unchanged."""
    return t.parameters[0] if t.kind == "wrapper" else t


def is_dyn(t: Type) -> bool:
    """True if the type allows all values."""
    return t.kind in ("dyn", "any")


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """The type inside an optional, and True if it was one."""
    if t.kind == "opaque" and t.name == "optional_type":
        return t.parameters[0], True
    return t, False


def equivalent(left: Type, right: Type) -> bool:
    """True for the same type, up to the names of type parameters."""
    if left == right:
        return True
    if left.kind != right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind != "param" and left.name != right.name:
        return False
    return all(equivalent(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))


class Substitution:
    """The types for type parameters. Attempts use a copy, so that a failed one has no effect."""

    __slots__ = ("_bound",)

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}

    def assignable(self, sources: list[Type], targets: tuple[Type, ...] | list[Type]) -> bool:
        """True if values of `sources` are acceptable as `targets`; binds type parameters in this case."""
        if len(sources) != len(targets):
            return False
        saved = dict(self._bound)
        if all(self._assignable(source, target) for source, target in zip(sources, targets, strict=True)):
            return True
        self._bound = saved
        return False

    def resolve(self, t: Type, *, free_is_dyn: bool = False) -> Type:
        """`t` with bound parameters replaced; with `free_is_dyn` unbound ones become dyn."""
        if t.ground:
            return t
        if t.kind == "param":
            bound = self._bound.get(t.name)
            if bound is not None:
                return self.resolve(bound, free_is_dyn=free_is_dyn)
            return DYN if free_is_dyn else t
        return Type(t.kind, t.name, tuple(self.resolve(p, free_is_dyn=free_is_dyn) for p in t.parameters))

    def finish(self, t: Type, finished: dict[int, Type]) -> Type:
        """`t` once all bindings are final; free parameters become dyn. `finished` (by identity) saves work."""
        if t.ground:
            return t
        found = finished.get(id(t))
        if found is None:
            if t.kind == "param":
                found = self.resolve(t, free_is_dyn=True)
            else:
                found = Type(t.kind, t.name, tuple(self.finish(p, finished) for p in t.parameters))
            finished[id(t)] = found
        return found

    def _assignable(self, source: Type, target: Type) -> bool:
        if target.kind == "param":
            valid, bound = self._binds(source, target)
            if valid:
                return True
            if bound:
                return False
        if source.kind == "param":
            return self._binds(target, source)[0]
        if is_dyn(source) or is_dyn(target) or source.kind == "error" or target.kind == "error":
            return True
        if source.kind == "null":
            return target.kind in _NULLABLE
        if target.kind == "null":
            return source.kind in _NULLABLE
        if source.kind == "wrapper" or target.kind == "wrapper":
            return unwrapped(source) == unwrapped(target)
        if source.kind == "type":
            return target.kind == "type"
        if source.kind in ("opaque", "list", "map"):
            return (
                source.kind == target.kind
                and source.name == target.name
                and len(source.parameters) == len(target.parameters)
                and all(self._assignable(a, b) for a, b in zip(source.parameters, target.parameters, strict=True))
            )
        return source == target

    def _binds(self, t: Type, variable: Type) -> tuple[bool, bool]:
        """True if `variable` may be bound to `t`; and True if it was bound before."""
        if t == variable:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is not None:
            if t == bound:
                return True, True
            if self._assignable(t, bound):
                general = most_general(t, bound)
                if not self._occurs(variable, general):
                    self._bound[variable.name] = general
                return True, True
            return False, True
        if not self._occurs(variable, t):
            self._bound[variable.name] = t
            return True, False
        return False, False

    def _occurs(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return True
        if within.kind == "param":
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, p) for p in within.parameters)


def most_general(left: Type, right: Type) -> Type:
    """The less specific of two compatible types."""
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind == "param":
        return True
    if is_dyn(right) or right.kind == "param" or left.kind != right.kind:
        return False
    if left.kind in ("list", "map", "opaque"):
        return (
            left.name == right.name
            and len(left.parameters) == len(right.parameters)
            and all(_less_specific(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))
        )
    return left.kind == "type" or left == right

"""Dataclasses that are structs of msgspec at run time. For mypy they are dataclasses of the standard library.

`dataclasses.dataclass` compiles the methods of each class from text, which takes 0.6 ms a class and a third of a second
for each command. msgspec makes a class in 13 µs, and its instances are made, hashed and compared in C. What a struct
cannot do is left to `dataclasses.dataclass`: fields without a parameter, single keyword-only fields, an order that
leaves fields out. The hash of a struct has no limit of recursion: values that users can nest as deep as they like are
compared by identity (eq=False), as the nodes of selectors are.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import NODEFAULT, Struct, StructMeta, structs

_struct_field: Any = msgspec.field  # its overloads forbid both, of which one is absent here
_OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__"})


class _Field(NamedTuple):
    """A field that is not a part of comparisons, or not of the text."""

    declared: Any
    compare: bool
    repr: bool


def _field(
    *,
    default: Any = NODEFAULT,
    default_factory: Any = NODEFAULT,
    compare: bool = True,
    repr: bool = True,  # noqa: A002  # named as in the standard library
) -> Any:
    """Return the declaration of a field, as `dataclasses.field` does."""
    declared = _struct_field(default=default, default_factory=default_factory)
    return declared if compare and repr else _Field(declared, compare, repr)


def _dataclass(
    declared: type | None = None, /, *, slots: bool = False, frozen: bool = False, eq: bool = True, order: bool = False
) -> Any:
    """Declare a struct, as `dataclasses.dataclass` declares a class.

    Raises TypeError for an order that leaves fields out, for fields of the standard library, and for a base that
    compares in its own way.
    """

    def struct(declared: type) -> type:
        namespace = {name: value for name, value in vars(declared).items() if name not in _OF_EVERY_CLASS}
        marked = {name: value for name, value in namespace.items() if isinstance(value, _Field)}
        namespace |= {name: field.declared for name, field in marked.items()}
        if "__eq__" in namespace:
            namespace["__ne__"] = object.__ne__  # its opposite, which a struct's own is not
        uncompared = {name for name, field in marked.items() if not field.compare}
        if uncompared and order:
            raise TypeError(f"{declared.__name__} is ordered, so all of its fields are compared")
        if any(isinstance(value, dataclasses.Field) for value in namespace.values()):
            raise TypeError(f"{declared.__name__} mixes the two modules: declare its fields with this one's `field`")
        bases = tuple(base for base in declared.__bases__ if base is not object)
        if any(isinstance(base, StructMeta) and "__eq__" in vars(base) for base in bases):
            raise TypeError(f"{declared.__name__} would not compare as its base does: use dataclasses.dataclass")
        if not any(isinstance(base, StructMeta) for base in bases):
            bases += (Struct,)
        by_struct = eq and not uncompared
        made = StructMeta(declared.__name__, bases, namespace, frozen=frozen, eq=by_struct, order=order, dict=not slots)
        if uncompared and eq:
            compared = [name for name in made.__struct_fields__ if name not in uncompared]
            _compare(made, compared, hashable=frozen, own_hash=namespace.get("__hash__"))
        if any(not field.repr for field in marked.values()):
            _show(made, [name for name in made.__struct_fields__ if name not in marked or marked[name].repr])
        return made

    return struct if declared is None else struct(declared)


def _compare(made: Any, names: list[str], *, hashable: bool, own_hash: Any) -> None:
    """Have instances compared, and hashed if they may be, by these fields alone; a hash of its own is kept."""
    compared = attrgetter(*names)

    def equal(this: Any, other: Any) -> Any:
        return compared(this) == compared(other) if this.__class__ is other.__class__ else NotImplemented

    def hashed(this: Any) -> int:
        return hash(compared(this))

    made.__eq__ = equal
    made.__ne__ = object.__ne__
    made.__hash__ = own_hash or (hashed if hashable else None)


def _show(made: Any, names: list[str]) -> None:
    """Have `repr` show these fields alone."""

    def text(this: Any) -> str:
        return f"{made.__name__}({', '.join(f'{name}={getattr(this, name)!r}' for name in names)})"

    made.__repr__ = text


def _replace(value: Any, /, **changes: Any) -> Any:
    """Return a copy with changed fields, of either kind of dataclass."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)


def _fields(declared: Any) -> Any:
    """Return the fields of a dataclass of either kind, or of an instance; each has a `name`."""
    struct = isinstance(declared, Struct | StructMeta)
    return structs.fields(declared) if struct else dataclasses.fields(declared)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    dataclass, field, fields, replace = _dataclass, _field, _fields, _replace

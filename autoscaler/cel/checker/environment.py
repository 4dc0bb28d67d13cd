"""The declarations for an expression in one Kubernetes version: the variable, its fields, type names and functions.

The scheduler compiles stored expressions with all declarations of its binary. The API server checks new expressions
only with those that the feature gates allow (k8s.io/dynamic-resource-allocation cel/compile.go, newCompiler) and, if no
gate decides, with those that the previous release has as well: its minimum compatibility version is one lower
(k8s.io/apiserver pkg/cel/environment: base.go, environment.go, v0.34 to v0.37). Of the functions in selectors, this
affects ext.Lists in 1.34 and `includes` without its gate in 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

from autoscaler.cel.checker.declarations import Overload, declarations
from autoscaler.cel.common import types
from autoscaler.cel.common.types import Type
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.profile import KubernetesProfile


class View(Enum):
    """The component whose rules determine the declarations."""

    STORED = "stored"  # the scheduler's
    NEW = "new"  # the API server's, for an object that is created


@dataclass(frozen=True, slots=True)
class Dialect:
    """The part of a profile that affects the meaning of expressions. Programs are cached by it."""

    dyn_attributes: bool
    list_values: bool
    includes: bool
    extended_lists: bool
    multiple_allocations: bool
    quoted_names: bool
    cel_go: tuple[int, int]
    add_mutates: bool

    @property
    def modern(self) -> bool:
        """True if cel-go is at least 0.29, the version of Kubernetes 1.37."""
        return self.cel_go >= (0, 29)


@dataclass(frozen=True, slots=True)
class Environment:
    """Declarations of one dialect."""

    dialect: Dialect
    functions: Mapping[str, tuple[Overload, ...]]
    device_fields: Mapping[str, Type]


def dialect_of(profile: KubernetesProfile, view: View) -> Dialect:
    """The dialect of `profile`."""
    gate = profile.gates.list_type_attributes and profile.cel.list_attributes
    stored = view is View.STORED
    lists = gate or (profile.cel.dyn_attributes and stored)
    major, minor, *_ = (int(part) for part in profile.cel.cel_go.split("."))
    return Dialect(
        dyn_attributes=lists,
        list_values=gate or profile.cel.dyn_attributes,
        includes=profile.cel.includes and (stored or lists),
        extended_lists=stored or profile.cel.new_may_use_lists,
        multiple_allocations=stored or profile.gates.consumable_capacity,
        quoted_names=(major, minor) >= (0, 29),
        cel_go=(major, minor),
        add_mutates=profile.cel.add_mutates_big_quantity,
    )


@cache
def environment(dialect: Dialect) -> Environment:
    attribute = types.DYN if dialect.dyn_attributes else types.ANY
    fields = {
        "driver": types.STRING,
        "attributes": _by_domain(attribute),
        "capacity": _by_domain(types.QUANTITY),
    }
    if dialect.multiple_allocations:
        fields["allowMultipleAllocations"] = types.BOOL
    functions = declarations(includes=dialect.includes, extended_lists=dialect.extended_lists, modern=dialect.modern)
    return Environment(dialect, functions, fields)


def _by_domain(value: Type) -> Type:
    return types.map_of(types.STRING, types.map_of(types.STRING, value))


# Names of types, with their types.
TYPE_NAMES: Final[Mapping[str, Type]] = {
    t.name: t for t in (types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES, types.NULL)
} | {
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "type": types.TYPE,
    "optional_type": types.optional_of(types.DYN),
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
    "net.IP": types.IP,
    "net.CIDR": types.CIDR,
}

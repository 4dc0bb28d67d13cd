"""Access chains: root.a["b"][i].?c, as cel-go resolves them (v0.26.0 interpreter/attributes.go).

A chain is one step of the program: it charges one unit for its root and one for every link it follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from autoscaler.cel.common.evaluation import COST, COST_LIMIT, DEVICE, CostExceededError, Frame, Run, charge
from autoscaler.cel.common.values import (
    FAULTS,
    MAPS,
    MISSING,
    NONE,
    Address,
    Failure,
    OptionalValue,
    Prefix,
    QuantityCell,
    TypeName,
    UInt,
    Unknown,
    Url,
    Value,
)
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.semver import SemanticVersion

_KEYS = frozenset({str, int, UInt, bool, float})
_NO_NATIVE = frozenset({QuantityCell, SemanticVersion, Address, Prefix, Url})


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known when the program is created; it costs nothing."""

    value: Value


@dataclass(frozen=True, slots=True)
class Code:
    """A step that charges for itself."""

    run: Run


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain: `key` is a constant, or `dynamic` computes it."""

    key: Value = None
    dynamic: Run | None = None
    optional: bool = False
    test_only: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Links after a root. `slot` is the frame index of a root variable, else `root` computes it.

    `native` means that an optional at the root is converted to its Go value and back, as before cel-go 0.29.
    """

    root: Run
    slot: int | None
    native: bool
    links: tuple[Link, ...] = ()

    def linked(self, link: Link) -> Chain:
        return replace(self, links=(*self.links, link))


@dataclass(frozen=True, slots=True)
class Choice:
    """A ternary: links after it belong to both branches, and the ternary itself is free. `tested`: has() of it."""

    condition: Run
    truthy: Chain | Choice
    falsy: Chain | Choice
    tested: bool = False

    def linked(self, link: Link) -> Choice:
        """The ternary with one more link on each branch."""
        return Choice(self.condition, self.truthy.linked(link), self.falsy.linked(link), link.test_only)


Step: TypeAlias = Constant | Code | Chain | Choice


def run_of(step: Step) -> Run:
    """The closure that evaluates a step and charges all of its cost."""
    if isinstance(step, Constant):
        value = step.value
        return lambda frame: value
    if isinstance(step, Code):
        return step.run
    if isinstance(step, Choice):
        return _tested_choice(resolver(step)) if step.tested else resolver(step)
    fast = _device_run(step)
    if fast is not None:
        return fast
    resolve = resolver(step)
    slot, native = step.slot, step.native
    if slot is not None and not step.links:

        def variable_run(frame: Frame) -> Value:
            cost = frame[COST] = frame[COST] + 1
            if cost > COST_LIMIT:
                raise CostExceededError
            value = frame[slot]
            return _rewrapped(value) if native and type(value) is OptionalValue else value

        return variable_run

    def run(frame: Frame) -> Value:
        value = resolve(frame)
        charge(frame, 1)
        return value

    if any(link.test_only for link in step.links):
        return resolve
    return run


def _tested_choice(choose: Run) -> Run:
    """has() of a ternary: subtract the unit of its root (interpreter/runtimecost.go), which was never charged."""

    def run(frame: Frame) -> Value:
        value = choose(frame)
        charge(frame, -1)
        return value

    return run


def resolver(step: Chain | Choice) -> Run:
    """The closure for a chain inside another step: a ternary's branch or an index. The root is free there."""
    if isinstance(step, Choice):
        return _choice(step)
    root, links = step.root, tuple(_follower(link) for link in step.links)
    native = step.native
    if not links:
        if not native:
            return root

        def plain(frame: Frame) -> Value:
            value = root(frame)
            return _rewrapped(value) if type(value) is OptionalValue else value

        return plain

    def resolve(frame: Frame) -> Value:
        value = root(frame)
        if type(value) in FAULTS:
            return value
        optional = type(value) is OptionalValue
        if optional:
            if value is NONE:
                return NONE
            value = _rewrapped(value).value if native else value.value
            if type(value) is Failure:
                return value
        for optional_link, follow in links:
            optional = optional or optional_link
            value = follow(frame, value, optional)
            if value is MISSING:
                return NONE
            if type(value) in FAULTS:
                return value
        return OptionalValue(value) if optional else value

    if step.links[-1].test_only:
        return lambda frame: _tested(resolve(frame))
    return resolve


def _rewrapped(optional: OptionalValue) -> OptionalValue:
    """An optional that is read as a variable, branch or root: upstream takes its native Go value and wraps it again.

    This loses Kubernetes types, turns types into their names, and flattens nested optionals.
    """
    if optional is NONE:
        return NONE
    value = optional.value
    if type(value) is OptionalValue:
        return OptionalValue(None) if value is NONE else _rewrapped(value)
    if type(value) in _NO_NATIVE:
        return OptionalValue(Failure(f"unsupported conversion to ref.Val: ({type(value).__name__})"))
    return OptionalValue(value.name) if type(value) is TypeName else optional


def _tested(value: Value) -> Value:
    return value is not NONE if type(value) is OptionalValue else value


def _choice(step: Choice) -> Run:
    condition, truthy, falsy = step.condition, resolver(step.truthy), resolver(step.falsy)

    def run(frame: Frame) -> Value:
        decided = condition(frame)
        if decided is True:
            return truthy(frame)
        if decided is False:
            return falsy(frame)
        return decided if type(decided) in FAULTS else Failure("no such overload")

    return run


def _follower(link: Link) -> tuple[bool, Callable[[Frame, Value, bool], Value]]:
    """A function that follows a link; its result MISSING means that an optional chain ends in none."""
    key, dynamic = link.key, link.dynamic
    if link.test_only:

        def test(frame: Frame, value: Value, optional: bool) -> Value:  # noqa: FBT001 - called for each read
            found = look_up(value, key)
            if type(found) is Failure:
                charge(frame, 0 if optional else 1)
                return found
            charge(frame, 1 if not optional or found is not MISSING else 0)
            if optional and found is MISSING:
                return MISSING
            return found is not MISSING

        return link.optional, test

    def follow(frame: Frame, value: Value, optional: bool) -> Value:  # noqa: FBT001 - called for each read
        index = key if dynamic is None else dynamic(frame)
        if type(index) in FAULTS:
            charge(frame, 0 if optional else 1)
            return index
        found = look_up(value, index)
        if optional:
            if found is not MISSING and type(found) is not Failure:
                charge(frame, 1)
            return found
        charge(frame, 1)
        if found is MISSING:
            return Failure(f"index out of bounds: {index}") if type(value) is list else Failure.no_such_key(index)
        return found

    return link.optional, follow


def look_up(value: Value, key: Value) -> Value:
    """The element of `value` at `key`, MISSING, or a Failure. Below a scalar all keys are missing."""
    kind = type(value)
    if kind in MAPS:
        if type(key) not in _KEYS:
            return Failure(f"invalid qualifier type: {type(key).__name__}")
        return value.find(key)
    if kind is list:
        index = _index(key)
        if type(index) is Failure:
            return index
        return value[index] if 0 <= index < len(value) else MISSING
    if kind is Unknown:
        return value
    return MISSING


def _index(key: Value) -> Value:
    kind = type(key)
    if kind is int or kind is UInt:
        return int(key)
    if kind is float and key.is_integer():
        return int(key)
    return Failure(f"unsupported index type or value: {key!r}")


def _charge_steps(frame: Frame, steps: int) -> None:
    """Charge one unit per step; the first beyond the limit ends the evaluation, at exactly one more than the limit."""
    cost = frame[COST] = frame[COST] + steps
    if cost > COST_LIMIT:
        frame[COST] = COST_LIMIT + 1
        raise CostExceededError


def _device_run(step: Chain) -> Run | None:
    """`device.driver` and `device.attributes["d"].id` without the loop: the most frequent reads of selectors."""
    if step.slot != DEVICE or any(link.optional or link.test_only or type(link.key) is not str for link in step.links):
        return None
    keys = [link.key for link in step.links]
    if len(keys) == 1:
        (field,) = keys

        def field_run(frame: Frame) -> Value:
            _charge_steps(frame, 2)
            return frame[DEVICE].entries[field]

        return field_run
    if len(keys) != 3 or keys[0] not in ("attributes", "capacity"):
        return None
    group, domain, name = keys
    absent = Failure.no_such_key(name)

    def value_run(frame: Frame) -> Value:
        _charge_steps(frame, 4)
        return frame[DEVICE].entries[group].find(domain).entries.get(name, absent)

    return value_run

"""The fields of a device that an expression may read, as far as its text shows."""

from __future__ import annotations

from typing import Final, TypeAlias

from autoscaler.cel.common.ast import (
    Call,
    Comprehension,
    Expression,
    Identifier,
    Literal,
    Select,
    parts,
)

# ("attributes" or "capacity", domain, identifier), or a single field such as ("driver", "", "").
Path: TypeAlias = tuple[str, str, str]
_GROUPS: Final = frozenset({"attributes", "capacity"})


def paths_read(root: Expression) -> frozenset[Path] | None:
    """The paths, or None if some domain or identifier is computed, or a whole map is used."""
    found: set[Path] = set()
    pending = [root]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:  # optMap's target is in the tree twice
            continue
        seen.add(id(node))
        keys, below = _chain(node)
        if keys is None:
            pending.extend(below)
            continue
        if not keys or (keys[0] in _GROUPS and len(keys) < 3):
            return None
        found.add((keys[0], keys[1], keys[2]) if keys[0] in _GROUPS else (keys[0], "", ""))
        pending.extend(below)
    return frozenset(found)


def _chain(node: Expression) -> tuple[list[str] | None, list[Expression]]:
    """The literal keys from `device` to `node`, or None for another node; and the nodes that remain to be checked."""
    keys: list[str] = []
    below: list[Expression] = []
    at = node
    while True:
        if isinstance(at, Identifier):
            if at.name.removeprefix(".") != "device":
                return None, _children(node)
            keys.reverse()
            return keys, below
        step = _link(at)
        if step is None:
            return None, _children(node)
        at, key = step
        if isinstance(key, str):
            keys.append(key)
        else:
            # Only the keys before a computed one are certain, and the computed key itself may read the device.
            keys = []
            below.append(key)


def _link(node: Expression) -> tuple[Expression, str | Expression] | None:
    if isinstance(node, Select):
        return node.operand, node.name
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
        operand, key = node.arguments
        return operand, key.value if isinstance(key, Literal) and type(key.value) is str else key
    return None


def _children(node: Expression) -> list[Expression]:
    if isinstance(node, Comprehension):
        return [*parts(node), node.condition, node.step, node.result]
    return parts(node)

"""Merges groups of bundles if a program would be too large: similar ones become one group, as small as the smallest.

Nodes that take the bundles also take the groups, so a lower bound for the groups is one for the bundles.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from autoscaler.planning.packing.relaxation import Group


def coarse(groups: Sequence[Group], rooms: Mapping[Hashable, float], most: int) -> tuple[Group, ...]:
    """About `most` groups; `rooms` is the approximate room of a machine in each dimension."""
    by_kinds: dict[frozenset[int], list[Group]] = {}
    for group in groups:
        by_kinds.setdefault(group.kinds, []).append(group)
    found: list[Group] = []
    for alike in by_kinds.values():
        found += _merged(alike, max(1, most * len(alike) // len(groups)), rooms)
    return tuple(found)


def _merged(groups: Sequence[Group], parts: int, rooms: Mapping[Hashable, float]) -> Iterable[Group]:
    """`parts` groups in place of these, which the same kinds take. Groups are halved where they differ most,
    recursively."""
    if parts == 1 or len(groups) == 1:
        sizes = {d: min(group.sizes.get(d, 0) for group in groups) for group in groups for d in group.sizes}
        items = tuple(item for group in groups for item in group.items)
        yield Group(sizes, groups[0].kinds, items, sum(group.count for group in groups))
        return
    dimensions = list(dict.fromkeys(d for group in groups for d in group.sizes))
    widest = max(dimensions, key=lambda d: _spread(groups, d) / max(1.0, rooms.get(d, 1.0)))
    ordered = sorted(groups, key=lambda group: group.sizes.get(widest, 0))
    middle = len(ordered) // 2
    yield from _merged(ordered[:middle], parts // 2, rooms)
    yield from _merged(ordered[middle:], parts - parts // 2, rooms)


def _spread(groups: Sequence[Group], dimension: Hashable) -> int:
    sizes = [group.sizes.get(dimension, 0) for group in groups]
    return max(sizes) - min(sizes)

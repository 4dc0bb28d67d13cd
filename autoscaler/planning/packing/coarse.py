"""Fewer groups of bundles, for programs that would be too large: similar ones are one, as small as the least of them.

So whatever nodes take the bundles themselves takes the groups, and a lower bound for these is one for the bundles.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from autoscaler.planning.packing.relaxation import Group


def coarse(groups: Sequence[Group], rooms: Mapping[Hashable, float], most: int) -> tuple[Group, ...]:
    """About `most` groups; `rooms` says how much of each dimension a machine has, about."""
    by_kinds: dict[frozenset[int], list[Group]] = {}
    for group in groups:
        by_kinds.setdefault(group.kinds, []).append(group)
    found: list[Group] = []
    for alike in by_kinds.values():
        found += _merged(alike, max(1, most * len(alike) // len(groups)), rooms)
    return tuple(found)


def _merged(groups: Sequence[Group], parts: int, rooms: Mapping[Hashable, float]) -> Iterable[Group]:
    """So many groups instead of these, which the same kinds take: halved where they differ most, again and again."""
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

"""Existing groups of machines: the offerings that they start, and the labels and taints of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from autoscaler.model.capacity import CapacityPool, GroupNodes, GroupOffering
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.planning.supply.node_basis import NodeTerms
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType

_HELD: Final = frozenset({CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED})


class Registered(NamedTuple):
    """The labels and taints that a node has beside those of its machine and its pool."""

    labels: FrozenMap[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()


def in_groups(ref: OfferingRef, pool: CapacityPool) -> bool:
    """True if a group of the pool's node template starts such machines, as far as is known.

    Also true for reserved capacity without the name of its reservation: its reason is the missing CapacityBlock.
    """
    return pool.groups is None or any(_starts(group, ref) for group in pool.groups)


def is_of(group: GroupOffering, ref: OfferingRef) -> bool:
    """True if only groups of this offering start such a machine."""
    return _starts(group, ref) and (ref.zone, ref.reservation) == (group.zone, group.reservation)


def registered(pool: NodeTerms, ref: OfferingRef) -> Registered:
    """The labels that a node of the offering has in each of its groups, and the taints that it has in any of them.
    Taints that are removed after the start, by the pool's spec, are left out."""
    return _registered(pool.registers, ref) if pool.registers else Registered()


def group_keys(pool: CapacityPool) -> frozenset[str]:
    """The labels that depend on the group of a node."""
    return frozenset(key for nodes in pool.registers for key in nodes.labels)


def keeps_together(pool: CapacityPool, ref: OfferingRef, key: str) -> GroupNodes | None:
    """The nodes of the one group whose machines share a label with an unknown value; None if several groups may
    start them, or no policy keeps them together."""
    found = list(_of(pool.registers, ref))
    if len(found) != 1 or found[0].offering is None or key not in found[0].same:
        return None
    return found[0]


@lru_cache(maxsize=4096)
def _registered(registers: tuple[GroupNodes, ...], ref: OfferingRef) -> Registered:
    found = list(_of(registers, ref))
    if not found:
        return Registered()
    shared = set(found[0].labels.items()).intersection(*(nodes.labels.items() for nodes in found[1:]))
    return Registered(
        FrozenMap(sorted(shared)), tuple(dict.fromkeys(taint for nodes in found for taint in nodes.taints))
    )


def _of(registers: tuple[GroupNodes, ...], ref: OfferingRef) -> Iterator[GroupNodes]:
    return (nodes for nodes in registers if nodes.offering is None or _starts(nodes.offering, ref))


def _starts(group: GroupOffering, ref: OfferingRef) -> bool:
    # A CapacityBlock may hold any kind of reservation, so groups of both kinds may start its machines.
    paid = _HELD if ref.capacity_type in _HELD else {ref.capacity_type}
    return (
        group.instance_type == ref.instance_type
        and group.capacity_type in paid
        and ref.zone in (ANY_ZONE, group.zone)
        and (not ref.reservation or group.reservation in ("", ref.reservation))
    )

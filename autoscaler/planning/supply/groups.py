"""Groups of machines that exist already: which of them start an offering, and what its nodes register with there."""

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
    """What a node has beside what follows from its machine and its pool: labels and taints."""

    labels: FrozenMap[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()


def in_groups(ref: OfferingRef, pool: CapacityPool) -> bool:
    """Whether a group of the pool's node template starts such machines, as far as that is known. What names no
    reservation lacks a CapacityBlock, whichever the groups start."""
    return pool.groups is None or any(_starts(group, ref) for group in pool.groups)


def is_of(group: GroupOffering, ref: OfferingRef) -> bool:
    """Whether such a machine is started by groups of this offering and by no others."""
    return _starts(group, ref) and (ref.zone, ref.reservation) == (group.zone, group.reservation)


def registered(pool: NodeTerms, ref: OfferingRef) -> Registered:
    """What a node of an offering has by the groups that may start it: the labels that it has in each of them, and the
    taints that it has in any. Taints that the pool says go away are gone when pods come."""
    return _registered(pool.registers, ref) if pool.registers else Registered()


def group_keys(pool: CapacityPool) -> frozenset[str]:
    """The labels that depend on the group that a node is started in."""
    return frozenset(key for nodes in pool.registers for key in nodes.labels)


def keeps_together(pool: CapacityPool, ref: OfferingRef, key: str) -> GroupNodes | None:
    """The nodes of the one group whose machines share a label that is known of none before it registers; None where
    several groups may start them, or nothing keeps them together."""
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
    # A CapacityBlock may hold any kind of reservation, so a group of either kind may start its machines.
    paid = _HELD if ref.capacity_type in _HELD else {ref.capacity_type}
    return (
        group.instance_type == ref.instance_type
        and group.capacity_type in paid
        and ref.zone in (ANY_ZONE, group.zone)
        and (not ref.reservation or group.reservation in ("", ref.reservation))
    )

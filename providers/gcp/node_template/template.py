"""The content of a GCPNodeTemplate as frozen values: the groups in which a pool's machines start. Checked when it is
read."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.taint import Taint
from providers.contract import TemplateRef


@dataclass(frozen=True, slots=True, order=True)
class GroupRef:
    zone: str
    name: str

    def __str__(self) -> str:
        return f"{self.zone}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupTemplate:
    """Groups that exist already: the node pools of a GKE cluster, and managed instance groups by zone and name.

    `cluster` and `location` (a region or zone) are those of the GKE cluster. `resize_requests`: machines that must
    start together are requested by a resize request. `flex_start`: the run duration of flex-start machines; None: none
    are launched. `tried` are the groups in which a trial has started machines by a resize request. `on_trial`: this is
    the template of a trial.
    """

    name: str
    cluster: str = ""
    location: str = ""
    node_pools: tuple[str, ...] = ()
    groups: tuple[GroupRef, ...] = ()
    resize_requests: bool = False
    flex_start: timedelta | None = None
    tried: frozenset[GroupRef] = frozenset()
    on_trial: bool = False


@dataclass(frozen=True, slots=True)
class BlockNodes:
    """The properties that plans for a CapacityBlock assume for its nodes: those of the groups that start in its
    `reservation`."""

    block: str
    reservation: str
    taint: Taint | None = None


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The properties that plans for a CapacityPool assume for its nodes, beside those of their type.

    `startup_taints` are removed before pods start. `blocks` are the pool's CapacityBlocks.
    """

    pool: str
    template: str
    labels: FrozenMap[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    blocks: tuple[BlockNodes, ...] = ()


class GroupTemplates(Protocol):
    def template(self, reference: TemplateRef) -> GroupTemplate:
        """The template of a pool. Raises TemplateError, with the next step, if it cannot be used."""

    def references(self) -> tuple[TemplateRef, ...]:
        """All templates of this kind, by name."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A stored launch: its name and its CapacityPool."""

    name: str
    pool: str

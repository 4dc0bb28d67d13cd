"""What the controller must be allowed to do, by what it is to do: the rights of the chart's ClusterRoles as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autoscaler.model.capacity import CapacityPool, Mode

_OURS = "foreslice.dev"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource of the whole cluster. `group` is "" for the core group; `resource` may be "pods/status"."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def _rights(group: str, resources: str, verbs: str) -> Iterator[Right]:
    yield from (Right(group, resource, verb) for resource in resources.split() for verb in verbs.split())


OBSERVE: tuple[Right, ...] = (
    *_rights("", "pods nodes persistentvolumes persistentvolumeclaims resourcequotas", "list watch"),
    *_rights("", "namespaces", "get list watch"),
    *_rights("storage.k8s.io", "storageclasses csinodes", "list watch"),
    *_rights("scheduling.k8s.io", "priorityclasses podgroups", "list watch"),
    *_rights("scheduling.x-k8s.io", "podgroups", "list watch"),
    *_rights("apps", "daemonsets deployments", "list watch"),
    *_rights("resource.k8s.io", "resourceclaims resourceslices deviceclasses devicetaintrules", "list watch"),
    *_rights(_OURS, "capacitypools capacityblocks instancetypeoverlays", "get list watch"),
    *_rights(_OURS, "provisionednodes launchbatches", "list watch"),
    *_rights(_OURS, "capacitypools/status capacityblocks/status instancetypeoverlays/status", "patch"),
    *_rights(_OURS, "spendings", "get list watch create"),
    *_rights(_OURS, "spendings/status", "update"),
    *_rights("", "events", "create"),
)
ACT: tuple[Right, ...] = (
    *_rights(_OURS, "provisionednodes", "get create patch delete"),
    *_rights(_OURS, "launchbatches", "get create delete"),
    *_rights(_OURS, "provisionednodes/status launchbatches/status", "update"),
    *_rights(_OURS, "capacitypools", "patch"),
    *_rights("", "nodes", "get patch delete"),
    *_rights("", "pods pods/status", "patch"),
    *_rights("", "pods/eviction", "create"),
)
KWOK: tuple[Right, ...] = (
    *_rights(_OURS, "kwoknodetemplates", "get"),
    *_rights("", "nodes", "create"),
    *_rights("resource.k8s.io", "resourceslices", "create delete"),
)


def rights_needed(pools: Iterable[CapacityPool]) -> tuple[Right, ...]:
    """What a controller of these pools needs; with none that acts, what it takes to observe."""
    acting = [pool for pool in pools if pool.mode is Mode.ACT]
    kwok = any(pool.node_template[0] == "KwokNodeTemplate" for pool in acting)
    return (*OBSERVE, *(ACT if acting else ()), *(KWOK if kwok else ()))

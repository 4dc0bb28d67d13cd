"""The rights that the controller needs for each of its tasks: those of the chart's ClusterRoles as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autoscaler.kube.kinds import KINDS
from autoscaler.model.capacity import CapacityPool, Mode
from instance_catalog.dataclass import dataclass

_OURS = "foreslice.dev"
_LEASES = "coordination.k8s.io"
# Nothing is launched or ended while one of these is being deleted.
_DEFINITIONS = f"capacitypools.{_OURS} launchbatches.{_OURS} provisionednodes.{_OURS}"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource. `group` is "" for the core group; `resource` may be "pods/status".

    `name` is that of the only object that is meant, `namespace` the only namespace; "" for all.
    """

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        named = f"/{self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{named}{where}"


def _rights(group: str, resources: str, verbs: str, names: str = "") -> Iterator[Right]:
    for resource in resources.split():
        for verb in verbs.split():
            yield from (Right(group, resource, verb, name) for name in names.split() or [""])


OBSERVE: tuple[Right, ...] = (
    *(right for kind in KINDS for right in _rights(kind.group, kind.plural, "list watch")),
    *_rights("", "namespaces", "get"),
    *_rights(_OURS, "capacitypools capacityblocks", "get"),
    *_rights(_OURS, "instancetypeoverlays", "get list watch"),
    *_rights(_OURS, "launchbatches", "list watch"),
    *_rights(_OURS, "capacitypools/status capacityblocks/status instancetypeoverlays/status", "patch"),
    *_rights(_OURS, "spendings", "get list watch create"),
    *_rights(_OURS, "spendings/status", "update"),
    *_rights("", "events", "create"),
)
ACT: tuple[Right, ...] = (
    *_rights(_OURS, "provisionednodes", "get create patch delete"),
    *_rights(_OURS, "launchbatches", "get create patch delete"),
    *_rights(_OURS, "provisionednodes/status launchbatches/status", "update"),
    *_rights(_OURS, "capacitypools", "patch"),
    *_rights("apiextensions.k8s.io", "customresourcedefinitions", "get", _DEFINITIONS),
    *_rights("", "nodes", "get patch delete"),
    *_rights("", "pods pods/status", "patch"),
    *_rights("", "pods/eviction", "create"),
    *_rights("autoscaling.x-k8s.io", "provisioningrequests/status capacitybuffers/status", "patch"),
)
KWOK: tuple[Right, ...] = (
    *_rights(_OURS, "kwoknodetemplates", "get"),
    *_rights("", "nodes", "create"),
    *_rights("resource.k8s.io", "resourceslices", "create delete"),
)
AWS: tuple[Right, ...] = (
    *_rights(_OURS, "awsnodetemplates awsgroupnodetemplates", "get list"),
    *_rights(_OURS, "awsnodetemplates/status awsgroupnodetemplates/status", "patch"),
)
GCP: tuple[Right, ...] = (
    *_rights(_OURS, "gcpnodetemplates", "get list"),
    *_rights(_OURS, "gcpnodetemplates/status", "patch"),
)
# Those of the built-in role system:auth-delegator, for the status page.
PAGE: tuple[Right, ...] = (
    *_rights("authentication.k8s.io", "tokenreviews", "create"),
    *_rights("authorization.k8s.io", "subjectaccessreviews", "create"),
)
_OF_TEMPLATES = {"KwokNodeTemplate": KWOK, "AWSNodeTemplate": AWS, "AWSGroupNodeTemplate": AWS, "GCPNodeTemplate": GCP}


def rights_needed(pools: Iterable[CapacityPool], *, lease: str, namespace: str) -> tuple[Right, ...]:
    """The rights of a controller of these pools with this Lease; if no pool acts, those for observing."""
    acting = [pool for pool in pools if pool.mode is Mode.ACT]
    templates = dict.fromkeys(pool.node_template.kind for pool in acting)
    return (
        *OBSERVE,
        Right(_LEASES, "leases", "create", namespace=namespace),  # names are not known when creation is authorised
        Right(_LEASES, "leases", "get", lease, namespace),
        Right(_LEASES, "leases", "update", lease, namespace),
        *PAGE,
        *(ACT if acting else ()),
        *dict.fromkeys(right for kind in templates for right in _OF_TEMPLATES.get(kind, ())),
    )

"""A node whose pods may move, and plans of the cluster without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

from autoscaler.model.capacity import CapacityPool, ConsolidationPolicy, Disruption, Limits, Mode
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision, Placement, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.provisioned_node import OfferingRef, Phase, Prediction, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.consolidation import consolidation
from autoscaler.planning.disruption.consolidation.consolidation import Consolidated, consolidated
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED, MovesTried
from autoscaler.planning.policy import Policy
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, ours, pod, snapshot

POOL = CapacityPool(
    "team", mode=Mode.ACT, limits=Limits(nodes=9), disruption=Disruption(consolidate=ConsolidationPolicy.CHEAPER)
)
DEAR, CHEAP = Decimal("40"), Decimal("5")


def node(name: str = "old", **fields: Any) -> ProvisionedNode:
    ready = {"phase": Phase.READY, "phase_since": NOW - timedelta(hours=1), "provider_id": f"id-{name}"}
    return ours(name, "l8", **{"usd_per_hour": "40.00", **ready, **fields})


def served(name: str = "web", on: str = "old", **fields: Any) -> Pod:
    return pod(name, **{"owner": "ReplicaSet/web", "node_name": on, "phase": "Running", **fields})


def state(
    pods: Iterable[Pod] = (served(),),
    nodes: Iterable[ProvisionedNode] = (node(),),
    pools: Iterable[CapacityPool] = (POOL,),
    **fields: Any,
) -> Snapshot:
    nodes = tuple(nodes)
    fields.setdefault("nodes", tuple(Node(n.node_name, provider_id=n.provider_id) for n in nodes))
    return snapshot(pods, pools=tuple(pools), provisioned=nodes, **fields)


def launch(name: str = "new", price: Decimal = CHEAP, *others: tuple[str, Decimal], **fields: Any) -> PlannedNode:
    kind = CapacityType(fields.pop("capacity_type", "on-demand"))
    offerings = (OfferingRef("l1", "any", kind, price), *(OfferingRef(t, "any", kind, p) for t, p in others))
    given: dict[str, Any] = {"pool": "team", "offerings": offerings, "pods": ("default/web",), "usd_per_hour": price}
    prediction = Prediction("l1", ("nvidia",), "", "")
    return PlannedNode(
        name=name,
        drivers=("nvidia",),
        node=Node(name),
        predicted=(),
        devices_used=(),
        devices_total=1,
        prediction=prediction,
        **(given | fields),
    )


def present(snapshot: Snapshot, **fields: Any) -> Plan:
    """The plan of the cluster as it is: nodes stay for their pods."""
    kept = (Reason.of(Code.ALREADY_BOUND),)
    return Plan(nodes=tuple(NodeDecision(n.name, NodeAction.KEEP, kept) for n in snapshot.provisioned), **fields)


def moved(*launches: PlannedNode, pods: Iterable[str] = ("default/web",), to: str = "other", **fields: Any) -> Plan:
    """The plan of the cluster without the node: its pods have places on `to` or on what is launched."""
    target = Target.NEW if launches else Target.EXISTING
    name = launches[0].name if launches else to
    return Plan(launches=launches, placements=tuple(Placement(p, target, name) for p in pods), **fields)


def step(
    found: Snapshot,
    tried: Plan | Callable[[Snapshot], Plan],
    seen: MovesTried = NOTHING_TRIED,
    *,
    plan: Plan | None = None,
    later: timedelta = timedelta(0),
    catalog: Catalog = CATALOG,
    policy: Policy | None = None,
    stuck: str = "",
) -> Consolidated:
    """`tried` is made by hand, for nodes without capacity: kube-scheduler would leave the pod `stuck`."""
    make = tried if callable(tried) else lambda _: tried
    given = policy or Policy()
    with mock.patch.object(consolidation, "pod_without_place", return_value=stuck):
        return consolidated(
            plan or present(found), found, make, NOW + later, seen, attempt=make, catalog=catalog, policy=given
        )


def drained(result: Consolidated) -> list[str]:
    return [d.provisioned_node for d in result.plan.nodes if d.action is NodeAction.DRAIN]


def claims_of(*names: str) -> tuple[PodClaim, ...]:
    return tuple(PodClaim(name, name) for name in names)

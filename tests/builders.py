"""A tiny catalog and short ways to write pods, claims, nodes and snapshots: for tests of every pure package."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from autoscaler.model.capacity import CapacityBlock, CapacityPool, Hold
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.gang import Gang
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, GangRef, Pod, PodClaim
from autoscaler.model.provisioned_node import OfferingRef, Phase, Prediction, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import Constraint, DeviceRequest, Request, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator, CapacityType, InstanceType, Price

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
Pairs: TypeAlias = tuple[list[Pod], list[ResourceClaim]]
"""Pods and their claims."""
SMALL = Accelerator(
    "small", "NVIDIA", "S1", product_name="Small S1", architecture="Turing", memory=Quantity.parse("16Gi")
)
LARGE = Accelerator(
    "large", "NVIDIA", "L9", product_name="Large L9", architecture="Hopper", memory=Quantity.parse("80Gi")
)
TPU = Accelerator("tpu", "Google", "T0", node_label="tpu-v6e-slice")
NAMELESS = Accelerator("nameless", "NVIDIA", "N0", architecture="Turing", memory=Quantity.parse("16Gi"))


def machine(
    name: str,
    accelerator: Accelerator | None,
    count: int,
    price: str | None,
    *,
    vcpu: int = 32,
    spot: str | None = None,
    cloud: str = "aws",
) -> InstanceType:
    """A type sold on demand (and on the spot market, if that has a price)."""
    prices = {CapacityType.ON_DEMAND: price, CapacityType.SPOT: spot}
    return InstanceType(
        cloud=cloud,
        name=name,
        architecture="amd64",
        vcpu=vcpu,
        memory=Quantity.parse("256Gi"),
        accelerator=accelerator,
        accelerator_count=Fraction(count),
        capacity_types=(CapacityType.ON_DEMAND, *((CapacityType.SPOT,) if spot else ())),
        prices=FrozenMap({k: Price(Decimal(p), "us-east-1", "2026") for k, p in prices.items() if p}),
    )


CATALOG = Catalog.of(
    [
        machine("s1", SMALL, 1, "1.00"),
        machine("s4", SMALL, 4, "3.60"),
        machine("l1", LARGE, 1, "5.00"),
        machine("l8", LARGE, 8, "40.00"),
        machine("mystery", SMALL, 16, None),
    ]
)
GPU = DeviceClass(
    "gpu.nvidia.com",
    (Selector("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"),),
)

TEAM = CapacityPool("team")


def gpus(count: int = 1, *, product: str = "", name: str = "gpu") -> DeviceRequest:
    """A request for GPUs, of a product if one is named."""
    wanted = f"device.attributes['gpu.nvidia.com'].productName == '{product}'"
    return DeviceRequest(name, "gpu.nvidia.com", (Selector(wanted),) if product else (), count=count)


def claim(name: str, *requests: Request, constraints: Iterable[Constraint] = ()) -> ResourceClaim:
    """A claim in namespace default; one GPU unless told otherwise."""
    return ResourceClaim("default", name, requests or (gpus(),), tuple(constraints), uid=f"uid-{name}")


def pod(name: str, *claims: str, cpu: str = "1", gang: str = "", **fields: Any) -> Pod:
    """A pending pod of namespace default with these claims."""
    return Pod(
        "default",
        name,
        uid=f"uid-{name}",
        containers=(Container("main", FrozenMap({"cpu": Quantity.parse(cpu)})),),
        claims=tuple(PodClaim(c, c) for c in claims),
        gang=GangRef("default", gang) if gang else None,
        **fields,
    )


def pairs(count: int, *requests: Request, prefix: str = "p", **fields: Any) -> Pairs:
    """`count` equal pods, each with a claim of its own."""
    names = [f"{prefix}{i:02}" for i in range(count)]
    return [pod(n, f"{n}-c", **fields) for n in names], [claim(f"{n}-c", *requests) for n in names]


def joined(*parts: Pairs) -> Pairs:
    """The pods of all parts, and their claims."""
    return [pod for pods, _ in parts for pod in pods], [claim for _, claims in parts for claim in claims]


def in_namespace(namespace: str, found: Pairs) -> Pairs:
    """The same pods and claims in another namespace."""
    pods, claims = found
    return [replace(pod, namespace=namespace) for pod in pods], [replace(c, namespace=namespace) for c in claims]


def snapshot(pods: Iterable[Pod], claims: Iterable[ResourceClaim] = (), **fields: Any) -> Snapshot:
    """A snapshot with the GPU class."""
    fields.setdefault("classes", (GPU,))
    return Snapshot(pods=tuple(pods), claims=FrozenMap({c.key: c for c in claims}), **fields)


def pool_manifest(*, nodes: int = 4, **spec: Any) -> dict[str, Any]:
    """A CapacityPool of the simulated cloud in one zone that launches nodes with NVIDIA's driver."""
    fixed = {
        "mode": "Act",
        "requirements": [{"key": labels.ZONE, "operator": "In", "values": ["us-east-1a"]}],
        "nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"},
        "drivers": {"profiles": ["nvidia"]},
        "limits": {"nodes": nodes},
    }
    head = {"apiVersion": "foreslice.dev/v1alpha1", "kind": "CapacityPool", "metadata": {"name": "gpu"}}
    return {**head, "spec": {**fixed, **spec}}


def gang(name: str, minimum: int, topology_key: str | None = None) -> FrozenMap[str, Gang]:
    """One gang as a snapshot holds it."""
    return FrozenMap({f"default/{name}": Gang("default", name, "PodGroup", minimum, topology_key)})


def block(name: str = "november", **fields: Any) -> CapacityBlock:
    """An open block of two l8 machines with ten hours left before its drain."""
    defaults: dict[str, Any] = {
        "instance_type": "l8",
        "zone": "us-east-1a",
        "count": 2,
        "starts_at": NOW - timedelta(hours=1),
        "ends_at": NOW + timedelta(hours=10, minutes=15),
        "hold": Hold.WHILE_NEEDED,
    }
    return CapacityBlock(name, **(defaults | fields))


def ours(name: str, instance_type: str = "s4", *, phase: Phase = Phase.LAUNCHING, **fields: Any) -> ProvisionedNode:
    """A ProvisionedNode of pool team; `zone` and `usd_per_hour` are of its offering, unless `offering` is given."""
    zone, usd = fields.pop("zone", "any"), Decimal(fields.pop("usd_per_hour", "3.60"))
    offering = fields.pop("offering", OfferingRef(instance_type, zone, CapacityType.ON_DEMAND, usd))
    return ProvisionedNode(
        name=name,
        pool=fields.pop("pool", "team"),
        node_name=name,
        batch="b",
        offerings=(offering,),
        prediction=Prediction(offering.instance_type, fields.pop("drivers", ("nvidia",)), "", ""),
        phase=phase,
        **fields,
    )


@cache
def shipped(*names: str) -> Catalog:
    """The shipped catalog with these types only: a plan over few types is quick."""
    found = load_catalog()
    return replace(found, types=FrozenMap({name: found.types[name] for name in names}))


def plan(
    state: Snapshot,
    *,
    catalog: Catalog = CATALOG,
    policy: Policy | None = None,
    now: datetime = NOW,
    memory: PlanMemory | None = None,
) -> Plan:
    """plan_for with the tiny catalog."""
    return plan_for(state, catalog, policy or Policy(), now, memory=memory)


def types(result: Plan) -> list[str]:
    """The instance types a plan launches, sorted."""
    return sorted(node.offering.instance_type for node in result.launches)


def codes(reasons: Iterable[Reason]) -> list[Code]:
    """The codes of reasons."""
    return [reason.code for reason in reasons]


def why_left(result: Plan, name: str) -> list[Code]:
    """The codes for a pod that is left out."""
    return next(codes(entry.reasons) for entry in result.left_out if entry.pod == f"default/{name}")


def places(result: Plan) -> dict[str, str]:
    """pod -> node."""
    return {p.pod.removeprefix("default/"): p.node for p in result.placements}

"""From a round to the values of its metrics."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.clock import EPOCH
from autoscaler.model.capacity import CapacityBlock, CapacityPool, Mode
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Placement, Plan, Target
from autoscaler.model.provisioned_node import Phase, PhaseChange, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from autoscaler.model.snapshot import Quarantine, Snapshot
from autoscaler.model.spending import Spending
from autoscaler.report.metrics.samples import claim_costs, gauges_of, increments_of
from autoscaler.report.metrics.table import METRICS, Kind, Metric, Sample
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import CounterConsumption, Device, NodeReach, Pool, ResourceSlice
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours
from tests.desk import POOL, A, planned

GPU, NIC = "gpu.nvidia.com", "dra.net"
HOUR = Decimal(1)


def node(name: str, **fields: Any) -> ProvisionedNode:
    return ours(name, **({"pool": "gpu", "offering": A, "phase": Phase.READY, "provider_id": f"sim://{name}"} | fields))


def devices(driver: str, name: str, count: int, *, product: str = "H100") -> ResourceSlice:
    made = tuple(Device(f"{driver[:3]}-{i}", FrozenMap({"productName": product})) for i in range(count))
    return ResourceSlice(f"{name}-{driver}", driver, Pool(name), made, NodeReach(node_name=name))


def claim(name: str, *held: tuple[str, str, str], admin: bool = False, namespace: str = "team-a") -> ResourceClaim:
    results = tuple(AllocatedDevice("r", driver, pool, device, admin_access=admin) for driver, pool, device in held)
    return ResourceClaim(namespace, name, (), allocation=Allocation(results) if held else None)


def world(*claims: ResourceClaim, **fields: Any) -> Snapshot:
    return Snapshot(claims=FrozenMap({c.key: c for c in claims}), **fields)


def values(samples: Iterable[Sample], name: str) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in samples if sample.metric.name == name}


def gauges(snapshot: Snapshot, name: str, plan: Plan | None = None) -> dict[tuple[str, ...], float]:
    return values(gauges_of(snapshot, plan or Plan(), EPOCH), name)


def test_pending_pods_are_told_by_what_becomes_of_them() -> None:
    def left(pod: str, *codes: Code) -> LeftOut:
        return LeftOut(pod, LeftOutVerdict.DOES_NOT_FIT, tuple(map(Reason.of, codes)))

    plan = Plan(
        placements=(
            Placement("a", Target.NEW, "n"),
            Placement("b", Target.NEW, "n"),
            Placement("c", Target.COMING, "m"),
        ),
        left_out=(left("d", Code.POOL_LIMIT, Code.NO_CANDIDATE), left("e", Code.POOL_LIMIT)),
        outside=(left("f", Code.OUT_OF_SCOPE),),
    )
    assert gauges(Snapshot(), "foreslice_pending_pods", plan) == {
        ("NewNode",): 2,
        ("ComingNode",): 1,
        ("ExistingNode",): 0,
        ("PoolLimit",): 2,
        ("OutOfScope",): 1,
    }


def test_devices_are_allocated_or_free() -> None:
    snapshot = world(
        claim("one", (GPU, "n1", "gpu-0"), (GPU, "n1", "gpu-1")),
        claim("all", (GPU, "n1", "gpu-2"), admin=True),
        claim("none"),
        claim("elsewhere", (GPU, "gone", "gpu-0")),
        slices=(devices(GPU, "n1", 8), devices(NIC, "n1", 2, product="ConnectX-7")),
    )
    assert gauges(snapshot, "foreslice_devices") == {
        (GPU, "H100", "allocated"): 2,
        (GPU, "H100", "free"): 6,
        (NIC, "ConnectX-7", "allocated"): 0,
        (NIC, "ConnectX-7", "free"): 2,
    }


def test_partitions_of_one_gpu_are_one_device() -> None:
    draw = (CounterConsumption("gpu-0-counters", FrozenMap({"memory": Quantity.parse("1Gi")})),)
    parts = tuple(
        Device(name, FrozenMap({"productName": "H100"}), consumes_counters=draw) for name in ("whole", "a", "b")
    )
    snapshot = world(
        claim("part", (GPU, "n1", "b")),
        slices=(ResourceSlice("s", GPU, Pool("n1"), parts, NodeReach(node_name="n1")),),
    )
    assert gauges(snapshot, "foreslice_devices") == {(GPU, "H100", "allocated"): 1, (GPU, "H100", "free"): 0}


def test_nodes_and_their_price() -> None:
    snapshot = Snapshot(
        provisioned=(
            node("n1"),
            node("n2"),
            node("n3", phase=Phase.INTENDED, provider_id=""),
            node("n4", phase=Phase.GONE),
            node("n5", offering=replace(A, capacity_type=CapacityType.CAPACITY_BLOCK, usd_per_hour=None)),
        )
    )
    assert gauges(snapshot, "foreslice_nodes") == {
        ("gpu", "on-demand", "Ready"): 2,
        ("gpu", "on-demand", "Intended"): 1,
        ("gpu", "capacity-block", "Ready"): 1,
    }
    assert gauges(snapshot, "foreslice_nodes_usd_per_hour") == {
        ("gpu", "on-demand"): pytest.approx(110.08),
        ("gpu", "capacity-block"): 0,
    }


def test_only_pools_that_observe_propose() -> None:
    plan = Plan(launches=(planned("n1"), planned("n2")))
    observing = Snapshot(pools=(replace(POOL, mode=Mode.OBSERVE), CapacityPool("idle")))
    assert gauges(observing, "foreslice_proposed_usd_per_hour", plan) == {
        ("gpu",): pytest.approx(110.08),
        ("idle",): 0,
    }
    assert gauges(observing, "foreslice_proposed_nodes", plan) == {("gpu",): 2, ("idle",): 0}
    assert gauges(Snapshot(pools=(POOL,)), "foreslice_proposed_usd_per_hour", plan) == {("gpu",): 0}


def test_hours_of_a_block_run_down_to_nothing() -> None:
    block = CapacityBlock("nov", "p5.48xlarge", "a", 2, EPOCH, EPOCH + timedelta(hours=10, minutes=30), pool="gpu")
    over = replace(block, name="oct", ends_at=EPOCH + timedelta(hours=10), reclaim_at=EPOCH - timedelta(hours=1))
    held = node("n1", offering=replace(A, block="nov"))
    snapshot = Snapshot(blocks=(block, over), provisioned=(held,))
    assert gauges(snapshot, "foreslice_block_hours_left") == {("nov", "gpu"): 10.5, ("oct", "gpu"): 0}
    assert gauges(snapshot, "foreslice_block_nodes") == {("nov", "gpu"): 1, ("oct", "gpu"): 0}


def test_guards_and_quarantines() -> None:
    snapshot = Snapshot(
        pools=(POOL,),
        spending=Spending(EPOCH, usd=Decimal("12.5"), binding=("maxUsdPerDay",)),
        quarantines=(
            Quarantine("gpu", "p5", (), until=EPOCH + timedelta(hours=1)),
            Quarantine("gpu", "p4", (), until=EPOCH - timedelta(hours=1)),
            Quarantine("gpu", "p3", (), failed_boots=("x",)),
        ),
    )
    assert gauges(snapshot, "foreslice_spent_today_usd") == {(): 12.5}
    assert gauges(snapshot, "foreslice_quarantined_types") == {("gpu",): 1}
    assert gauges(snapshot, "foreslice_spending_guard_binding") == {
        ("maxUsdPerHour",): False,
        ("maxUsdPerDay",): True,
        ("maxLaunchesPerHour",): False,
    }


# -- what claims cost


@pytest.mark.parametrize(
    ("claims", "cost"),
    [
        pytest.param([claim("c", (GPU, "n1", "gpu-0"))], {"team-a": 55.04 / 8}, id="an eighth"),
        pytest.param([claim("c", *[(GPU, "n1", f"gpu-{i}") for i in range(8)])], {"team-a": 55.04}, id="all"),
        pytest.param(
            [claim("c", *[(GPU, "n1", f"gpu-{i}") for i in range(4)], (NIC, "n1", "dra-0"))],
            {"team-a": 55.04 / 2},
            id="a NIC beside half of the GPUs changes nothing",
        ),
        pytest.param(
            [claim("a", (GPU, "n1", "gpu-0")), claim("b", (GPU, "n1", "gpu-1"), namespace="team-b")],
            {"team-a": 55.04 / 8, "team-b": 55.04 / 8},
            id="two teams",
        ),
        pytest.param(
            [
                claim("a", *[(GPU, "n1", f"gpu-{i}") for i in range(8)]),
                claim("b", *[(NIC, "n1", f"dra-{i}") for i in range(2)], namespace="team-b"),
            ],
            {"team-a": 55.04 / 2, "team-b": 55.04 / 2},
            id="never more than the node",
        ),
        pytest.param([claim("c", (GPU, "n1", "gpu-0"), admin=True)], {}, id="admin access holds nothing"),
        pytest.param([claim("c")], {}, id="not allocated"),
        pytest.param([claim("c", (GPU, "other", "gpu-0"))], {}, id="on a node of somebody else"),
    ],
)
def test_a_claim_costs_its_share_of_the_node(claims: list[ResourceClaim], cost: dict[str, float]) -> None:
    slices = (devices(GPU, "n1", 8), devices(NIC, "n1", 2), devices(GPU, "other", 8))
    found = values(
        claim_costs(world(*claims, provisioned=(node("n1"),), slices=slices), HOUR), "foreslice_claim_cost_usd_total"
    )
    assert found == {(namespace, "gpu"): pytest.approx(usd) for namespace, usd in cost.items()}


def test_prepaid_and_ended_nodes_cost_nothing() -> None:
    held = claim("c", (GPU, "n1", "gpu-0"))
    for nodes in (node("n1", offering=replace(A, usd_per_hour=None)), node("n1", phase=Phase.GONE)):
        assert list(claim_costs(world(held, provisioned=(nodes,), slices=(devices(GPU, "n1", 8),)), HOUR)) == []


# -- what happened


def test_steps_are_counted_once() -> None:
    launched = PhaseChange(Phase.LAUNCHED, EPOCH, "Obtained")
    before = Snapshot(provisioned=(node("n1", history=(launched,)),))
    after = Snapshot(
        provisioned=(
            node(
                "n1",
                history=(
                    launched,
                    PhaseChange(Phase.REGISTERED, EPOCH, "NodeRegistered"),
                    PhaseChange(Phase.READY, EPOCH, "NodeReady"),
                ),
            ),
            node(
                "n2",
                history=(
                    PhaseChange(Phase.LAUNCHING, EPOCH, "CallRecorded"),
                    PhaseChange(Phase.FAILED, EPOCH, "NoOfferingLeft"),
                ),
            ),
        )
    )
    assert values(increments_of(before, after, HOUR), "foreslice_launches_total") == {
        ("gpu", "on-demand", "Ready", "NodeReady"): 1,
        ("gpu", "on-demand", "Failed", "NoOfferingLeft"): 1,
    }
    assert values(increments_of(after, after, HOUR), "foreslice_launches_total") == {}


def test_a_misprediction_that_lasts_is_one() -> None:
    known = Quarantine("gpu", "p5", (), mispredictions=("default/a on i-1",))
    more = replace(known, mispredictions=("default/a on i-1", "default/b on i-1"))
    before, after = Snapshot(quarantines=(known,)), Snapshot(quarantines=(more,))
    assert values(increments_of(before, after, HOUR), "foreslice_mispredictions_total") == {("gpu",): 1}
    assert values(increments_of(after, after, HOUR), "foreslice_mispredictions_total") == {}


# -- the table


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_table_keeps_prometheus_habits(metric: Metric) -> None:
    assert metric.name.startswith("foreslice_")
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.name.endswith("_seconds") == (metric.unit == "seconds")
    assert metric.help.endswith(".")
    assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
    assert not {"pod", "node"} & set(metric.labels)


def test_names_are_unique() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)

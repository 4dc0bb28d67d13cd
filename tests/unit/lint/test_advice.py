"""What is allowed and surprises: each mistake is told with the line to write, and its correction is not."""

from __future__ import annotations

import json

import pytest

from autoscaler.lint.advice import advice, plan_advice
from autoscaler.model.capacity import Baseline, CapacityPool, Limits
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.gang import Gang
from autoscaler.model.pod import Container, Pod, PodAffinityTerm
from autoscaler.model.resource_claim import ClaimConfig, ResourceClaim
from autoscaler.model.snapshot import DaemonSet, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.profile import DriverSet, assumed_profile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import REFERENCE, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeAllocatable, NodeMapping, Pool, ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from tests.builders import CATALOG, GPU, block, claim, gpus, machine, plan, pod, snapshot

CHANNEL = replace(claim("c"), config=(ClaimConfig((), "compute-domain.nvidia.com", "{}"),))
RULE = DeviceTaintRule("broken", taint=Taint("a", "", "NoExecute"))


def told(state: Snapshot) -> list[Diagnostic]:
    return list(advice(state))


def linked(**fields: object) -> Pod:
    return pod("p", "c", **fields)


@pytest.mark.parametrize(("on", "expected"), [(False, 1), (True, 0)])
def test_a_taint_rule_whose_gate_is_off_is_ignored(on: bool, expected: int) -> None:
    found = told(snapshot([], taint_rules=(RULE,), profile=REFERENCE.with_gates(device_taint_rules=on)))
    assert len(found) == expected
    assert all("DRADeviceTaintRules is off" in one.message for one in found)


@pytest.mark.parametrize(
    ("version", "on", "expected"),
    [
        ("1.37", False, "feature gate DRANodeAllocatableResources is off in v1.37.0"),
        ("1.36", True, "v1.36.3 does not have them, they came with 1.37"),
        ("1.37", True, ""),
    ],
)
def test_what_devices_take_of_their_node_is_ignored_where_nobody_counts_it(
    version: str, on: bool, expected: str
) -> None:
    rule = FrozenMap({"cpu": NodeAllocatable(NodeMapping(per_device=Quantity.of(1)))})
    device = Device("d", node_allocatable=rule)
    slices = [ResourceSlice(name, "cpu.example.com", Pool(name), devices=(device,)) for name in ("a", "b")]
    profile = profile_for(version).with_gates(node_allocatable_resources=on)
    found = [(one.subject, one.message) for one in told(snapshot([], slices=tuple(slices), profile=profile))]
    said = f"nodeAllocatableResources of its devices are ignored: {expected}"
    assert found == ([("ResourceSlice a", said)] if expected else [])


@pytest.mark.parametrize(("version", "expected"), [("1.34", 1), ("1.35", 1), ("1.36", 0)])
def test_an_extended_resource_beside_a_claim_whose_gate_is_off(version: str, expected: int) -> None:
    wants = Container("main", FrozenMap({"cpu": Quantity.of(1), "example.com/gpu": Quantity.of(1)}))
    classes = (GPU, DeviceClass("mine", extended_resource_name="example.com/gpu"))
    asks = replace(pod("p", "c"), containers=(wants,))
    found = told(snapshot([asks], [claim("c")], classes=classes, profile=profile_for(version)))
    gated = [one.message for one in found if "DRAExtendedResource" in one.message]
    assert len(gated) == expected
    assert all("DeviceClass mine" in message for message in gated)


@pytest.mark.parametrize(
    ("drivers", "expected"),
    [
        (("nvidia", "dranet"), 0),
        (("nvidia", "aws-net"), 0),
        (("nvidia", "dranet", "aws-net"), 1),
        (("dranet", "aws-net@v1.0.0", "of-my-own"), 1),
    ],
)
def test_two_drivers_for_the_same_network_cards(drivers: tuple[str, ...], expected: int) -> None:
    found = told(snapshot([], pools=(CapacityPool("team", drivers=drivers),)))
    assert len(found) == expected
    assert all("aws-net and dranet publish the same devices" in one.message for one in found)


def test_two_drivers_for_the_same_network_cards_by_daemon_sets() -> None:
    nodes = tuple(
        DaemonSet("net", name, pod(name), drivers=DriverSet((assumed_profile(name),))) for name in ("dranet", "aws-net")
    )
    state = snapshot([], daemon_sets=nodes, pools=(CapacityPool("team"),))
    assert len(told(state)) == 1
    assert told(replace(state, daemon_sets=nodes[:1])) == []


@pytest.mark.parametrize(
    ("schedule", "expected"), [("0 8 * * 1-5", ['"* 8 * * 1-5"']), ("* 8-18 * * 1-5", []), ("nonsense", [])]
)
def test_a_window_of_one_minute(schedule: str, expected: list[str]) -> None:
    pool = CapacityPool("r", baselines=(Baseline(1, schedule),))
    assert [one.next_step.split("write ")[1].split(",")[0] for one in told(snapshot([], pools=(pool,)))] == expected


@pytest.mark.parametrize(
    ("consumer", "expected"),
    [
        pytest.param(linked(), 1, id="nothing"),
        pytest.param(linked(node_selector=FrozenMap({labels.NVIDIA_GPU_CLIQUE: "a.1"})), 0, id="selector"),
        pytest.param(linked(pod_affinity=(PodAffinityTerm(None, labels.NVIDIA_GPU_CLIQUE),)), 0, id="affinity"),
        pytest.param(linked(gang="g"), 0, id="gang"),
        pytest.param(linked(node_selector=FrozenMap({labels.SIMULATED_GPUS: "mock-b"})), 0, id="simulated node"),
    ],
)
def test_a_compute_domain_that_nothing_holds_to_one_nvlink_domain(consumer: Pod, expected: int) -> None:
    gangs = FrozenMap({"default/g": Gang("default", "g", "PodGroup", 1, labels.NVIDIA_GPU_CLIQUE)})
    found = told(snapshot([consumer], [CHANNEL], gangs=gangs))
    assert len(found) == expected
    assert all("nvidia.com/gpu.clique (Exists)" in one.next_step for one in found)


def test_a_prepaid_block_that_no_pod_uses() -> None:
    state = snapshot([pod("p", "c")], [claim("c")], pools=(CapacityPool("team"),), blocks=(block(pool="other"),))
    (found,) = plan_advice(state, plan(state))
    assert (found.subject, "prepaid" in found.message) == ("CapacityBlock november", True)
    used = snapshot([pod("p", "c")], [claim("c")], pools=(CapacityPool("team"),), blocks=(block(),))
    assert list(plan_advice(used, plan(used))) == []


@pytest.mark.parametrize(
    ("limits", "told"), [((1,), True), ((2,), False), ((None,), False), ((1, None), False), ((0, 1), True)]
)
def test_a_block_with_more_machines_than_its_pools_may_have_nodes(limits: tuple[int | None, ...], told: bool) -> None:
    pools = tuple(replace(CapacityPool(f"p{n}"), limits=Limits(nodes=most)) for n, most in enumerate(limits))
    state = snapshot([], [], pools=pools, blocks=(replace(block(), pool="", count=2),))
    found = [one.message for one in plan_advice(state, plan(state))]
    names = " and ".join(f"pool {pool.name}" for pool in pools)
    said = f"has 2 machines, and {names} launches no more than 1 (spec.limits.nodes): the others are paid for"
    assert found == ([f"{said} and never launched"] if told else [])


def test_claims_for_a_part_of_a_gpu_that_get_a_whole_one() -> None:
    part = replace(gpus(), capacity=FrozenMap({"memory": Quantity.parse("4Gi")}))
    state = snapshot([pod("p", "c"), pod("q", "d")], [claim("c", part), claim("d", part)])
    (found,) = plan_advice(state, plan(state))
    assert "consumable-shares=4" in found.next_step
    whole = snapshot([pod("p", "c"), pod("q", "d")], [claim("c"), claim("d")])
    assert list(plan_advice(whole, plan(whole))) == []


def test_an_image_may_lack_the_architecture_of_the_node() -> None:
    arm = replace(machine("arm", CATALOG.get("s1").accelerator, 1, "0.10"), architecture="arm64")
    named = CapacityPool("team", requirements=(Requirement(labels.INSTANCE_TYPE, "In", ("arm",)),))
    state = snapshot([pod("p", "c")], [claim("c")], pools=(named,))
    (found,) = plan_advice(state, plan(state, catalog=Catalog.of([arm])))
    assert "architecture arm64" in found.message
    aware = snapshot([pod("p", "c", node_selector=FrozenMap({labels.ARCHITECTURE: "arm64"}))], [claim("c")])
    aware = replace(aware, pools=(CapacityPool("team"),))
    assert list(plan_advice(aware, plan(aware, catalog=Catalog.of([arm])))) == []


def sharing(strategy: str) -> ResourceClaim:
    parameters = json.dumps({"kind": "GpuConfig", "sharing": {"strategy": strategy}})
    return replace(claim("c"), config=(ClaimConfig((), "gpu.nvidia.com", parameters),))


@pytest.mark.parametrize(
    ("strategy", "drivers", "gates"),
    [
        ("MPS", (), ["MPSSupport"]),
        ("TimeSlicing", (), ["TimeSlicingSettings"]),
        ("TimeSlicing", ("nvidia:MPSSupport=true",), ["TimeSlicingSettings"]),
        ("MPS", ("nvidia:MPSSupport=true", "compute-domain"), []),
        ("Unheard", (), []),
    ],
)
def test_sharing_that_the_driver_refuses_names_the_gate(
    strategy: str, drivers: tuple[str, ...], gates: list[str]
) -> None:
    pools = (CapacityPool("team", drivers=drivers),) if drivers else ()
    state = snapshot([pod("p", "c")], [sharing(strategy)], pools=pools)
    found = [one for one in told(state) if one.field == "spec.devices.config"]
    assert [one.next_step.split("featureGates.")[1].split("=")[0] for one in found] == gates


@pytest.mark.parametrize(
    ("drivers", "profile"),
    [
        ((), "nvidia"),
        (("compute-domain", "nvidia:IMEXDaemonsWithDNSNames=true"), "nvidia:IMEXDaemonsWithDNSNames=true"),
    ],
)
def test_sharing_of_two_kinds_has_one_step(drivers: tuple[str, ...], profile: str) -> None:
    """A pool names each driver once, with all of its options."""
    pools = (CapacityPool("team", drivers=drivers),) if drivers else ()
    claims = [replace(sharing(name), name=name.lower()) for name in ("TimeSlicing", "MPS")]
    state = snapshot([pod("p", "c")], claims, pools=pools)
    steps = {one.next_step for one in told(state) if one.field == "spec.devices.config"}
    assert steps == {
        "install the driver with featureGates.TimeSlicingSettings=true and featureGates.MPSSupport=true, and say so in "
        f"a CapacityPool: spec.drivers.profiles: ['{profile}:TimeSlicingSettings=true:MPSSupport=true']"
    }


def test_each_invalid_configuration_is_told_once_with_all_that_is_wrong() -> None:
    wrong = ['{"apiVersion": "v1", "kind": "Gpu"}', '{"apiVersion": "v1", "kind": "Gpu"}', "[]"]
    claims = [
        replace(claim(f"c{i}"), config=(ClaimConfig((), "gpu.nvidia.com", text),)) for i, text in enumerate(wrong)
    ]
    found = [one for one in told(snapshot([], claims)) if one.field.endswith("opaque.parameters")]
    assert [one.about for one in found] == ["ResourceClaim default/c0 and 1 more", "ResourceClaim default/c2"]
    assert found[0].next_step.startswith(
        "correct this: apiVersion is v1; the driver reads resource.nvidia.com/v1beta1; "
    )
    assert "; kind is Gpu; the driver reads" in found[0].next_step
    assert "correct it" not in str(found[1])


@pytest.mark.parametrize("parameters", ["[]", "null", '{"sharing": 1}', '{"sharing": {"strategy": ["MPS"]}}'])
def test_odd_configurations_are_left_to_the_driver(parameters: str) -> None:
    odd = replace(claim("c"), config=(ClaimConfig((), "gpu.nvidia.com", parameters),))
    assert [one for one in told(snapshot([pod("p", "c")], [odd])) if one.field == "spec.devices.config"] == []


@pytest.mark.parametrize(
    ("namespaces", "admin", "expected"),
    [
        pytest.param({}, True, 1, id="not known"),
        pytest.param({"default": {"other": "true"}}, True, 1, id="without the label"),
        pytest.param({"default": {labels.ADMIN_ACCESS: "true"}}, True, 0, id="allowed"),
        pytest.param({}, None, 0, id="an ordinary claim"),
    ],
)
def test_admin_access_needs_a_label_of_the_namespace(
    namespaces: dict[str, dict[str, str]], admin: bool | None, expected: int
) -> None:
    known = FrozenMap({name: FrozenMap(found) for name, found in namespaces.items()})
    wanted = claim("c", replace(gpus(), admin_access=admin))
    found = told(snapshot([pod("p", "c")], [wanted], namespaces=known))
    assert ["asks for adminAccess" in one.message for one in found] == [True] * expected

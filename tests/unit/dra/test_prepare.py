"""Claims that kube-scheduler would allocate and a driver would refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ClaimConfig, DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fits
from autoscaler.report.reasons import texts_of
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.terms import PrepareRules
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice

CHIPS = 4


def verdict(driver: str, count: int, described: Sequence[CustomDriver] = ()) -> Fits | DoesNotFit:
    node = Node("n1", allocatable=FrozenMap({"pods": Quantity.parse("10")}))
    devices = tuple(Device(f"accel{index}") for index in range(CHIPS))
    slice_ = ResourceSlice("s", driver, Pool("n1"), devices, NodeReach("n1"))
    device_class = DeviceClass("chips", (Selector(f'device.driver == "{driver}"'),))
    claim = ResourceClaim("ns", "c", (DeviceRequest("r", "chips", count=count),))
    pod = Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),))
    snapshot = Snapshot(
        nodes=(node,), slices=(slice_,), classes=(device_class,), claims=FrozenMap({claim.key: claim}), pods=(pod,)
    )
    found = fit_one(pod, "n1", World.of(snapshot, described))
    assert isinstance(found, Fits | DoesNotFit)
    return found


@pytest.mark.parametrize(("count", "fits"), [(CHIPS, True), (CHIPS - 1, False), (1, False)])
def test_a_tpu_claim_takes_the_whole_node(count: int, fits: bool) -> None:
    found = verdict("tpu.google.com", count)
    assert isinstance(found, Fits) is fits
    if isinstance(found, DoesNotFit):
        assert [reason.code for reason in found.reasons] == [Code.PREPARE_REFUSED]
        assert found.reasons[0].detail == {"driver": "tpu.google.com", "taken": count, "published": CHIPS}


def test_other_drivers_share_a_node() -> None:
    assert isinstance(verdict("gpu.nvidia.com", 1), Fits)


def test_a_described_driver_refuses_what_its_description_says() -> None:
    greedy = CustomDriver("pipes", "fabric.acme.com", "v1", (), prepare=PrepareRules(all_devices_of_node=True))
    assert isinstance(verdict("fabric.acme.com", 1), Fits)
    assert isinstance(verdict("fabric.acme.com", CHIPS, [greedy]), Fits)
    assert isinstance(verdict("fabric.acme.com", 1, [greedy]), DoesNotFit)


DOMAINS = "compute-domain.nvidia.com"


def channel_claim(name: str, domain: str, channel: str = "") -> ResourceClaim:
    """A claim for a channel of a ComputeDomain; with `channel`, one that holds it."""
    config = ClaimConfig((), DOMAINS, json.dumps({"kind": "ComputeDomainChannelConfig", "domainID": domain}))
    held = Allocation((AllocatedDevice("r", DOMAINS, "n1", channel),)) if channel else None
    return ResourceClaim("ns", name, (DeviceRequest("r", "channels"),), config=(config,), allocation=held)


@pytest.mark.parametrize(
    ("claims", "label", "other"),
    [
        ([channel_claim("c", "a")], "", None),
        ([channel_claim("c", "a")], "a", None),
        ([channel_claim("c", "a")], "b", "b"),
        ([channel_claim("c", "a"), channel_claim("d", "a", "channel-1")], "", None),
        ([channel_claim("c", "a"), channel_claim("d", "b", "channel-1")], "", "b"),
        ([channel_claim("c", "")], "b", None),
    ],
    ids=["empty node", "same domain", "another label", "same claim", "another claim", "no domain"],
)
def test_a_node_belongs_to_one_compute_domain(claims: list[ResourceClaim], label: str, other: str | None) -> None:
    labels = FrozenMap({"resource.nvidia.com/computeDomain": label} if label else {})
    node = Node("n1", labels=labels, allocatable=FrozenMap({"pods": Quantity.parse("10")}))
    slice_ = ResourceSlice("s", DOMAINS, Pool("n1"), (Device("channel-0"), Device("channel-1")), NodeReach("n1"))
    pod = Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),))
    snapshot = Snapshot(
        nodes=(node,),
        slices=(slice_,),
        classes=(DeviceClass("channels", (Selector(f'device.driver == "{DOMAINS}"'),)),),
        claims=FrozenMap({claim.key: claim for claim in claims}),
        pods=(pod,),
    )
    found = fit_one(pod, "n1", World.of(snapshot))
    if other is None:
        assert isinstance(found, Fits)
    else:
        assert isinstance(found, DoesNotFit)
        assert [reason.code for reason in found.reasons] == [Code.PREPARE_REFUSED]
        assert found.reasons[0].detail == {"driver": DOMAINS, "domain": "a", "other": other}


AMD = "gpu.amd.com"
MODES = {"gpu-0-spx-nps1": "nps1", "gpu-1-spx-nps1": "nps1", "gpu-1-cpx-nps4": "nps4"}


def partition_claim(name: str, *modes: str, held: str = "") -> ResourceClaim:
    """A claim for partitions of memory modes; with `held`, one that holds that device."""
    requests = tuple(
        DeviceRequest(
            f"r{index}",
            "partitions",
            selectors=(Selector(f'device.attributes["{AMD}"].memoryPartition == "{mode}"'),),
        )
        for index, mode in enumerate(modes)
    )
    return ResourceClaim(
        "ns",
        name,
        requests,
        allocation=Allocation((AllocatedDevice("r0", AMD, "n1", held),)) if held else None,
    )


@pytest.mark.parametrize(
    ("claims", "refused"),
    [
        ([partition_claim("c", "nps1")], None),
        ([partition_claim("c", "nps1", "nps1")], None),
        ([partition_claim("c", "nps1", "nps4")], ("nps1", "nps4")),
        ([partition_claim("c", "nps1"), partition_claim("d", "nps1", held="gpu-0-spx-nps1")], None),
        ([partition_claim("c", "nps4"), partition_claim("d", "nps1", held="gpu-0-spx-nps1")], ("nps4", "nps1")),
    ],
    ids=["fresh node", "one mode", "two modes in a claim", "the mode in use", "another mode in use"],
)
def test_a_node_has_one_memory_mode_of_amd_gpus(claims: list[ResourceClaim], refused: tuple[str, str] | None) -> None:
    node = Node("n1", allocatable=FrozenMap({"pods": Quantity.parse("10")}))
    devices = tuple(Device(name, FrozenMap({"memoryPartition": mode})) for name, mode in MODES.items())
    snapshot = Snapshot(
        nodes=(node,),
        slices=(ResourceSlice("s", AMD, Pool("n1"), devices, NodeReach("n1")),),
        classes=(DeviceClass("partitions", (Selector(f'device.driver == "{AMD}"'),)),),
        claims=FrozenMap({claim.key: claim for claim in claims}),
        pods=(Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),)),),
    )
    found = fit_one(snapshot.pods[0], "n1", World.of(snapshot))
    if refused is None:
        assert isinstance(found, Fits)
    else:
        assert isinstance(found, DoesNotFit)
        (reason,) = found.reasons
        assert (reason.code, reason.detail["driver"], reason.detail["attribute"]) == (
            Code.PREPARE_REFUSED, AMD, "memoryPartition",
        )  # fmt: skip
        assert (reason.detail["value"], reason.detail["other"]) == refused


CHANNELS = "compute-domain-default-channel.nvidia.com"


@pytest.mark.parametrize(
    ("device_class", "domain", "refused"),
    [(CHANNELS, None, True), (CHANNELS, "", True), (CHANNELS, "a", False), ("channels", None, False)],
    ids=["no configuration", "no domain", "a domain", "a class that may have a configuration"],
)
def test_a_channel_needs_a_compute_domain(device_class: str, domain: str | None, refused: bool) -> None:
    claim = replace(channel_claim("c", domain or ""), requests=(DeviceRequest("r", device_class),))
    claim = claim if domain is not None else replace(claim, config=())
    pod = Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),))
    snapshot = Snapshot(
        nodes=(Node("n1", allocatable=FrozenMap({"pods": Quantity.parse("10")})),),
        slices=(ResourceSlice("s", DOMAINS, Pool("n1"), (Device("channel-0"),), NodeReach("n1")),),
        classes=(DeviceClass(device_class, (Selector(f'device.driver == "{DOMAINS}"'),)),),
        claims=FrozenMap({claim.key: claim}),
        pods=(pod,),
    )
    found = fit_one(pod, "n1", World.of(snapshot))
    assert isinstance(found, DoesNotFit) is refused
    if isinstance(found, DoesNotFit):
        assert "names a ComputeDomain (domainID)" in texts_of(found.reasons)


NVIDIA = "gpu.nvidia.com"
TOO_MANY_THREADS = {
    "problem": "sharing.mpsConfig.defaultActiveThreadPercentage is 101; it must be a whole number from 0 to 100"
}


def shared_gpu(parameters: dict[str, object], refused_sharing: dict[str, str]) -> Fits | DoesNotFit:
    """The verdict on a claim with this configuration, on a node whose driver refuses these strategies."""
    node = Node("n1", allocatable=FrozenMap({"pods": Quantity.parse("10")}), refused_sharing=FrozenMap(refused_sharing))
    slice_ = ResourceSlice("s", NVIDIA, Pool("n1"), (Device("gpu-0"),), NodeReach("n1"))
    device_class = DeviceClass("gpus", (Selector(f'device.driver == "{NVIDIA}"'),))
    content = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", **parameters}
    config = ClaimConfig((), NVIDIA, json.dumps(content))
    claim = ResourceClaim("ns", "c", (DeviceRequest("r", "gpus"),), config=(config,))
    pod = Pod("ns", "p", containers=(Container("main"),), claims=(PodClaim("c", "c"),))
    snapshot = Snapshot(
        nodes=(node,), slices=(slice_,), classes=(device_class,), claims=FrozenMap({claim.key: claim}), pods=(pod,)
    )
    found = fit_one(pod, "n1", World.of(snapshot))
    assert isinstance(found, Fits | DoesNotFit)
    return found


@pytest.mark.parametrize(
    ("sharing", "off", "expected"),
    [
        pytest.param({"strategy": "MPS"}, {}, None, id="nobody says what the driver refuses"),
        pytest.param({"strategy": "MPS"}, {"TimeSlicing": "TimeSlicingSettings"}, None, id="another strategy"),
        pytest.param(
            {"strategy": "MPS"}, {"MPS": "MPSSupport"}, {"strategy": "MPS", "gate": "MPSSupport"}, id="gate is off"
        ),
        pytest.param(
            {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 101}},
            {},
            TOO_MANY_THREADS,
            id="invalid in every release",
        ),
    ],
)
def test_a_driver_refuses_configurations(
    sharing: dict[str, object], off: dict[str, str], expected: dict[str, str] | None
) -> None:
    found = shared_gpu({"sharing": sharing}, off)
    if expected is None:
        assert isinstance(found, Fits)
    else:
        assert isinstance(found, DoesNotFit)
        assert [(r.code, dict(r.detail)) for r in found.reasons] == [
            (Code.PREPARE_REFUSED, {"driver": NVIDIA, **expected})
        ]

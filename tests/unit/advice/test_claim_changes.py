"""Changes of claims that say the same in the words of the driver."""

from __future__ import annotations

import json

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import ClaimConfig, DeviceRequest
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advised.remarks import result_text
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

H100 = shipped("a3-highgpu-1g", "a3-highgpu-8g")


@pytest.mark.parametrize(
    ("amount", "expected"), [pytest.param("4Gi", True, id="there is as much"), pytest.param("4Ti", False, id="no")]
)
def test_a_capacity_is_named_without_the_domain_of_its_driver(amount: str, expected: bool) -> None:
    wanted = replace(gpus(), capacity=FrozenMap({"gpu.nvidia.com/memory": Quantity.parse(amount)}))
    given, policy, catalog = (
        snapshot([pod("p", "c")], [claim("c", wanted)]),
        Policy(considered=100),
        shipped("g6.xlarge"),
    )
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert (ChangeKind.RENAME_CAPACITY in {entry.change.kind for entry in found}) == expected
    text = "write memory instead of gpu.nvidia.com/memory in capacity.requests → 1 × g6.xlarge"
    assert any(text in line for line in advice_lines(found)) == expected


@pytest.mark.parametrize(
    ("attribute", "dropped"),
    [
        pytest.param("uuid", False, id="one device"),
        pytest.param("type", False, id="a whole card or a part"),
        pytest.param("productName", True, id="a model"),
    ],
)
def test_nobody_is_told_to_take_another_device_than_the_one_they_name(attribute: str, dropped: bool) -> None:
    wanted = replace(gpus(), selectors=(Selector(f'device.attributes["gpu.nvidia.com"].{attribute} == "GPU-4711"'),))
    given, policy = snapshot([pod("p", "c")], [claim("c", wanted)]), Policy(considered=100)
    catalog = shipped("g6.xlarge")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert (ChangeKind.DROP_CONDITION in {entry.change.kind for entry in found}) == dropped


@pytest.mark.parametrize(
    ("count", "expected"),
    [pytest.param(1, "; a3-highgpu-1g would do, never sold on demand", id="one"), pytest.param(8, "", id="all eight")],
)
def test_a_promised_machine_says_which_smaller_ones_are_never_sold_on_demand(count: int, expected: str) -> None:
    selecting = pod("p", "c", node_selector=FrozenMap({"team": "a"}))
    given, policy, catalog = snapshot([selecting], [claim("c", gpus(count))]), Policy(considered=100), H100
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    assert [result_text(entry.result) for entry in found] == [f"1 × a3-highgpu-8g (on-demand), 88.49 $/h{expected}"]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param('["dra.net"].cloudNetwork', [], id="a name of before"),
        pytest.param('["gce.dra.net"].networkName', ["a3-highgpu-8g"], id="of one cloud"),
    ],
)
def test_what_one_cloud_publishes_leads_to_no_machine_of_another(reads: str, expected: list[str]) -> None:
    nic = DeviceClass("nic", (Selector('device.driver == "dra.net"'),))
    wanted = DeviceRequest("nic", "nic", selectors=(Selector(f'device.attributes{reads} == "training"'),))
    given, policy = snapshot([pod("p", "c")], [claim("c", wanted)], classes=(nic,)), Policy(considered=100)
    catalog = shipped("g6.8xlarge", "a3-highgpu-8g")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert [ref.instance_type for entry in found for ref, _ in entry.result.launches] == expected
    assert all("foreslice.dev/cloud In [gcp]" in line for line in advice_lines(found) if "networkName" in line)


@pytest.mark.parametrize(
    ("config", "step"),
    [
        (
            {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}},
            "write apiVersion resource.nvidia.com/v1beta1 instead of gpu.nvidia.com/v1alpha1 in spec.devices.config",
        ),
        ({"kind": "Gpu"}, "drop spec.devices.config"),
    ],
)
def test_a_configuration_of_another_version_is_corrected_rather_than_dropped(
    config: dict[str, object], step: str
) -> None:
    text = json.dumps({"apiVersion": "gpu.nvidia.com/v1alpha1", **config})
    asking = replace(claim("c"), config=(ClaimConfig((), "gpu.nvidia.com", text),))
    given, catalog, policy = snapshot([pod("p", "c")], [asking]), shipped("g6.xlarge"), Policy(considered=100)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert advice_lines(found)[0].startswith(f"claim default/c: {step}, which its driver refuses → 1 × g6.xlarge")


def test_a_claim_without_the_configuration_that_its_driver_refuses() -> None:
    config = ClaimConfig(
        (), "gpu.nvidia.com", '{"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}'
    )
    given, catalog = snapshot([pod("p", "c")], [replace(claim("c"), config=(config,))]), shipped("g6.xlarge")
    policy = Policy(considered=100)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert [line.partition(" (")[0] for line in advice_lines(found)] == [
        "claim default/c: drop spec.devices.config, which its driver refuses → 1 × g6.xlarge"
    ]

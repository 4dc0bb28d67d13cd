"""Drivers described in a catalog file."""

from __future__ import annotations

from pathlib import Path

import pytest

from instance_catalog.drivers.facts import builtin_device_classes, prepare_rules
from instance_catalog.drivers.profile import DriverProfileError, parse_driver_set
from instance_catalog.drivers.terms import PrepareRules
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Device,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    RuntimeOnly,
    Version,
)
from instance_catalog.prediction.predict import node_labels, predict, runs_on
from instance_catalog.types.catalog import Catalog

PIPES = """
drivers:
  - name: pipes
    driver: fabric.acme.com
    release: v1.2.0
    nodeLabels: {acme.com/pipes: "true"}
    prepare: {allDevicesOfNode: true}
    deviceClasses:
      - name: pipes.acme.com
        selectors: ['device.driver == "fabric.acme.com"']
        extendedResourceName: acme.com/pipe
    devices:
      - forEach: accelerator
        where: {vendor: NVIDIA}
        name: pipe-{index}
        attributes:
          index: {int: "{index}"}
          model: {string: "{vendor} {model}"}
          capability: {version: "{cudaComputeCapability}"}
          healthy: {bool: true}
          lanes: {int: 16}
          serial: {string: null}
          numaNode: {int: "{numaNode}"}
          resource.kubernetes.io/pcieRoot: {string: "{pcieRoot}"}
        capacity: {memory: "{memory}", bandwidth: 400G}
        allowMultipleAllocations: true
      - forEach: networkCard
        where: {kind: efa}
        name: port-{index}
        attributes: {fast: {bool: "{rdma}"}, resource.kubernetes.io/pcieRoot: {string: "{pcieRoot}"}}
      - forEach: node
        name: controller
        attributes: {type: {string: "{cloud}/{instanceType}"}}
        capacity: {cpus: "{vcpu}"}
        allowMultipleAllocations: true
        nodeAllocatableResources:
          cpu: {mapping: {capacityKey: cpus, capacityMultiplier: 1}}
          memory: {overhead: {perPod: 1.5Gi}}
"""
ROOT = "resource.kubernetes.io/pcieRoot"


def catalog(tmp_path: Path, text: str = PIPES) -> Catalog:
    (tmp_path / "drivers.yaml").write_text(text)
    return load_catalog(extra_dirs=[tmp_path])


def devices_of(
    found: Catalog, name: str, drivers: str = "pipes", kubernetes: KubernetesProfile = REFERENCE
) -> dict[str, Device]:
    machine = found.get(name)
    driver_set = parse_driver_set(drivers, custom=found.drivers)
    pieces = predict(machine, driver_set, kubernetes=kubernetes, node_name="n")
    return {device.name: device for piece in pieces for device in piece.devices}


def test_templates_are_filled_for_every_device(tmp_path: Path) -> None:
    devices = devices_of(catalog(tmp_path), "p4d.24xlarge")
    assert list(devices) == [*(f"pipe-{i}" for i in range(8)), *(f"port-{i}" for i in range(4)), "controller"]
    assert dict(devices["port-1"].attributes) == {"fast": True, ROOT: "pci0000:20"}
    third = devices["pipe-2"]
    known = {name: value for name, value in third.attributes.items() if not isinstance(value, RuntimeOnly)}
    assert known == {
        "index": 2,
        "model": "NVIDIA A100",
        "capability": Version("8.0.0"),
        "healthy": True,
        "lanes": 16,
        "numaNode": 0,
        ROOT: "pci0000:20",
    }
    assert {name: str(c.value) for name, c in third.capacity.items()} == {"memory": "40Gi", "bandwidth": "400G"}
    assert third.allow_multiple_allocations
    assert devices["controller"].attributes["type"] == "aws/p4d.24xlarge"
    assert str(devices["controller"].capacity["cpus"].value) == "96"


def test_what_is_not_known_is_the_token_of_the_other_drivers(tmp_path: Path) -> None:
    found = catalog(tmp_path)
    devices = devices_of(found, "p5.48xlarge", "pipes,nvidia,dranet")
    assert isinstance(devices["pipe-0"].attributes["serial"], RuntimeOnly)
    assert devices["pipe-0"].attributes["serial"] != devices["pipe-1"].attributes["serial"]
    for i in range(8):
        assert devices[f"pipe-{i}"].attributes[ROOT] == devices[f"gpu-{i}"].attributes[ROOT]


def test_memory_of_the_cloud_alone_is_a_guess(tmp_path: Path) -> None:
    device = devices_of(catalog(tmp_path), "g7.2xlarge")["pipe-0"]
    assert device.capacity["memory"].guess


def test_a_described_driver_is_named_like_a_shipped_one(tmp_path: Path) -> None:
    found = catalog(tmp_path)
    driver_set = parse_driver_set("nvidia,pipes", custom=found.drivers)
    assert driver_set.text == "nvidia,pipes"
    assert driver_set.label == "nvidia v0.4.1 + pipes v1.2.0"
    (piece, *_) = predict(found.get("g6.xlarge"), driver_set, kubernetes=profile_for("1.36"))[1:]
    assert (piece.driver, piece.name.startswith("00000-fabric.acme.com-")) == ("fabric.acme.com", True)
    assert node_labels(found.get("g6.xlarge"), driver_set)["acme.com/pipes"] == "true"
    note = parse_driver_set("pipes@v1.9.0", custom=found.drivers).notes
    assert note == ("pipes v1.9.0 is not known; predicting as v1.2.0, the nearest release that is",)
    with pytest.raises(DriverProfileError, match="did you mean 'pipes'"):
        parse_driver_set("pipe", custom=found.drivers)


def test_what_it_refuses_and_its_classes_are_those_of_the_description(tmp_path: Path) -> None:
    found = catalog(tmp_path)
    described = tuple(found.drivers.values())
    assert prepare_rules("fabric.acme.com", described) == PrepareRules(all_devices_of_node=True)
    assert prepare_rules("fabric.acme.com") == PrepareRules()
    assert prepare_rules("tpu.google.com", described) == prepare_rules("tpu.google.com")
    classes = {row.name: row for row in builtin_device_classes(profile_for("1.36"), described)}
    assert classes["pipes.acme.com"].selectors == ('device.driver == "fabric.acme.com"',)
    assert classes["pipes.acme.com"].extended_resource_name == "acme.com/pipe"
    assert classes.keys() > {row.name for row in builtin_device_classes(profile_for("1.36"))}


@pytest.mark.parametrize("on", [True, False])
def test_what_devices_take_of_their_node_is_published_with_the_gate(tmp_path: Path, *, on: bool) -> None:
    kubernetes = profile_for("1.37.1").with_gates(node_allocatable_resources=on)
    devices = devices_of(catalog(tmp_path), "p4d.24xlarge", kubernetes=kubernetes)
    expected = {
        "cpu": NodeAllocatable(NodeMapping("cpus", Quantity.of(1))),
        "memory": NodeAllocatable(overhead=NodeOverhead(Quantity.parse("1536Mi"))),
    }
    assert devices["controller"].node_allocatable == (expected if on else {})
    assert devices["pipe-0"].node_allocatable == {}


def test_a_driver_without_matching_hardware_publishes_nothing(tmp_path: Path) -> None:
    only_amd = PIPES.split("      - forEach: networkCard")[0].replace("vendor: NVIDIA", "vendor: AMD")
    found = catalog(tmp_path, only_amd)
    profile = parse_driver_set("pipes", custom=found.drivers).profiles[0]
    assert not runs_on(found.get("p5.48xlarge"), profile)
    assert runs_on(found.get("g4ad.xlarge"), profile)


def test_every_type_knows_the_drivers_of_its_catalog(tmp_path: Path) -> None:
    found = catalog(tmp_path)
    assert found.get("p5.48xlarge").custom_drivers == found.drivers
    assert found.digest != load_catalog().digest


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "name: pipes",
            "name: nvidia",
            ":3: driver nvidia: name: found 'nvidia'; allowed: a name of its own; compute-domain,",
        ),
        (
            "driver: fabric.acme.com",
            "driver: tpu.google.com",
            ":4: driver pipes: driver: found 'tpu.google.com'; allowed: a driver that is not shipped with Foreslice",
        ),
        (
            "- name: pipes.acme.com",
            "- name: gpu.nvidia.com",
            ":9: driver pipes: deviceClasses[0].name: found 'gpu.nvidia.com'; allowed: a name that no shipped",
        ),
        ("selectors: ['", "selector: ['", ":10: driver pipes: deviceClasses[0].selector: found an unknown field;"),
        ("acme.com/pipe\n", "pipe\n", ":11: driver pipes: deviceClasses[0].extendedResourceName: found 'pipe'"),
        ("allDevicesOfNode: true", "allDevices: true", ":7: driver pipes: prepare.allDevices: found an unknown field;"),
        ("driver: fabric.acme.com", "driver: Fabric", ":4: driver pipes: driver: found 'Fabric'; allowed: text like"),
        (
            "where: {vendor: NVIDIA}",
            "where: {kind: efa}",
            "where: 'kind' is not a field here; there are vendor, model,",
        ),
        ("name: pipe-{index}", "name: pipe", "a name with {index}, so that no two devices have the same"),
        ("{vendor} {model}", "{vendor} {modle}", "attribute model: 'modle' is not a field here; there are"),
        (
            '{int: "{index}"}',
            '{int: "{model}"}',
            "attribute index: {model} is a string; fields of kind int: vcpu, index,",
        ),
        ("lanes: {int: 16}", "lanes: {int: many}", "attribute lanes: a value of kind int, or one field"),
        ("lanes: {int: 16}", "lanes: {int: 16, string: x}", "exactly one of string, int, bool and version"),
        ("bandwidth: 400G", "bandwidth: fast", "capacity bandwidth: a Kubernetes quantity such as 80Gi, or {memory}"),
        ("bandwidth: 400G", 'bandwidth: "{index}"', "capacity bandwidth: a quantity, or one of {memory}, {vcpu}"),
        ("capacityKey: cpus, ", "capacityKey: cores, ", "capacityKey: 'cores' is not a field here; there are cpus"),
        ("capacityKey: cpus, ", "", "either deviceMultiplier, or capacityKey with capacityMultiplier"),
        (", capacityMultiplier: 1}", "}", "capacityKey and capacityMultiplier together"),
        ("capacityMultiplier: 1}", "capacityMultiplier: 0}", "nodeAllocatableResources cpu: a quantity above 0"),
        ("capacityMultiplier: 1}", "capacityMultiplier: x}", "nodeAllocatableResources cpu: a Kubernetes quantity"),
        ("perPod: 1.5Gi", "perPod: -1", "nodeAllocatableResources memory: a quantity of at least 0"),
        ("{perPod: 1.5Gi}", "{}", "perPod or perContainer, such as {perPod: 512Mi}"),
        ("{overhead: {perPod: 1.5Gi}}", "{}", "mapping or overhead"),
        ("memory: {overhead", "storage: {overhead", "nodeAllocatableResources.storage"),
        (
            "allowMultipleAllocations: true\n        nodeAlloc",
            "nodeAlloc",
            "allowMultipleAllocations: true with capacityKey: otherwise an allocation says nothing of capacities",
        ),
        ("name: port-{index}", "name: pipe-{index}", "another name for every device template"),
        ("name: controller", "name: hf-{index}", "name: 'hf-{index}' without a field in braces: forEach: node makes"),
        ("forEach: networkCard", "forEach: card", "allowed: 'accelerator', 'networkCard' or 'node'"),
        ("release: v1.2.0", "relase: v1.2.0", "did you mean 'release'?"),
    ],
)
def test_a_description_with_a_defect_names_place_and_way_out(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    assert before in PIPES
    with pytest.raises(CatalogError) as error:
        catalog(tmp_path, PIPES.replace(before, after, 1))
    assert message in str(error.value)
    assert "drivers.yaml:" in str(error.value)


def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "slices.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    devices = devices_of(catalog(tmp_path, example), "p5.48xlarge", "nvidia,pipes")
    assert [name for name in devices if name.startswith("pipe-")] == [f"pipe-{i}" for i in range(8)]

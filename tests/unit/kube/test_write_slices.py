"""ResourceSlices as manifests: every field, and back."""

from __future__ import annotations

import pytest

from autoscaler.errors import InternalError
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.writing.slices import slice_manifest
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    ListValue,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    Pool,
    RequestPolicy,
    ResourceSlice,
    RuntimeOnly,
    Unset,
    ValidRange,
    Version,
)
from instance_catalog.kubernetes.taint import Taint

ATTRIBUTES: dict[str, AttributeValue] = {
    "type": "gpu",
    "index": 3,
    "ecc": False,
    "driverVersion": Version("580.126.9"),
    "numaNodes": ListValue("int", (0, 1)),
    "versions": ListValue("version", (Version("1.0.0"),)),
}


def quantity(text: str) -> Quantity:
    return Quantity.parse(text)


def piece(*devices: Device, **fields: object) -> ResourceSlice:
    known: dict[str, object] = {"pool": Pool("n1", 1, 1), "reach": NodeReach(node_name="n1"), **fields}
    return ResourceSlice(name="s", driver="gpu.example.com", devices=devices, **known)  # type: ignore[arg-type]


GI = quantity("1Gi")
SELECTOR = NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("a", "b")), Requirement("gpu", "Exists")), ()),))
SLICES = {
    "attributes of every kind": piece(Device("d", FrozenMap(ATTRIBUTES))),
    "amounts of the node": piece(
        Device(
            "d",
            node_allocatable=FrozenMap(
                {
                    "cpu": NodeAllocatable(NodeMapping("acme.com/cores", quantity("2"))),
                    "hugepages-2Mi": NodeAllocatable(overhead=NodeOverhead(quantity("2Mi"), quantity("4Mi"))),
                    "memory": NodeAllocatable(NodeMapping(per_device=GI), NodeOverhead(per_pod=GI)),
                }
            ),
        )
    ),
    "capacity with range": piece(
        Device(
            "d",
            capacity=FrozenMap(
                {
                    "memory": Capacity(
                        quantity("80Gi"),
                        RequestPolicy(GI, (), ValidRange(GI, quantity("80Gi"), GI)),
                    ),
                    "shares": Capacity(quantity("4"), RequestPolicy(quantity("1"), (quantity("1"), quantity("2")))),
                }
            ),
            allow_multiple_allocations=True,
        )
    ),
    "counters": piece(shared_counters=(CounterSet("set", FrozenMap({"b": quantity("2"), "a": quantity("1")})),)),
    "consumption": piece(
        Device("d", consumes_counters=(CounterConsumption("set", FrozenMap({"a": quantity("1")})),))
    ),
    "taints and binding": piece(
        Device(
            "d",
            taints=(Taint("k", "v", "NoSchedule"), Taint("k2", "", "NoExecute")),
            binding_conditions=("ready",),
            binding_failure_conditions=("failed",),
            binds_to_node=True,
        )
    ),
    "node selector": piece(Device("d"), reach=NodeReach(node_selector=SELECTOR)),
    "all nodes": piece(Device("d"), reach=NodeReach(all_nodes=True)),
    "per device": piece(
        Device("d", reach=NodeReach(node_name="n2")), reach=NodeReach(), per_device_node_selection=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("written", SLICES.values(), ids=SLICES)
def test_what_is_written_reads_back_as_the_same_value(written: ResourceSlice) -> None:
    assert parse_resource_slice(slice_manifest(written)) == written


def test_manifest_of_a_small_slice() -> None:
    manifest = slice_manifest(
        piece(Device("gpu-0", FrozenMap({"type": "gpu"}), FrozenMap({"memory": Capacity(quantity("81559Mi"))}))),
        node_uid="uid-1",
        placeholders=["uuid", "gpu-0/pcieRoot"],
    )
    assert manifest == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": "s",
            "annotations": {"foreslice.dev/placeholders": "uuid,gpu-0/pcieRoot"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1", "controller": True}],
        },
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n1",
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"type": {"string": "gpu"}},
                    "capacity": {"memory": {"value": "81559Mi"}},
                }
            ],
        },
    }


@pytest.mark.parametrize("value", [RuntimeOnly("string", "node:gpu-0/uuid"), Unset()], ids=["token", "unset"])
def test_values_without_a_form_in_the_api_are_refused(value: AttributeValue) -> None:
    with pytest.raises(InternalError, match="attribute uuid"):
        slice_manifest(piece(Device("d", FrozenMap({"uuid": value}))))

"""Which machines count as publishing the same devices."""

from __future__ import annotations

import pytest

from autoscaler.planning.supply.device_signature import signature_of
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    Device,
    NodeReach,
    Pool,
    ResourceSlice,
)
from instance_catalog.prediction.tokens import catalog_gap, of_unit, on_node

ROOT = "resource.kubernetes.io/pcieRoot"


def machine(*roots: AttributeValue, memory: str = "80Gi") -> tuple[ResourceSlice, ...]:
    """A GPU on each of these PCI roots."""
    capacity = FrozenMap({"memory": Capacity(Quantity.parse(memory))})
    devices = tuple(Device(f"gpu-{i}", FrozenMap({ROOT: root}), capacity) for i, root in enumerate(roots))
    return (ResourceSlice("s", "gpu.nvidia.com", Pool("node"), devices, NodeReach(node_name="node")),)


def gap(name: str, thing: str = "pcieRoot") -> AttributeValue:
    return catalog_gap("string", name, thing)


def test_names_of_unknown_values_do_not_count() -> None:
    ours, theirs = machine(gap("a-1"), gap("a-2"), gap("a-1")), machine(gap("b-7"), gap("b-3"), gap("b-7"))
    assert signature_of(ours) is signature_of(theirs)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(machine(gap("a"), gap("a")), id="one root instead of two"),
        pytest.param(machine(gap("a"), on_node("string", "b")), id="known at run time"),
        pytest.param(machine(of_unit("string", "a"), gap("b")), id="shared with other nodes"),
        pytest.param(machine(catalog_gap("int", "a"), gap("b")), id="a number"),
        pytest.param(machine(catalog_gap("string", "a", one_of=("x", "y")), gap("b")), id="one of two"),
        pytest.param(machine("pci0000:00", gap("b")), id="known"),
        pytest.param(machine(gap("a"), gap("b"), memory="85899345920"), id="a quantity written in another way"),
        pytest.param(machine(gap("a")), id="fewer"),
    ],
)
def test_everything_else_counts(other: tuple[ResourceSlice, ...]) -> None:
    kept = signature_of(machine(gap("a"), gap("b")))
    assert signature_of(other) is not kept


def test_true_is_not_one() -> None:
    kept = signature_of(machine(True))
    assert signature_of(machine(True)) is kept
    assert signature_of(machine(1)) is not kept

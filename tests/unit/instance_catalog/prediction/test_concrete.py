"""Tokens: whose they are, and the values that replace them."""

from __future__ import annotations

import re

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import AttributeValue, ResourceSlice, RuntimeOnly
from instance_catalog.prediction.concrete import for_node, make_concrete, placeholder_names
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.tokens import catalog_gap, of_unit, on_node, scope_of, scoped
from tests.unit.instance_catalog.prediction import machines

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


def slices(drivers: str = "nvidia:dynamic-mig,compute-domain,dranet", node: str = "n1") -> tuple[ResourceSlice, ...]:
    return predict(machines.h100x8(), parse_driver_set(drivers), kubernetes=profile_for("1.36"), node_name=node)


def values(of: tuple[ResourceSlice, ...]) -> list[tuple[str, str, AttributeValue]]:
    """(device, attribute, value)"""
    return [(d.name, name, value) for piece in of for d in piece.devices for name, value in d.attributes.items()]


def tokens(of: tuple[ResourceSlice, ...]) -> set[RuntimeOnly]:
    return {value for _, _, value in values(of) if isinstance(value, RuntimeOnly)}


def test_tokens_of_two_nodes_differ() -> None:
    shared = tokens(slices(node="n1")) & tokens(slices(node="n2"))
    assert {scope_of(token) for token in shared} == {"catalog"}
    assert {scope_of(token) for token in tokens(slices())} == {"catalog", "node"}


def test_tokens_of_a_capacity_unit_and_gaps_of_the_catalog_are_shared_by_nodes() -> None:
    for token in (of_unit("string", "domain", "clique"), catalog_gap("string", "t", "productName")):
        assert scoped(token, "n1") == scoped(token, "n2") == token
    node_token = on_node("string", "gpu-0", "uuid")
    assert scoped(scoped(node_token, "n1"), "n2") == scoped(node_token, "n2")
    assert scope_of(scoped(node_token, "n1")) == "node"


def test_a_prediction_moves_to_another_node_as_a_whole() -> None:
    moved = for_node(slices(node="n1"), "n2")
    assert moved == slices(node="n2")
    assert {(s.pool.name, s.reach.node_name) for s in moved} == {("n2", "n2")}
    assert moved[0].name.startswith("00000-gpu.nvidia.com-n2-")


def test_node_names_that_look_like_drivers_do_not_confuse_slice_names() -> None:
    moved = for_node(for_node(slices(), "gpu"), "n3")
    assert moved == slices(node="n3")


def test_concrete_values_are_equal_exactly_where_tokens_are() -> None:
    predicted = slices()
    made = make_concrete(predicted, node_name="n1", seed="uid")
    assert tokens(made) == set()
    of_token: dict[RuntimeOnly, AttributeValue] = {}
    for (_, _, before), (_, _, after) in zip(values(predicted), values(made), strict=True):
        if isinstance(before, RuntimeOnly):
            assert of_token.setdefault(before, after) == after
        else:
            assert after == before
    # There are only two NUMA nodes to choose from.
    distinct = [v for token, v in of_token.items() if "numaNode" not in token.group]
    assert len(set(map(str, distinct))) == len(distinct) > 40


def test_concrete_values_depend_on_node_and_seed_only() -> None:
    first = make_concrete(slices(), node_name="n1", seed="a")
    assert first == make_concrete(tuple(slices()), node_name="n1", seed="a")
    assert first != make_concrete(slices(), node_name="n1", seed="b")
    assert first != make_concrete(slices(), node_name="n2", seed="a")


def test_concrete_values_look_like_the_real_ones() -> None:
    made = make_concrete(slices("nvidia:mig=all-balanced,dranet"), node_name="n1")
    found = {(device, name): value for device, name, value in values(made)}
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    mig = "gpu-0-mig-3g40gb-9-4"
    assert re.fullmatch(f"MIG-{uuid}", str(found[mig, "uuid"]))
    assert re.fullmatch(f"GPU-{uuid}", str(found[mig, "parentUUID"]))
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.0", str(found[mig, "resource.kubernetes.io/pciBusID"]))
    assert found[mig, PCIE_ROOT] == "pci0000:44"
    assert re.fullmatch(r"pci0000:[0-9a-f]{2}", str(found["efa-04", PCIE_ROOT]))
    assert found["efa-04", PCIE_ROOT] == found["efa-05", PCIE_ROOT] == found["gpu-1-mig-3g40gb-9-4", PCIE_ROOT]
    assert found["efa-04", PCIE_ROOT] != "pci0000:44"


def test_nodes_of_one_unit_get_the_same_unit_wide_values() -> None:
    machine = machines.machine("a3", machines.H100, 1, cloud="gcp", cards=(machines.NetworkCard("gvnic"),))
    predicted = predict(machine, parse_driver_set("dranet"), kubernetes=profile_for("1.36"))
    blocks = [
        make_concrete(predicted, node_name=node, seed=node, unit=unit)[0].devices[0].attributes["gce.dra.net/block"]
        for node, unit in (("n1", "u1"), ("n2", "u1"), ("n3", "u2"))
    ]
    assert blocks[0] == blocks[1] != blocks[2]


def test_placeholders_name_the_attribute_or_the_device() -> None:
    whole, *_ = slices("nvidia,dranet")
    assert placeholder_names(whole) == (
        "addressingMode",
        "cudaDriverVersion",
        "driverVersion",
        *(f"gpu-{i}/{PCIE_ROOT}" for i in range(1, 8)),
        "resource.kubernetes.io/pciBusID",
        "uuid",
    )

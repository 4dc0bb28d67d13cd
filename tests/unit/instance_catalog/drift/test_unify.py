"""Binding what only the node knows, and listing what differs after that."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drift.compare import Aspect, Change, SeveralNodesError, unify
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Capacity,
    Device,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    Pool,
    ResourceSlice,
    RuntimeOnly,
    Version,
)
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import predict

DRIVER = "gpu.example.org"


def device(name: str, **attributes: object) -> Device:
    return Device(name, FrozenMap(attributes))  # type: ignore[arg-type]  # attribute values of every kind


def slices(
    *devices: Device, node: str = "real", generation: int = 1, driver: str = DRIVER
) -> tuple[ResourceSlice, ...]:
    return (ResourceSlice(f"{node}-x", driver, Pool(node, generation), devices, NodeReach(node_name=node)),)


def taking(name: str, capacity: str) -> Device:
    rule = NodeAllocatable(NodeMapping(capacity, Quantity.of(1)), NodeOverhead(Quantity.of(1)))
    return replace(device(name), node_allocatable=FrozenMap({"cpu": rule}))


def token(group: str) -> RuntimeOnly:
    return RuntimeOnly("string", group)


def differences(predicted: tuple[ResourceSlice, ...], published: tuple[ResourceSlice, ...]) -> list[tuple[str, ...]]:
    return [(d.change.value, d.aspect.value, d.device, d.field) for d in unify(predicted, published).differences]


CASES = {
    "a token takes the value": ([device("a", uuid=token("node:a/uuid"))], [device("a", uuid="u1")], []),
    "a group has one value": (
        [device("a", root=token("node:0/r")), device("b", root=token("node:0/r"))],
        [device("a", root="r1"), device("b", root="r2")],
        [("different", "attribute", "b", "root")],
    ),
    "two groups never share a value": (
        [device("a", root=token("node:0/r")), device("b", root=token("node:1/r"))],
        [device("a", root="r1"), device("b", root="r1")],
        [("different", "attribute", "b", "root")],
    ),
    "a token is none of the known values": (
        [device("a", root="r1"), device("b", root=token("node:1/r"))],
        [device("a", root="r1"), device("b", root="r1")],
        [("different", "attribute", "b", "root")],
    ),
    "a catalog gap may be any value": (
        [device("a", root="r1"), device("b", root=token("catalog:b/r")), device("c", root=token("catalog:c/r"))],
        [device("a", root="r1"), device("b", root="r1"), device("c", root="r1")],
        [],
    ),
    "a token has a kind": (
        [device("a", uuid=token("node:a/uuid"))],
        [device("a", uuid=7)],
        [("different", "attribute", "a", "uuid")],
    ),
    "true is not 1": ([device("a", x=True)], [device("a", x=1)], [("different", "attribute", "a", "x")]),
    "a version is not its text": (
        [device("a", v=Version("1.0.0"))],
        [device("a", v="1.0.0")],
        [("different", "attribute", "a", "v")],
    ),
    "own domain may be written": ([device("a", x=1)], [Device("a", FrozenMap({f"{DRIVER}/x": 1}))], []),
    "missing and extra attributes": (
        [device("a", x=1)],
        [device("a", y=1)],
        [("missing", "attribute", "a", "x"), ("extra", "attribute", "a", "y")],
    ),
    "missing and extra devices": (
        [device("a", x=1), device("b", x=1)],
        [device("a", x=1), device("c", x=2)],
        [("missing", "device", "b", ""), ("extra", "device", "c", "")],
    ),
    "a made-up name is bound to the likest device": (
        [device("nic-0", kind="n", root="r1"), device("nic-1", kind="n", root="r2")],
        [device("pci-9", kind="n", root="r1"), device("pci-1", kind="n", root="r2")],
        [],
    ),
    "the order of devices is of no account": (
        [device("a", x=1), device("b", x=2)],
        [device("b", x=2), device("a", x=1)],
        [],
    ),
    "taints": (
        [device("a")],
        [replace(device("a"), taints=(Taint("gpu-lost"),))],
        [("extra", "device", "a", "taints")],
    ),
    "amounts of the node": (
        [taking("cores", "cores"), taking("same", f"{DRIVER}/cores"), device("c")],
        [taking("cores", "sockets"), taking("same", "cores"), taking("c", "cores")],
        [
            ("extra", "device", "c", "nodeAllocatableResources"),
            ("different", "device", "cores", "nodeAllocatableResources"),
        ],
    ),
    "a capacity": (
        [Device("a", capacity=FrozenMap({"memory": Capacity(Quantity.parse("40Gi"), guess=True)}))],
        [Device("a", capacity=FrozenMap({"memory": Capacity(Quantity.parse("39Gi"))}))],
        [("different", "capacity", "a", "memory")],
    ),
    "a right guess": (
        [Device("a", capacity=FrozenMap({"memory": Capacity(Quantity.parse("40Gi"), guess=True)}))],
        [Device("a", capacity=FrozenMap({"memory": Capacity(Quantity.parse("40960Mi"))}))],
        [],
    ),
}


@pytest.mark.parametrize(("predicted", "published", "expected"), CASES.values(), ids=CASES)
def test_unify(predicted: list[Device], published: list[Device], expected: list[tuple[str, ...]]) -> None:
    assert differences(slices(*predicted, node="future-node"), slices(*published)) == expected


def test_a_value_bound_under_one_name_counts_under_others() -> None:
    predicted = slices(device("a", uuid=token("node:a/uuid")), device("b", parentUUID=token("node:a/uuid")))
    assert differences(predicted, slices(device("a", uuid="u1"), device("b", parentUUID="u1"))) == []
    other = slices(device("a", uuid="u1"), device("b", parentUUID="u2"))
    assert differences(predicted, other) == [("different", "attribute", "b", "parentUUID")]


def test_gaps_that_are_answered_are_told() -> None:
    unified = unify(slices(device("a", root=token("catalog:t/a/root"))), slices(device("a", root="r1")))
    assert unified.equal
    assert [(d.device, d.field, d.published) for d in unified.answers] == [("a", "root", "r1")]
    assert unified.bound[token("catalog:t/a/root")] == "r1"


def test_a_driver_on_one_side_is_one_difference() -> None:
    (found,) = unify(slices(device("a")), slices(device("a"), driver="other.org") + slices(device("a"))).differences
    assert (found.change, found.aspect, found.driver) == (Change.EXTRA, Aspect.DRIVER, "other.org")


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = slices(device("gone", x=1), generation=1)
    assert differences(slices(device("a")), old + slices(device("a"), generation=2)) == []


@pytest.mark.parametrize("nodes", [("one", "two"), ()], ids=["two nodes", "no node"])
def test_slices_of_one_node_are_needed(nodes: tuple[str, ...]) -> None:
    published = tuple(piece for node in nodes for piece in slices(device("a"), node=node))
    with pytest.raises(SeveralNodesError, match="one node"):
        unify(slices(device("a")), published)


ON_NODES = [
    ("p5.48xlarge", "nvidia,compute-domain,dranet", "1.36"),
    ("p5.48xlarge", "nvidia:dynamic-mig", "1.34"),
    ("p5.48xlarge", "nvidia:dynamic-mig", "1.36"),
    ("p5.48xlarge", "nvidia:mig=all-1g.10gb", "1.36"),
    ("a3-highgpu-8g", "nvidia@v25.3.2,dranet", "1.35"),
    ("ct6e-standard-4t", "tpu", "1.36"),
    ("trn2.48xlarge", "neuron,dranet", "1.36"),
]


@pytest.mark.parametrize(("name", "drivers", "version"), ON_NODES, ids=lambda text: str(text))
def test_a_node_that_behaves_has_no_drift(name: str, drivers: str, version: str) -> None:
    predicted = predict(load_catalog().get(name), parse_driver_set(drivers), kubernetes=profile_for(version))
    unified = unify(predicted, make_concrete(predicted, node_name="node-7", seed="s"))
    assert unified.predicted == unified.published
    assert unified.equal
    assert predicted


def test_counters_are_compared() -> None:
    kubernetes = profile_for("1.36")
    predicted = predict(
        load_catalog().get("p5.48xlarge"), parse_driver_set("nvidia:dynamic-mig"), kubernetes=kubernetes
    )
    real = make_concrete(predicted, node_name="node-7")
    sets = real[0].shared_counters
    less = replace(sets[0], counters=sets[0].counters.with_items({"memory": Quantity.parse("1Gi")}))
    changed = (replace(real[0], shared_counters=(less, *sets[1:])), *real[1:])
    assert differences(predicted, changed) == [("different", "counter", "", "gpu-0-counter-set/memory")]


def test_a_combined_layout_is_told_from_a_split_one() -> None:
    machine, drivers = load_catalog().get("p5.48xlarge"), parse_driver_set("nvidia:dynamic-mig")
    split = predict(machine, drivers, kubernetes=profile_for("1.36"))
    combined = make_concrete(predict(machine, drivers, kubernetes=profile_for("1.34")), node_name="node-7")
    assert {(aspect, field) for _, aspect, _, field in differences(split, combined)} == {
        ("slices", "contents"),
        ("slices", "resourceSliceCount"),
    }

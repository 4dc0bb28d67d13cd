"""What nodes teach: corrections of known types, entries of new ones, nothing where they disagree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.dataclass import replace
from instance_catalog.drift.compare import unify
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.layers import Corrections
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, ResourceSlice
from instance_catalog.prediction.drivers import aws_net
from instance_catalog.prediction.pci import PCIE_ROOT
from instance_catalog.prediction.predict import predict
from instance_catalog.sources.learn import Lesson, SeenNode, learn
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.node_allocatable import node_allocatable

P4D = Path(__file__).parents[3] / "data" / "published" / "eks-p4d.yaml"
KUBERNETES = profile_for("1.36")
DRIVERS = parse_driver_set("nvidia:driver=580.126.09,dranet")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def slices() -> tuple[ResourceSlice, ...]:
    return tuple(parse_resource_slice(document) for document in yaml.safe_load_all(P4D.read_text(encoding="utf-8")))


def seen(
    slices: tuple[ResourceSlice, ...],
    type_name: str = "p4d.24xlarge",
    name: str = "node-a",
    allocatable: Mapping[str, Quantity] | None = None,
) -> SeenNode:
    own = tuple(replace(piece, reach=NodeReach(node_name=name)) for piece in slices)
    return SeenNode(name, type_name, "aws", "amd64", allocatable or {}, own)


def only(nodes: list[SeenNode], catalog: Catalog) -> Lesson:
    (lesson,) = learn(nodes, catalog, KUBERNETES, date="2026-11-21")
    return lesson


def quantities(**amounts: str) -> dict[str, Quantity]:
    return {resource: Quantity.parse(amount) for resource, amount in amounts.items()}


def taught(lesson: Lesson) -> Catalog:
    content: dict[str, Any] = lesson.content or {}
    return load_catalog(corrections=[Corrections("lesson", 1, content)])


def test_a_node_that_is_as_predicted_teaches_nothing(catalog: Catalog, slices: tuple[ResourceSlice, ...]) -> None:
    lesson = only([seen(slices, allocatable=node_allocatable(catalog.get("p4d.24xlarge")))], catalog)
    assert (lesson.content, lesson.notes, lesson.is_new) == (None, (), False)


def test_a_wrong_entry_is_corrected(catalog: Catalog, slices: tuple[ResourceSlice, ...]) -> None:
    lesson = only([seen(slices, "p5.48xlarge")], catalog)
    machine = taught(lesson).get("p5.48xlarge")
    assert unify(predict(machine, DRIVERS, kubernetes=KUBERNETES), seen(slices).slices).equal


def test_an_unknown_type_gets_an_entry_that_predicts_its_nodes(
    catalog: Catalog, slices: tuple[ResourceSlice, ...]
) -> None:
    lesson = only([seen(slices, "p9.48xlarge", allocatable=quantities(cpu="95690m", memory="1150000000Ki"))], catalog)
    machine = taught(lesson).get("p9.48xlarge")
    assert unify(predict(machine, DRIVERS, kubernetes=KUBERNETES), seen(slices).slices).equal
    assert (machine.vcpu, str(machine.memory), machine.provenance["shape"].guess) == (96, "1097Gi", True)
    assert str(node_allocatable(machine)["memory"]) == "1150000000Ki"
    assert lesson.is_new
    assert any("no price is known" in note for note in lesson.notes)


@pytest.mark.parametrize(("published", "kind"), [("roce", "rdma"), ("efa", "efa")])
def test_cards_are_learned_from_the_driver_of_aws(
    catalog: Catalog, slices: tuple[ResourceSlice, ...], published: str, kind: str
) -> None:
    (gpus,) = (piece for piece in slices if piece.driver == "gpu.nvidia.com")
    named = {f"{published}p{index}s0": f"pci{index:04x}:00" for index in range(8)}
    cards = tuple(
        Device(name, FrozenMap({aws_net.DEVICE_TYPE: published, PCIE_ROOT: root, "numa": index // 4}))
        for index, (name, root) in enumerate(named.items())
    )
    nics = replace(gpus, driver=aws_net.DRIVER, devices=cards, shared_counters=())
    machine = taught(only([seen((gpus, nics), "p6e-gb300r.36xlarge")], catalog)).get("p6e-gb300r.36xlarge")
    assert [(card.kind, card.placement.pcie_root) for card in machine.network_cards] == [
        (kind, root) for root in named.values()
    ]


def test_cards_that_the_catalog_knows_are_not_replaced_by_what_says_less(
    catalog: Catalog, slices: tuple[ResourceSlice, ...]
) -> None:
    (gpus,) = (piece for piece in slices if piece.driver == "gpu.nvidia.com")
    card = Device("efa0", FrozenMap({aws_net.DEVICE_TYPE: "efa", PCIE_ROOT: "pci0000:99"}))
    nics = replace(gpus, driver=aws_net.DRIVER, devices=(card,), shared_counters=())
    machine = taught(only([seen((gpus, nics))], catalog)).get("p4d.24xlarge")
    assert machine.network_cards == catalog.get("p4d.24xlarge").network_cards


def test_an_unknown_model_comes_along(catalog: Catalog, slices: tuple[ResourceSlice, ...]) -> None:
    renamed = tuple(
        replace(
            piece,
            devices=tuple(
                replace(d, attributes=FrozenMap({**d.attributes, "productName": "NVIDIA Z100 NVL"}))
                if "productName" in d.attributes
                else d
                for d in piece.devices
            ),
        )
        for piece in slices
    )
    lesson = only([seen(renamed, "z1.xlarge")], catalog)
    accelerator = taught(lesson).get("z1.xlarge").accelerator
    assert accelerator is not None
    assert (accelerator.key, accelerator.architecture, str(accelerator.memory)) == ("nvidia-z100-nvl", "Ampere", "40Gi")


def test_a_node_without_gpus_says_so(catalog: Catalog) -> None:
    lesson = only([seen((), "c9.large", allocatable=quantities(cpu="2", memory="3Gi"))], catalog)
    assert any("add the accelerator by hand" in note for note in lesson.notes)
    assert taught(lesson).get("c9.large").accelerator is None


def test_the_least_of_all_nodes_is_what_pods_can_have(catalog: Catalog) -> None:
    nodes = [
        seen((), name="node-a", allocatable=quantities(cpu="95", memory="1100Gi", pods="5")),
        seen((), name="node-b", allocatable=quantities(cpu="94500m", memory="1101Gi", pods="6")),
    ]
    lesson = only(nodes, catalog)
    assert lesson.content is not None
    assert lesson.content["types"][0]["allocatable"] == {"cpu": "94500m", "memory": "1100Gi"}


def test_nodes_that_disagree_teach_nothing_of_their_devices(
    catalog: Catalog, slices: tuple[ResourceSlice, ...]
) -> None:
    fewer = tuple(replace(piece, devices=piece.devices[1:]) for piece in slices)
    lesson = only([seen(slices), seen(fewer, name="node-b")], catalog)
    assert lesson.content is None
    assert lesson.notes == ("nodes node-a, node-b do not publish the same, so nothing is taken over from their slices",)


def test_what_a_person_wrote_stays_in_force(catalog: Catalog, slices: tuple[ResourceSlice, ...]) -> None:
    lesson = only([seen(slices, allocatable=quantities(memory="1000Gi"))], catalog)
    mine = {"types": [{"name": "p4d.24xlarge", "allocatable": {"memory": "999Gi"}}]}
    found = load_catalog(corrections=[Corrections("mine", 1, mine), Corrections("lesson", 1, lesson.content or {})])
    assert str(found.get("p4d.24xlarge").allocatable["memory"]) == "999Gi"

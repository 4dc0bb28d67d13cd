"""What real drivers published: the prediction equals it, or the difference is listed with its reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.drift.compare import Unified, unify
from instance_catalog.drift.repair import proposal
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.files.layers import Corrections
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import predict

PUBLISHED = Path(__file__).parents[3] / "data" / "published"
KUBERNETES = profile_for("1.36")
EXPECTED: list[dict[str, Any]] = yaml.safe_load((PUBLISHED / "expected.yaml").read_text(encoding="utf-8"))
KEY_SETS: list[dict[str, Any]] = yaml.safe_load(
    (PUBLISHED.parent / "drivers" / "key-sets.yaml").read_text(encoding="utf-8")
)
P4D = "eks-p4d.yaml"


def sample(name: str) -> tuple[ResourceSlice, ...]:
    documents = yaml.safe_load_all((PUBLISHED / name).read_text(encoding="utf-8"))
    return tuple(parse_resource_slice(document) for document in documents)


@dataclass(frozen=True)
class Node:
    """A type under a driver set, compared with a sample."""

    type_name: str
    drivers: DriverSet
    published: tuple[ResourceSlice, ...]

    def unified(self, *overlays: dict[str, Any]) -> Unified:
        """The comparison, with overlays in effect."""
        corrections = [Corrections("overlay", 1, overlay) for overlay in overlays]
        catalog = load_catalog(extra_dirs=[PUBLISHED / "catalog"], corrections=corrections)
        return unify(predict(catalog.get(self.type_name), self.drivers, kubernetes=KUBERNETES), self.published)

    def proposal(self) -> dict[str, Any] | None:
        """The overlay that is proposed."""
        machine = load_catalog(extra_dirs=[PUBLISHED / "catalog"]).get(self.type_name)
        return proposal(machine, self.unified(), source="slices of a node", date="2026-11-21")


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: str(case["slices"]))
def test_the_prediction_equals_the_sample(case: dict[str, Any]) -> None:
    node = Node(case["type"], parse_driver_set(case["drivers"]), sample(case["slices"]))
    differences = node.unified().differences
    assert {difference.aspect.value for difference in differences} <= {"attribute"}
    found = Counter((difference.driver, difference.change.value, difference.field) for difference in differences)
    published = Counter(piece.driver for piece in node.published for _ in piece.devices)
    left = [(row.get("driver", "dra.net"), row) for row in case["left"]]
    assert found == {
        (driver, row["change"], field): row.get("devices", published[driver])
        for driver, row in left
        for field in row["fields"]
    }
    assert all(row["reason"] for row in case["left"])


@pytest.mark.parametrize("case", KEY_SETS, ids=lambda case: str(case["drivers"]))
def test_devices_have_the_attributes_that_the_drivers_own_tests_assert(case: dict[str, Any]) -> None:
    slices = predict(load_catalog().get("p5.48xlarge"), parse_driver_set(case["drivers"]), kubernetes=KUBERNETES)
    found = {
        frozenset(device.attributes)
        for piece in slices
        for device in piece.devices
        if device.attributes["type"] == case["kind"]
    }
    assert found == {frozenset({*case["attributes"], *case["more"]})}


def test_every_sample_is_expected() -> None:
    samples = {case["slices"] for case in EXPECTED}
    assert {path.name for path in PUBLISHED.glob("*.yaml")} == {"expected.yaml", *samples}


@pytest.mark.parametrize("name", ["p4de.24xlarge", "p5.48xlarge", "p5en.48xlarge", "a2-highgpu-4g"])
def test_the_proposed_overlay_repairs_the_drift(name: str) -> None:
    """The p4d's slices as those of another type: wrong model, addresses, count and cards."""
    drivers = "nvidia:driver=580.126.09,dranet" if name.startswith("p") else "nvidia:driver=580.126.09"
    published = tuple(piece for piece in sample(P4D) if "dranet" in drivers or piece.driver != "dra.net")
    node = Node(name, parse_driver_set(drivers), published)
    before, overlay = node.unified().differences, node.proposal()
    assert before
    assert overlay is not None
    assert node.unified(overlay).differences == ()


def test_nothing_is_proposed_where_all_is_known() -> None:
    node = Node("p4d.24xlarge", parse_driver_set("nvidia:driver=580.126.09,dranet"), sample(P4D))
    assert node.proposal() is None


def test_a_driver_version_is_nothing_the_catalog_could_repair() -> None:
    node = Node("p4d.24xlarge", parse_driver_set("nvidia:driver=570.1.1,dranet"), sample(P4D))
    assert {difference.field for difference in node.unified().differences} >= {"driverVersion"}
    assert node.proposal() is None


def test_a_gap_is_filled_with_its_source() -> None:
    node = Node("p4de.24xlarge", parse_driver_set("nvidia:driver=580.126.09,dranet"), sample(P4D))
    overlay = node.proposal()
    assert overlay is not None
    (entry,) = overlay["types"]
    assert entry["accelerator"] == {"productName": "NVIDIA A100-SXM4-40GB", "memory": "40Gi"}
    assert entry["provenance"]["network"] == {"source": "slices of a node", "date": "2026-11-21", "guess": False}
    assert [card["kind"] for card in entry["networkCards"]] == ["ena", "efa", "ena", "efa", "ena", "efa", "ena", "efa"]

"""The YAML of docs/catalog.md is right: a reader pastes it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import dedent

import pytest

from autoscaler.kube.custom.instance_type_overlay import overlay_layer
from instance_catalog.files.loader import load_catalog, shipped_layers
from instance_catalog.files.merging import catalog_of
from instance_catalog.files.yaml_text import read
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import CapacityType

PAGE = Path(__file__).parents[3] / "docs" / "catalog.md"
BLOCKS = [dedent(block) for block in re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE.read_text(), re.MULTILINE | re.DOTALL)]
EXAMPLES = [block for block in BLOCKS if not block.startswith("apiVersion")]
OBJECTS = [read(block) for block in BLOCKS if block.startswith("apiVersion")]
AFTERWARDS = datetime(2027, 1, 1, tzinfo=UTC)


def test_every_example_is_found() -> None:
    assert (len(EXAMPLES), len(OBJECTS)) == (6, 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for index, text in enumerate(EXAMPLES):
        (tmp_path / f"{index}.yaml").write_text(text)
    return tmp_path


def test_the_examples_do_what_the_page_says(directory: Path) -> None:
    catalog = load_catalog(extra_dirs=[directory], now=AFTERWARDS)
    assert len(catalog.get("p5x.24xlarge").cards("efa")) == 16
    p5e = catalog.get("p5e.48xlarge").price
    assert p5e is not None
    assert (p5e.usd_per_hour, p5e.region) == (Decimal("61.2"), "eu-west-1")
    p5 = catalog.get("p5.48xlarge")
    assert (p5.price, p5.prices[CapacityType.SPOT].usd_per_hour) == (None, Decimal("19.9"))
    assert catalog.get("g6.xlarge").allocatable == {"memory": Quantity.parse("14600Mi")}
    assert catalog.get("n1-highmem-16+1xnvidia-tesla-t4").machine_type == "n1-highmem-16"
    assert p5.reservation.memory_overhead == Quantity.parse("30m").value


def test_the_overlay_counts_until_it_ends(directory: Path) -> None:
    p5 = load_catalog(extra_dirs=[directory], now=AFTERWARDS - timedelta(seconds=1)).get("p5.48xlarge")
    assert p5.prices[CapacityType.ON_DEMAND].usd_per_hour == Decimal("31.5")


def test_the_object_says_the_same_as_the_file() -> None:
    catalog = catalog_of([*shipped_layers(), *map(overlay_layer, OBJECTS)])
    assert catalog.get("p5.48xlarge").prices[CapacityType.ON_DEMAND].usd_per_hour == Decimal("31.5")


def test_the_example_of_a_machine_of_another_cloud_loads() -> None:
    catalog = load_catalog(extra_dirs=[Path(__file__).parents[3] / "docs/examples/catalog"])
    machine = catalog.get("nd96isr-mi300x-v5")
    (drivers,) = implicit_driver_sets(machine, REFERENCE)[:1]
    slices = predict(machine, drivers, kubernetes=REFERENCE)
    names = {d.attributes.get("productName") for s in slices for d in s.devices if s.driver == "gpu.amd.com"}
    assert names == {"AMD_Instinct_MI300X_OAM"}

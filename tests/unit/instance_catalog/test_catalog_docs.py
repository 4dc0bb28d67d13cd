"""The YAML of docs/catalog.md is right: a reader pastes it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from textwrap import dedent

import pytest

from instance_catalog.catalog import Catalog
from instance_catalog.instance_type import CapacityType
from instance_catalog.loader import load_catalog
from instance_catalog.quantity import Quantity

PAGE = Path(__file__).parents[3] / "docs" / "catalog.md"
EXAMPLES = [
    dedent(block) for block in re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
]


def test_every_example_is_found() -> None:
    assert len(EXAMPLES) == 4


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    for index, text in enumerate(EXAMPLES):
        (tmp_path / f"{index}.yaml").write_text(text)
    return load_catalog(extra_dirs=[tmp_path])


def test_the_examples_do_what_the_page_says(catalog: Catalog) -> None:
    assert len(catalog.get("p5x.24xlarge").cards("efa")) == 16
    p5e = catalog.get("p5e.48xlarge").price
    assert p5e is not None
    assert (p5e.usd_per_hour, p5e.region) == (Decimal("61.2"), "eu-west-1")
    p5 = catalog.get("p5.48xlarge")
    assert (p5.price, p5.prices[CapacityType.SPOT].usd_per_hour) == (None, Decimal("19.9"))
    assert catalog.get("g6.xlarge").allocatable == {"memory": Quantity.parse("14600Mi")}
    assert catalog.get("n1-highmem-16+1xnvidia-tesla-t4").machine_type == "n1-highmem-16"
    assert p5.reservation.memory_overhead == Quantity.parse("30m").value

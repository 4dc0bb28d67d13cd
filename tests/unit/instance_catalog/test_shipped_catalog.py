"""The shipped catalog says what its sources say."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest

from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import (
    CapacityType,
    CpuTopology,
    NetworkCard,
    PciPlacement,
    Price,
)


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return load_catalog()


def test_all_types_of_both_clouds_are_there(shipped: Catalog) -> None:
    attached = [t for t in shipped if "+" in t.name]
    assert Counter(t.cloud for t in shipped if t not in attached) == {"aws": 97, "gcp": 49}
    assert {t.name.split("+")[1] for t in attached} == {
        *(f"{n}xnvidia-tesla-{gpu}" for gpu in ("p4", "p100", "t4", "v100") for n in (1, 2, 4)),
        "8xnvidia-tesla-v100",
    }


def test_types_without_a_price_or_a_product_name_are_counted(shipped: Catalog) -> None:
    assert len([t for t in shipped if not t.prices]) == 12
    unnamed = [t for t in shipped if t.accelerator and not (t.accelerator.product_name or t.accelerator.product_names)]
    assert Counter(t.accelerator.vendor for t in unnamed if t.accelerator) == {
        "Google": 15,
        "AMD": 5,
        "NVIDIA": 3,  # parts of a card
        "AWS": 1,
        "Habana": 1,
        "Qualcomm": 1,
    }
    assert all(price.guess for t in shipped if "+" in t.name for price in t.prices.values())


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        ("p5.48xlarge", "vcpu", 192),
        ("p5.48xlarge", "memory", Quantity.parse("2Ti")),
        ("p5.48xlarge", "accelerator_count", Fraction(8)),
        ("p5.48xlarge", "local_nvme_gb", 30400),
        ("p5.48xlarge", "capacity_types", tuple(k for k in CapacityType if k is not CapacityType.FLEX_START)),
        ("p5.48xlarge", "price", Price(Decimal("55.04"), "us-east-1", "2026-07-20")),
        ("p5e.48xlarge", "price", None),
        ("a3-megagpu-8g", "price", Price(Decimal("92.937588"), "us-east4", "2026-08-03")),
        ("a3-ultragpu-8g", "capacity_types", tuple(k for k in CapacityType if k is not CapacityType.ON_DEMAND)),
        ("a3-highgpu-1g", "capacity_types", (CapacityType.FLEX_START, CapacityType.SPOT)),
        ("p6e-gb200.36xlarge", "capacity_types", (CapacityType.CAPACITY_BLOCK,)),
        ("p6e-gb200.36xlarge", "device_count", 4),
        ("p2.xlarge", "capacity_types", (CapacityType.RESERVED, CapacityType.ON_DEMAND)),
        ("g6f.large", "accelerator_count", Fraction(1, 8)),
        ("g6f.large", "device_count", 1),
        ("g3s.xlarge", "memory", Quantity.parse("30.5Gi")),
        ("g5g.xlarge", "architecture", "arm64"),
        ("a4x-highgpu-4g", "architecture", "arm64"),
        ("g7.2xlarge", "min_driver", "595"),
        ("ct6e-standard-8t", "topology", "2x4"),
        ("n1-standard-8+1xnvidia-tesla-t4", "machine_type", "n1-standard-8"),
        ("n1-standard-8+1xnvidia-tesla-t4", "memory", Quantity.parse("30Gi")),
        ("p5.48xlarge", "machine_type", "p5.48xlarge"),
    ],
)
def test_a_fact_of_a_type(shipped: Catalog, name: str, attribute: str, value: object) -> None:
    assert getattr(shipped.get(name), attribute) == value


@pytest.mark.parametrize(
    ("name", "product", "memory", "mig"),
    [
        ("p5.48xlarge", "NVIDIA H100 80GB HBM3", "81559Mi", "h100-80gb"),
        ("p4d.24xlarge", "NVIDIA A100-SXM4-40GB", "40Gi", "a100-40gb"),
        ("p4de.24xlarge", "NVIDIA A100-SXM4-80GB", "80Gi", "a100-80gb"),
        ("p3dn.24xlarge", "Tesla V100-SXM2-32GB", "32Gi", None),
        ("g6f.4xlarge", "NVIDIA L4-12Q", "12Gi", None),
        ("g5g.xlarge", "NVIDIA T4G", "15Gi", None),
        ("g5g.metal", "NVIDIA T4G", "16Gi", None),
        ("p6e-gb200.36xlarge", "NVIDIA GB200", "189471Mi", "gb200"),
        ("a4x-highgpu-4g", "NVIDIA GB200", "189471Mi", "gb200"),
        ("n1-standard-8+1xnvidia-tesla-t4", "Tesla T4", "15Gi", None),
    ],
)
def test_the_accelerator_of_a_type(
    shipped: Catalog, name: str, product: str | None, memory: str, mig: str | None
) -> None:
    accelerator = shipped.get(name).accelerator
    assert accelerator is not None
    assert (accelerator.product_name, accelerator.memory) == (product, Quantity.parse(memory))
    assert (accelerator.mig_table, accelerator.mig) == (mig, mig is not None)


def test_an_api_name_may_differ_by_type(shipped: Catalog) -> None:
    names = [shipped.get(f"a3-{kind}-8g").accelerator for kind in ("highgpu", "megagpu")]
    assert [a.api_names["gcp"] for a in names if a] == ["nvidia-h100-80gb", "nvidia-h100-mega-80gb"]


def test_pci_facts_of_a_verified_type(shipped: Catalog) -> None:
    p5 = shipped.get("p5.48xlarge")
    assert p5.placements[0] == PciPlacement("0000:53:00.0", "pci0000:44", 0)
    assert p5.placements[7] == PciPlacement("0000:ca:00.0", "pci0000:bb", 1)
    efa = p5.cards("efa")
    assert len(efa) == 32
    assert Counter(card.placement.pcie_root for card in efa) == {p.pcie_root: 4 for p in p5.placements}
    assert p5.cards("ena") == (NetworkCard("ena", primary=True),)


@pytest.mark.parametrize(
    ("name", "efa_per_gpu"),
    [
        ("p4d.24xlarge", 0.5), ("p5.48xlarge", 4), ("p5en.48xlarge", 2), ("p6-b200.48xlarge", 1),
        ("p6-b300.48xlarge", 2),
    ],
)  # fmt: skip
def test_gpus_and_efa_devices_share_their_roots(shipped: Catalog, name: str, efa_per_gpu: float) -> None:
    machine = shipped.get(name)
    gpus = Counter(place.pcie_root for place in machine.placements)
    cards = Counter(card.placement.pcie_root for card in machine.cards("efa"))
    assert cards == {root: count * efa_per_gpu for root, count in gpus.items()}
    assert None not in cards


def test_half_of_the_efa_devices_of_a_gb200_machine_share_a_root_with_a_gpu(shipped: Catalog) -> None:
    machine = shipped.get("p6e-gb200.36xlarge")
    gpus = {place.pcie_root: place.numa_node for place in machine.placements}
    cards = machine.cards("efa")
    assert len(gpus) == 4
    assert Counter(card.placement.pcie_root in gpus for card in cards) == {True: 8, False: 8}
    assert all(gpus.get(c.placement.pcie_root, c.placement.numa_node) == c.placement.numa_node for c in cards)
    assert Counter(card.placement.numa_node for card in cards) == {0: 8, 1: 8}


def test_cpu_layouts_are_known_where_somebody_has_read_them(shipped: Catalog) -> None:
    assert shipped.get("p5en.48xlarge").cpu == CpuTopology(sockets=2, numa_nodes=2, threads_per_core=2)
    assert shipped.get("g5g.xlarge").cpu == CpuTopology(threads_per_core=1)
    assert shipped.get("g3.8xlarge").cpu == CpuTopology()


def test_what_is_not_known_is_not_made_up(shipped: Catalog) -> None:
    a3 = shipped.get("a3-highgpu-8g")
    assert a3.placements == ()
    assert a3.placement(3) == PciPlacement()
    assert a3.provenance["accelerator"].guess  # the product name is copied from the same GPU on AWS
    assert shipped.get("a4x-highgpu-4g").fabric.domain_nodes == (18,)
    assert shipped.get("p6e-gb200.36xlarge").fabric.multi_node


def test_every_type_is_complete(shipped: Catalog) -> None:
    for instance_type in shipped:
        assert instance_type.accelerator is not None, instance_type.name
        assert instance_type.device_count > 0, instance_type.name
        assert {"shape", "accelerator"} <= set(instance_type.provenance), instance_type.name
        assert bool(instance_type.placements) <= ("pci" in instance_type.provenance), instance_type.name
        assert bool(instance_type.fabric.link) <= ("fabric" in instance_type.provenance), instance_type.name
        assert (instance_type.cpu != CpuTopology()) <= ("cpu" in instance_type.provenance), instance_type.name
        assert bool(instance_type.price) <= ("price" in instance_type.provenance), instance_type.name
        assert bool(instance_type.network_cards) <= ("network" in instance_type.provenance), instance_type.name
        assert instance_type.origin, instance_type.name
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", instance_type.machine_type), "a label value"


def test_every_accelerator_is_used_and_sourced(shipped: Catalog) -> None:
    used = {t.accelerator.key for t in shipped if t.accelerator}
    assert used == set(shipped.accelerators)
    for accelerator in shipped.accelerators.values():
        assert "identity" in accelerator.provenance, accelerator.key
        assert accelerator.vendor != "NVIDIA" or accelerator.architecture, accelerator.key
        assert (accelerator.memory is None) or "memory" in accelerator.provenance, accelerator.key


def test_loading_twice_gives_the_same_catalog(shipped: Catalog) -> None:
    again = load_catalog()
    assert again == shipped
    assert again.digest == shipped.digest


# --- directories given by the user -----------------------------------------------------------------------------------


def test_places_on_the_bus_are_no_guesses(shipped: Catalog) -> None:
    """A claim that a guessed root decides would be planned for as if it were known."""
    for machine in shipped:
        places = {"pci": machine.placements, "network": tuple(card.placement for card in machine.network_cards)}
        for group, found in places.items():
            facts = machine.provenance.get(group)
            assert facts is None or not facts.guess or not any(place.pcie_root for place in found), machine.name


def test_no_type_lacks_memory_name_or_price_without_a_reason(shipped: Catalog) -> None:
    for t in shipped:
        accelerator = t.accelerator
        assert accelerator is not None, t.name
        assert accelerator.memory or accelerator.memory_bounds or accelerator.unknown.get("memory"), t.name
        assert accelerator.product_name or accelerator.product_names or accelerator.unknown.get("productName"), t.name
        assert t.prices or t.unpriced, t.name


def test_what_is_known_in_part_has_a_source(shipped: Catalog) -> None:
    for key, accelerator in shipped.accelerators.items():
        if accelerator.memory_bounds:
            low, high = accelerator.memory_bounds
            assert low < high, key
            assert "memory" in accelerator.provenance, key
        assert not accelerator.product_names or "productName" in accelerator.provenance, key

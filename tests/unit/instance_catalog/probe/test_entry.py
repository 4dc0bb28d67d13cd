"""A Probe record as a catalog entry."""

from __future__ import annotations

from typing import Any

import pytest

from instance_catalog.files.layers import Corrections
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.probe.entry import catalog_content, left_to_say
from instance_catalog.probe.record import Probe, ProbeError

PLACES = [("0000:53:00.0", "pci0000:44", 0), ("0000:64:00.0", "pci0000:55", 0)]


def pci(address: str, root: str | None, numa: int | None) -> dict[str, Any]:
    return {"address": address, "root": root, "numaNode": numa}


def gpu(minor: int, **changed: Any) -> dict[str, Any]:
    return {
        "index": minor,
        "minor": minor,
        "uuid": f"GPU-{minor}",
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "cudaComputeCapability": "9.0.0",
        "memoryBytes": 81559 * 2**20,
        "pci": pci(*PLACES[minor]),
        "nvLinks": [{"peer": "switch", "links": 18}],
        **changed,
    }


def nic(device: str, address: str, **changed: Any) -> dict[str, Any]:
    return {"pci": pci(address, "pci0000:44", 0), "vendor": "1d0f", "device": device, "subsystem": device, **changed}


def probe(*gpus: dict[str, Any], nics: tuple[dict[str, Any], ...] = (), notes: tuple[str, ...] = ()) -> Probe:
    return Probe.model_validate(
        {
            "takenOn": "2026-11-21",
            "host": {"architecture": "amd64", "vcpu": 48, "memoryKiB": 1023 * 2**20 + 5},
            "driverVersion": "580.126.09",
            "cudaDriverVersion": "13.0",
            "gpus": gpus or (gpu(0), gpu(1)),
            "nics": nics,
            "notes": notes,
        }
    )


def entry(found: Probe, *, name: str = "my.type") -> dict[str, Any]:
    catalog = load_catalog()
    content = catalog_content(
        found, name=name, cloud="aws", models=catalog.accelerators, existing=catalog.types.get(name)
    )
    load_catalog(corrections=[Corrections("probe", 1, content)])
    assert isinstance(content, dict)
    return content


def test_a_new_type_of_a_known_model() -> None:
    content = entry(probe())
    (described,) = content["types"]
    provenance = described.pop("provenance")
    assert list(content) == ["types"]
    assert described == {
        "name": "my.type",
        "cloud": "aws",
        "architecture": "amd64",
        "vcpu": 48,
        "memory": "1024Gi",
        "capacityTypes": ["on-demand"],
        "accelerator": {"model": "nvidia-h100-80gb", "count": 2},
        "pci": {"bus": ["0000:53:00.0", "0000:64:00.0"], "root": ["pci0000:44", "pci0000:55"], "numa": [0, 0]},
        "fabric": {"link": "NVLink", "shape": "switch"},
    }
    assert provenance["shape"]["guess"] is True
    assert provenance["pci"] == {"source": "probe of a node with NVIDIA driver 580.126.09", "date": "2026-11-21"}


def test_a_model_that_the_catalog_lacks_comes_with_the_entry() -> None:
    content = entry(probe(gpu(0, productName="NVIDIA R100 Test", architecture="Rubin", memoryBytes=288 * 10**9)))
    (model,) = content["accelerators"]
    assert (model["key"], model["model"], model["memory"]) == ("nvidia-r100-test", "R100 Test", "288G")
    assert content["types"][0]["accelerator"] == {"model": "nvidia-r100-test", "count": 1}


def test_other_memory_than_the_models_is_said_of_the_type() -> None:
    use = entry(probe(gpu(0, memoryBytes=80 * 2**30)))["types"][0]["accelerator"]
    assert Quantity.parse(use["memory"]) == Quantity.parse("80Gi")


def test_of_a_known_type_only_devices_are_taken_over() -> None:
    (described,) = entry(probe(), name="p5.48xlarge")["types"]
    assert {"memory", "vcpu", "capacityTypes", "architecture"}.isdisjoint(described)
    assert described["accelerator"]["count"] == 2
    assert described["pci"]["rootGroup"] == []


def test_network_cards_of_one_kind_stand_together() -> None:
    cards = (
        nic("ec20", "0000:30:00.0", defaultRoute=True),
        nic("efa1", "0000:41:00.0"),
        nic("efa1", "0000:42:00.0"),
        nic("ffff", "0000:43:00.0"),
    )
    found = probe(nics=cards)
    assert entry(found)["types"][0]["networkCards"] == [
        {"kind": "ena", "primary": True, "bus": ["0000:30:00.0"], "root": ["pci0000:44"], "numa": [0]},
        {
            "kind": "efa",
            "count": 2,
            "subsystem": "efa1",
            "bus": ["0000:41:00.0", "0000:42:00.0"],
            "root": ["pci0000:44", "pci0000:44"],
            "numa": [0, 0],
        },
    ]
    assert left_to_say(found) == ("network card 0000:43:00.0 (1d0f:ffff): of no known kind, left out",)


def test_a_column_with_a_gap_is_left_out() -> None:
    gpus = gpu(0), gpu(1, pci=pci("0000:64:00.0", None, None))
    found = probe(*gpus, notes=("MIG placements: not read, this needs root",))
    assert entry(found)["types"][0]["pci"] == {"bus": ["0000:53:00.0", "0000:64:00.0"]}
    assert [line.partition(":")[0] for line in left_to_say(found)] == ["MIG placements", "PCIe roots"]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"fabric": {"state": "completed", "clusterUuid": "u", "cliqueId": 1}}, "add fabric.domainNodes"),
        ({"mig": {"enabled": True, "pending": True}}, "the pool's driver profile"),
    ],
    ids=["clique", "mig mode"],
)
def test_what_a_person_must_add_is_said(changed: dict[str, Any], line: str) -> None:
    (said,) = left_to_say(probe(gpu(0, **changed)))
    assert line in said


def test_gpus_of_several_models_make_no_type() -> None:
    with pytest.raises(ProbeError, match="several models: NVIDIA H100 80GB HBM3, NVIDIA L4"):
        entry(probe(gpu(0), gpu(1, productName="NVIDIA L4")))

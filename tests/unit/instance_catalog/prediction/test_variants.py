"""The driver sets offered without a CapacityPool."""

from __future__ import annotations

import pytest

from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets, left_out
from instance_catalog.types.instance_type import InstanceType, NetworkCard
from tests.unit.instance_catalog.prediction import machines

H100_LAYOUTS = [
    "all-1g.10gb", "all-1g.10gb.me", "all-1g.20gb", "all-2g.20gb", "all-3g.40gb", "all-4g.40gb", "all-7g.80gb",
    "all-balanced",
]  # fmt: skip


def texts(machine: InstanceType, version: str = "1.36") -> list[str]:
    return [driver_set.text for driver_set in implicit_driver_sets(machine, profile_for(version))]


def test_nvidia_types_come_plain_with_static_layouts_and_with_dynamic_mig() -> None:
    assert texts(machines.h100x8()) == [
        "nvidia,compute-domain,dranet",
        *(f"nvidia:mig={layout},compute-domain,dranet" for layout in H100_LAYOUTS),
        "nvidia:dynamic-mig,compute-domain,dranet",
    ]


def test_without_partitionable_devices_there_is_no_dynamic_mig() -> None:
    assert not any("dynamic" in text for text in texts(machines.h100x8(), "1.35"))


def test_ampere_is_offered_with_mig_mode_on() -> None:
    assert texts(machines.p4d())[-1] == "nvidia:dynamic-mig:mig-mode-on,compute-domain,dranet"


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (machines.machine("l4", machines.L4, 1), ["nvidia,compute-domain"]),
        (machines.machine("l4", machines.L4_VGPU, 1), ["nvidia,compute-domain"]),
        (machines.tpu(), ["tpu"]),
        (machines.machine("hpc", None, 0, cards=(NetworkCard("efa"),)), ["dranet"]),
        (machines.machine("m5", None, 0), []),
    ],
    ids=["no MIG", "vGPU", "TPU", "only cards", "nothing"],
)
def test_only_what_has_devices_and_can_be_predicted_is_offered(machine: InstanceType, expected: list[str]) -> None:
    assert texts(machine) == expected


def test_what_is_left_out_has_a_reason() -> None:
    many = machines.machine("h100x16", machines.H100, 16)
    ((driver_set, reason),) = left_out(many, profile_for("1.36"))
    assert driver_set.text == "nvidia:dynamic-mig,compute-domain"
    assert reason == "dynamic MIG publishes at most 8 GPUs; h100x16 has more"


def test_a_gpu_whose_partitions_nobody_has_described_says_so() -> None:
    unknown = machines.gpu("RTX", "NVIDIA RTX", "Blackwell", "12.0.0", "96Gi", mig_table="not-there")
    ((driver_set, reason),) = left_out(machines.machine("g9", unknown, 1), profile_for("1.36"))
    assert driver_set.text == "nvidia:dynamic-mig,compute-domain"
    assert reason == "how RTX is partitioned has no source yet"


def test_every_variant_has_a_label_for_people() -> None:
    labels = [driver_set.label for driver_set in implicit_driver_sets(machines.p4d(), profile_for("1.36"))]
    assert labels[0] == "nvidia v0.4.1 + compute-domain v0.4.1 + dranet v1.4.0"
    assert labels[1].startswith("nvidia v0.4.1, MIG all-1g.5gb + ")
    assert labels[-1].startswith("nvidia v0.4.1, dynamic MIG (MIG mode enabled) + ")


def test_variants_differ_in_what_is_published() -> None:
    kubernetes = profile_for("1.36")
    sets = implicit_driver_sets(machines.h100x8(), kubernetes)
    predictions = {predict(machines.h100x8(), driver_set, kubernetes=kubernetes) for driver_set in sets}
    assert len(predictions) == len(sets)

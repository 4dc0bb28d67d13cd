"""The shipped facts about drivers are consistent."""

from __future__ import annotations

import pytest

from instance_catalog.drivers.facts import (
    DriverFacts,
    assumptions,
    builtin_device_classes,
    driver_facts,
    mig_tables,
    prepare_rules,
)
from instance_catalog.drivers.terms import PrepareRules
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import profile_for

FEATURES = {
    "nvidia": {
        "minor-and-index", "own-pci-bus-id", "profile-in-mig-name", "addressing-mode", "dynamic-mig",
        "dynamic-mig-without-mig-hardware", "all-attributes-on-dynamic-mig", "numa-node", "index-first-slice-names",
        "iommufd",
    },
    "example": {"compute-capacity", "partitions", "sharing", "binding-conditions", "index-first-slice-names"},
    "tpu": {"described-chips", "index-first-slice-names"},
    "dranet": {"neuron-device-groups", "index-first-slice-names"},
}  # fmt: skip


@pytest.mark.parametrize("facts", driver_facts().values(), ids=driver_facts())
def test_every_driver_is_described_consistently(facts: DriverFacts) -> None:
    releases = [release.name for release in facts.releases]
    assert assumptions().releases[facts.profile] in releases
    assert all(gate.since in releases for gate in facts.gates.values())
    assert {gate for pair in facts.exclusive_gates for gate in pair} <= set(facts.gates)
    known = FEATURES.get(facts.profile, {"index-first-slice-names"})
    assert {feature for release in facts.releases for feature in release.features} <= known


def test_classes_are_those_that_charts_install() -> None:
    classes = {row.name: row for row in builtin_device_classes(profile_for("1.36"))}
    assert {
        "gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com", "compute-domain-daemon.nvidia.com",
        "compute-domain-default-channel.nvidia.com", "efa.networking.k8s.aws", "tpu.google.com", "gpu.amd.com",
    } <= set(classes)  # fmt: skip
    gpu = classes["gpu.nvidia.com"]
    assert gpu.selectors == ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",)
    assert gpu.extended_resource_name == "nvidia.com/gpu"
    assert {name for name, row in classes.items() if row.extended_resource_name} == {"gpu.nvidia.com"}
    assert all(row.selectors and row.source for row in classes.values())


@pytest.mark.parametrize(
    ("driver", "rules"),
    [
        ("tpu.google.com", PrepareRules(all_devices_of_node=True)),
        ("compute-domain.nvidia.com", PrepareRules(one_compute_domain_per_node=True)),
        ("gpu.amd.com", PrepareRules(one_value_on_node="memoryPartition")),
        ("gpu.nvidia.com", PrepareRules()),
        ("gpu.of-somebody-else.com", PrepareRules()),
    ],
)
def test_drivers_refuse_what_their_prepare_step_refuses(driver: str, rules: PrepareRules) -> None:
    assert prepare_rules(driver) == rules


def test_without_the_gate_classes_offer_no_extended_resource() -> None:
    assert {row.extended_resource_name for row in builtin_device_classes(profile_for("1.35"))} == {None}


def test_accelerators_name_mig_tables_that_exist() -> None:
    named = {a.mig_table for a in load_catalog().accelerators.values() if a.mig_table}
    assert named <= set(mig_tables())


@pytest.mark.parametrize("name", mig_tables())
def test_mig_tables_follow_their_geometry(name: str) -> None:
    table = mig_tables()[name]
    assert len({profile.gi_id for profile in table.profiles}) == len(table.profiles)
    for profile in table.profiles:
        assert all(0 <= start <= table.memory_slices - profile.size for start in profile.starts)
    whole = next(profile for profile in table.profiles if profile.size == table.memory_slices)
    for profile in table.profiles:
        assert all(value <= whole.figures[figure] for figure, value in profile.figures.items())

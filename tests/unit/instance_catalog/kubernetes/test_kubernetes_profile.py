"""The table of Kubernetes versions: which row a version gets, and what the rows say."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import fields
from instance_catalog.kubernetes.profile import (
    PROFILES,
    REFERENCE,
    AllocatorBehaviour,
    CelBehaviour,
    Gates,
    KubernetesProfile,
    SchedulerBehaviour,
    UnknownVersionError,
    profile_for,
)


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ("1.36", "v1.36.3"),
        ("v1.36.3", "v1.36.3"),
        ("1.36.1", "v1.36.0"),
        ("1.36.2", "v1.36.2"),
        ("1.36.4-eks-1a2b3c4", "v1.36.4"),
        ("v1.36.12+k3s1", "v1.36.5"),
        ("1.34", "v1.34.0"),
        ("1.34.20", "v1.34.13"),
        ("1.35.9", "v1.35.0"),
        ("1.35.10", "v1.35.10"),
        ("1.37", "v1.37.0"),
        ("1.37.2", "v1.37.1"),
    ],
)
def test_the_nearest_lower_row_of_the_minor_is_chosen(asked: str, row: str) -> None:
    profile = profile_for(asked)
    assert profile.name == row
    assert profile.note == ""


def test_a_future_version_is_decided_as_the_latest_known_and_says_so() -> None:
    profile = profile_for("1.41.2")
    assert profile.name == PROFILES[-1].name
    assert "1.41.2" in profile.note


@pytest.mark.parametrize("asked", ["", "latest", "1", "1.33", "0.36.3"])
def test_versions_that_nobody_can_decide_for_are_refused(asked: str) -> None:
    with pytest.raises(UnknownVersionError, match=r"1\.3[46]"):
        profile_for(asked)


def test_rows_are_in_order_and_the_reference_is_one_of_them() -> None:
    versions = [profile.version for profile in PROFILES]
    assert versions == sorted(set(versions))
    assert REFERENCE in PROFILES
    assert REFERENCE.name == "v1.36.3"


GATES = {
    # gate: first minor version that has it on by default (None: none of those known)
    "admin_access": 34,
    "prioritized_list": 34,
    "partitionable_devices": 36,
    "consumable_capacity": 36,
    "device_taints": 36,
    "device_taint_rules": 37,
    "binding_conditions": 36,
    "extended_resource": 36,
    "list_type_attributes": None,
    "fractional_capacity_range": 37,
    "node_allocatable_resources": None,
    "generic_workload": None,
    "gang_scheduling": None,
    "workload_resource_claims": None,
    "node_declared_features": 36,
}


def test_every_gate_has_a_known_history() -> None:
    assert set(GATES) == {gate.name for gate in fields(Gates)}


@pytest.mark.parametrize("gate", GATES)
def test_gates_are_on_from_the_release_that_turned_them_on(gate: str) -> None:
    since = GATES[gate]
    for profile in PROFILES:
        assert getattr(profile.gates, gate) is (since is not None and profile.minor >= (1, since)), profile.name


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_kubelets_declare_features_from_1_36_on(profile: KubernetesProfile) -> None:
    declared = profile.declared_features
    assert list(declared) == sorted(declared)
    assert ("RestartAllContainersOnContainerExits" in declared) is (profile.minor >= (1, 36))
    assert "UserNamespacesHostNetworkSupport" not in declared
    assert profile.with_gates(node_declared_features=False).declared_features == ()


SWITCHES = {
    # switch: rows in which it is on
    "slices_sorted_by_name": {"1.36", "1.37"},
    "combinations": {"1.36", "1.37"},
    "incomplete_pool_allocates": {"1.34"},
    "duplicate_device_fatal": {"1.34"},
    "counter_slices_follow_node_filter": {"1.37"},
    "counters_keyed_by_driver": {"1.36.4", "1.36.5", "1.37"},
    "counters_of_shared_devices": {"1.36.2", "1.36.3", "1.36.4", "1.36.5", "1.37"},
    "leaks_on_rejection": {"1.34", "1.35", "1.36.0", "1.36.2"},
    "all_mode_drops_busy_capacity": {"1.35", "1.36"},
    "any_taint_effect_blocks": {"1.34"},
    "tolerations_in_result": {"1.35", "1.36", "1.37"},
    "distinct_remembers_all": {"1.37"},
    "share_id_alone_skips_counters": {"1.37"},
    "limit_checked_per_request": {"1.34.13", "1.35.10", "1.36.5", "1.37.1"},
    "deadline_is_error": {"1.35", "1.36", "1.37"},
    "completeness_by_visible_slices": {"1.34"},
    "counters_per_slice": {"1.34"},
    "all_alternatives_confused": {"1.34", "1.35"},
    "distinct_attribute": {"1.34", "1.36", "1.37"},
    "distinct_by_identity": {"1.34"},
    "big_request_aliasing": {"1.34", "1.35", "1.36"},
    "capacity_errors_fatal": {"1.37"},
    "taint_rules_have_own_gate": {"1.35", "1.36", "1.37"},
    "rule_without_selector_taints_all": {"1.34", "1.35", "1.36", "1.37.0"},
    "list_constraints": {"1.37"},
}


SCHEDULER = {
    # switch: minor versions in which it is on
    "claims_scored": {35, 36, 37},
    "balance_is_gain": {36, 37},
    "image_volumes_scored": {36, 37},
    "image_volumes_counted": {37},
    "selector_asked_without_labels": {34, 35, 36},
    "node_allocatable_of_devices": {37},
}


def test_every_switch_of_the_scheduler_is_listed() -> None:
    assert set(SCHEDULER) == {switch.name for switch in fields(SchedulerBehaviour)}


@pytest.mark.parametrize("switch", SCHEDULER)
def test_switches_of_the_scheduler_are_on_where_its_plugins_behave_so(switch: str) -> None:
    for profile in PROFILES:
        assert getattr(profile.scheduler, switch) is (profile.minor[1] in SCHEDULER[switch]), profile.name


CEL = {
    # switch: minor versions in which it is on
    "dyn_attributes": {37},
    "add_mutates_big_quantity": {34, 35, 36},
    "includes": {36, 37},
    "list_attributes": {36, 37},
    "new_may_use_lists": {35, 36, 37},
}


def test_every_switch_of_cel_is_listed() -> None:
    assert {*CEL, "cel_go"} == {switch.name for switch in fields(CelBehaviour)}


@pytest.mark.parametrize("switch", CEL)
def test_switches_of_cel_are_on_where_the_library_behaves_so(switch: str) -> None:
    for profile in PROFILES:
        assert getattr(profile.cel, switch) is (profile.minor[1] in CEL[switch]), profile.name


def test_every_switch_is_listed() -> None:
    assert set(SWITCHES) == {switch.name for switch in fields(AllocatorBehaviour)}


@pytest.mark.parametrize("switch", SWITCHES)
def test_switches_are_on_where_the_library_behaves_so(switch: str) -> None:
    rows = SWITCHES[switch]
    for profile in PROFILES:
        minor = f"{profile.minor[0]}.{profile.minor[1]}"
        listed = minor in rows or profile.name.removeprefix("v") in rows
        assert getattr(profile.allocator, switch) is listed, profile.name


def test_gates_can_be_set_otherwise_without_touching_the_row() -> None:
    changed = REFERENCE.with_gates(partitionable_devices=False)
    assert not changed.gates.partitionable_devices
    assert REFERENCE.gates.partitionable_devices
    assert changed.allocator == REFERENCE.allocator

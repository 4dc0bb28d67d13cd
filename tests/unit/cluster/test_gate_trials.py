"""Feature gates are proven by what an API server keeps of an object, and stay assumed where nobody may ask."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import ForbiddenError, InvalidError, NotFoundError, Object, UnavailableError
from autoscaler.cluster.gate_trials import TRIALS, Proof, prove
from autoscaler.cluster.resources import Resource
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.tables.doctor import GatesTried, Item, Level, items_of
from autoscaler.simulation.api_server import ApiServer, copied
from instance_catalog.diagnostic import path_text
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.feature_gates import GATES
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeAllocatable, NodeMapping, Pool, ResourceSlice

ALL = frozenset(trial.gate for trial in TRIALS)
CLAIMS = frozenset(trial.gate for trial in TRIALS if trial.resource.plural == "resourceclaims")


class Gated(ApiServer):
    """Drops the fields of the gates that are off, and refuses what is not valid without them, as upstream does."""

    def __init__(self, *on: str, may_not: str = "", fails: Exception | None = None) -> None:
        super().__init__(VirtualClock())
        self._on = frozenset(on)
        self._may_not = may_not
        self._fails = fails

    def try_create(self, resource: Resource, manifest: Object) -> Object:
        if self._fails is not None:
            raise self._fails
        if resource.plural == self._may_not:
            raise ForbiddenError(f"{resource} is forbidden")
        created: Object = copied(manifest)
        for trial in TRIALS:
            if trial.gate not in self._on and trial.resource == resource and trial.spec == manifest["spec"]:
                for path in filter(None, (trial.path, trial.former)):
                    owner: Any = created
                    for part in path[:-1]:
                        owner = owner[part]
                    del owner[path[-1]]
                if trial.refused:
                    raise InvalidError(f"create {resource}: {path_text(trial.refused)}: exactly one is required (422)")
        return created


@pytest.mark.parametrize("gate", sorted(ALL))
def test_a_gate_is_on_if_its_field_is_kept(gate: str) -> None:
    assert prove(Gated(gate)).gates == {name: name == gate for name in ALL}
    assert prove(Gated(*(ALL - {gate}))).gates == {name: name != gate for name in ALL}


def test_the_field_that_another_release_had_proves_the_gate_as_well() -> None:
    class Former(Gated):
        def try_create(self, resource: Resource, manifest: Object) -> Object:
            created = super().try_create(resource, manifest)
            for device in created["spec"].get("devices", []) if resource.plural == "resourceslices" else ():
                device.pop("nodeAllocatableResources", None)
            return created

    assert prove(Former(*ALL)).gates["DRANodeAllocatableResources"] is True


def test_nothing_is_created() -> None:
    api = Gated(*ALL)
    prove(api)
    assert api.writes == 0


def test_every_gate_that_is_tried_changes_something_here() -> None:
    assert GATES.keys() >= ALL
    assert len(TRIALS) == len(ALL)


def test_what_may_not_be_tried_stays_assumed() -> None:
    proof = prove(Gated(*ALL, may_not="resourceclaims"))
    assert proof.unproven == dict.fromkeys(CLAIMS, "that takes the right to create resourceclaims.resource.k8s.io")
    assert proof.gates == dict.fromkeys(ALL - CLAIMS, True)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(InvalidError("a webhook does not support dry runs"), "does not support dry runs", id="webhook"),
        pytest.param(NotFoundError("no"), "are not served as resource.k8s.io/v1", id="not-served"),
        pytest.param(UnavailableError("no answer"), "no answer", id="no-answer"),
    ],
)
def test_an_answer_that_says_nothing_proves_nothing(error: Exception, why: str) -> None:
    proof = prove(Gated(*ALL, fails=error))
    assert proof.gates == {}
    assert proof.unproven.keys() == ALL
    assert all(why in reason for reason in proof.unproven.values())


def test_a_proof_takes_the_place_of_what_was_assumed() -> None:
    proof = Proof({"DRADeviceTaints": not REFERENCE.gates.device_taints, "DRAAdminAccess": True})
    profile = proof.applied_to(REFERENCE)
    assert profile.gates.device_taints is not REFERENCE.gates.device_taints
    assert profile.proven == ("DRADeviceTaints", "DRAAdminAccess")
    assert proof.contradicts(REFERENCE) == {"DRADeviceTaints": not REFERENCE.gates.device_taints}
    assert proof.contradicts(profile) == {}


def said(proof: Proof, *slices: ResourceSlice, profile: KubernetesProfile = REFERENCE) -> list[Item]:
    snapshot = Snapshot(profile=proof.applied_to(profile), slices=slices)
    tried = GatesTried(proof.unproven, proof.contradicts(REFERENCE))
    items = items_of(snapshot, (), installed=True, missing=(), needed=0, problems=(), gates=tried)
    return [item for item in items if item.area == "kubernetes"]


def test_the_doctor_tells_what_is_proven_from_what_is_assumed() -> None:
    on = not REFERENCE.gates.list_type_attributes
    flag = f"DRAListTypeAttributes={str(on).lower()}"
    _, proven, assumed, untried, otherwise = said(Proof({"DRAListTypeAttributes": on}, {"DRAAdminAccess": "no right"}))
    assert proven == Item(Level.OK, "kubernetes", f"feature gates verified by server-side dry runs: {flag}")
    assert "DRAAdminAccess=true" in assumed.message
    assert "DRAListTypeAttributes" not in assumed.message
    assert untried.message == "DRAAdminAccess could not be tried: no right"
    assert (otherwise.level, otherwise.message.rpartition(" ")[2]) == (Level.WARNING, flag)


def test_the_doctor_sees_amounts_that_nobody_is_assumed_to_count() -> None:
    rule = NodeAllocatable(NodeMapping(per_device=Quantity.of(1)))
    device = Device("d", node_allocatable=FrozenMap({"cpu": rule}))
    stored = ResourceSlice("s", "cpu.example.com", Pool("n"), devices=(device,))
    gate, off = "DRANodeAllocatableResources", profile_for("1.37")
    (warning,) = (item for item in said(Proof(), stored, profile=off) if item.level is Level.WARNING)
    assert warning.message == (
        "ResourceSlices of cpu.example.com have nodeAllocatableResources, which are ignored: "
        f"if the cluster has the gate on, set cluster.featureGates to {gate}=true"
    )
    on = off.with_gates(node_allocatable_resources=True)
    for items in (said(Proof({gate: False}), stored, profile=off), said(Proof(), stored, profile=on), said(Proof())):
        assert not any("which are ignored" in item.message for item in items)


def test_the_doctor_says_nothing_of_proofs_without_any() -> None:
    assert len(said(Proof())) == 2

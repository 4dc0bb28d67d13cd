"""Groups and node pools of a template that a launch may not use, and what becomes of the others."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from providers.errors import (
    BackoffScope,
    NotInGroupsError,
    PermissionDeniedError,
    TemplateError,
)
from providers.gcp.node_template.template import GroupRef
from tests.fakes.gce.gke import NodePool
from tests.fakes.gce.state import Group
from tests.gcp import A2, A3, ZONE, Rig, request


def test_a_pool_that_gke_sizes_is_refused_with_the_command() -> None:
    rig = Rig()
    rig.fake.clusters.pools["h100"].autoscaling = True
    with pytest.raises(TemplateError) as raised:
        rig.provider.launch(request())
    assert raised.value.next_step == (
        "gcloud container node-pools update h100 --cluster c1 --location us-central1 --project gpu-project "
        "--no-enable-autoscaling"
    )
    assert rig.fake.calls["createInstances"] == 0


def test_autopilot_is_refused() -> None:
    rig = Rig()
    rig.fake.clusters.autopilot = True
    with pytest.raises(TemplateError, match="Autopilot"):
        rig.provider.launch(request())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"reservation": "r"}, "reservations/r does not exist"),
        ({"model": "FLEX_START"}, "does not say how long they shall run"),
    ],
)
def test_what_is_not_supported_is_not_offered(change: dict[str, str], why: str) -> None:
    rig = Rig()
    for name, value in change.items():
        setattr(rig.group(A2), name, value)
    rig.restart()
    (failure,) = rig.provider.launch(request(offerings=(A2,))).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert why in failure.error.message
    assert A2 not in [status.offering for status in rig.provider.offerings()]


@pytest.mark.parametrize("gone", ["a group", "a node pool"])
def test_the_other_groups_launch_beside_one_that_is_gone(gone: str) -> None:
    rig = Rig()
    found = rig.templates.found
    if gone == "a group":
        rig.templates.found = replace(found, groups=(*found.groups, GroupRef(ZONE, "gone")))
    else:
        rig.templates.found = replace(found, node_pools=("gone", *found.node_pools))
    for launched in (A2, A3):
        answer = rig.provider.launch(request("a", batch=launched.instance_type, offerings=(launched,)))
        assert [one.offering for one in answer.instances] == [launched]
        assert answer.failures == ()


def test_a_launch_that_only_a_missing_group_could_serve_backs_off_from_that_offering_alone() -> None:
    rig = Rig()
    first = rig.group(A3)
    del rig.fake.project.groups[first.zone, first.name]
    answer = rig.provider.launch(request(offerings=(A3, A2)))
    assert [one.offering for one in answer.instances] == [A2]
    (failure,) = answer.failures
    assert (failure.offering, failure.error.code, failure.error.scope) == (A3, "NoGroup", BackoffScope.OFFERING)
    assert first.name in failure.error.message


def test_a_group_that_cannot_be_read_stops_the_launch() -> None:
    """It may hold what an earlier try of the launch has begun."""
    rig = Rig()
    rig.restart()
    rig.fake.denied.add("instanceGroupManagers.get")
    with pytest.raises(PermissionDeniedError):
        rig.provider.launch(request(offerings=(A2,)))
    assert rig.fake.calls["createInstances"] == 0


def test_a_regional_pool_is_its_zonal_groups() -> None:
    rig = Rig()
    other = rig.fake.project.add(Group("b-grp", "us-central1-b", "gke-c1-b", A3.instance_type))
    first = rig.group(A3)
    rig.fake.clusters.pools["h100"] = NodePool(((first.zone, first.name), (other.zone, other.name)))
    there = type(A3)(A3.instance_type, "us-central1-b", "on-demand")
    (machine,) = rig.provider.launch(request(offerings=(there,))).instances
    assert machine.offering == there
    assert len(other.members) == 1

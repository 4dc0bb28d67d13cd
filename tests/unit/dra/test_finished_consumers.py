"""What the controller of claims takes from pods that will not run any more."""

from __future__ import annotations

import pytest

from autoscaler.dra.claims.finished_consumers import will_not_run, without_finished_consumers
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from instance_catalog.dataclass import replace

PODS = (
    Pod("ns", "done", uid="done", phase="Succeeded", node_name="node"),
    Pod("ns", "given-up", uid="given-up", deleting=True),
    Pod("ns", "running", uid="running", node_name="node"),
    Pod("ns", "leaving", uid="leaving", node_name="node", deleting=True),
)
DONE = {pod.uid for pod in PODS if will_not_run(pod)}
GROUPS = {"ns/a": Gang("ns", "a", "PodGroup", 1, uid="a-uid")}
HELD = ResourceClaim("ns", "claim", (), allocation=Allocation((AllocatedDevice("r", "d", "pool", "gpu"),)))


def consumers(*names: str) -> tuple[Consumer, ...]:
    return tuple(Consumer("pods", name, name) for name in names)


def of_group(uid: str, *, name: str = "a", api_group: str = API_GROUP) -> tuple[Consumer, ...]:
    return (Consumer("podgroups", name, uid, api_group),)


def settle(claim: ResourceClaim) -> ResourceClaim:
    return without_finished_consumers({claim.key: claim}, DONE, GROUPS).get("ns/claim", claim)


@pytest.mark.parametrize(
    ("reserved", "left", "freed"),
    [
        (consumers("done"), (), True),
        (consumers("given-up"), (), True),
        (consumers("leaving"), consumers("leaving"), False),
        (consumers("done", "running"), consumers("running"), False),
        (consumers("nobody-knows"), consumers("nobody-knows"), False),
        (of_group("a-uid"), of_group("a-uid"), False),
        (of_group("a-earlier"), (), True),
        (of_group("done", name="b"), of_group("done", name="b"), False),
        (of_group("a-earlier", api_group="example.com"), of_group("a-earlier", api_group="example.com"), False),
        ((), (), False),
    ],
    ids=[
        "finished",
        "given up before it ran",
        "not gone yet",
        "another still runs",
        "unknown",
        "a group",
        "a group that was replaced",
        "a group that nobody knows",
        "a group of another API",
        "nobody",
    ],
)
def test_the_last_consumer_takes_the_devices_with_it(
    reserved: tuple[Consumer, ...], left: tuple[Consumer, ...], freed: bool
) -> None:
    found = settle(replace(HELD, reserved_for=reserved))
    assert found.reserved_for == left
    assert (found.allocation is None) is freed
    assert not found.deleting


def test_a_claim_that_is_being_deleted_keeps_its_devices_for_its_consumers_alone() -> None:
    assert settle(replace(HELD, deleting=True)).allocation is None
    used = replace(HELD, deleting=True, reserved_for=consumers("running"))
    assert settle(used) == used


def test_the_claim_that_was_generated_for_a_finished_pod_is_deleted() -> None:
    found = settle(replace(HELD, controller="done"))
    assert found.deleting
    assert found.allocation is None
    assert settle(replace(HELD, controller="running")) == replace(HELD, controller="running")


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("controller", ["", "done", "running", "gone"])
@pytest.mark.parametrize("reserved", [(), ("done",), ("running",), ("done", "running"), ("gone",)])
def test_a_glance_at_a_claim_says_what_a_look_at_it_does(
    reserved: tuple[str, ...], controller: str, *, deleting: bool
) -> None:
    claim = replace(HELD, reserved_for=consumers(*reserved), controller=controller, deleting=deleting)
    looked = settle(claim)
    glanced = without_finished_consumers({claim.key: claim}, DONE, {})
    assert glanced == ({} if looked is claim else {claim.key: looked})

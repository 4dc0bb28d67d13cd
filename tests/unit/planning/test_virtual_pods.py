"""Pods that exist only in the plan: how they are made, in which order they come, and what is answered from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.model.capacity import CapacityPool, Launcher, Limits
from autoscaler.model.capacity_answers import Why
from autoscaler.model.node import Node
from autoscaler.model.plan import Placement, Plan, Target
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.reason import Code
from autoscaler.model.requested_capacity import (
    CapacityBuffer,
    Condition,
    PodSet,
    PodTemplate,
    ProvisioningRequest,
)
from autoscaler.model.resource_claim import ResourceClaimTemplate
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.model.virtual_pods import VirtualOwner, is_virtual, owner_of, pod_set_of
from autoscaler.planning.answers import BOOKING, request_answers
from autoscaler.planning.demand.virtual_pods import (
    MOST_OBJECTS,
    admitted_keys,
    with_virtual_pods,
    without_virtual_pods,
)
from autoscaler.planning.placement import placement_risk
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import matches
from tests.builders import NOW, claim, plan, pod, snapshot

CREATED = (NOW - timedelta(minutes=5)).timestamp()
TEMPLATE = PodTemplate("default", "workers", replace(pod("workers"), claims=(PodClaim("gpu", None, "one"),)))
REQUEST = ProvisioningRequest(
    "default", "train", "atomic.foreslice.dev", (PodSet("workers", 2),), uid="uid-1", created=CREATED
)
BUFFER = CapacityBuffer("default", "warm", labels.ACTIVE_CAPACITY, template="workers", replicas=1)


def world(**fields: Any) -> Snapshot:
    """A snapshot with the PodTemplate and the ResourceClaimTemplate."""
    templates = FrozenMap({"default/one": ResourceClaimTemplate("default", "one", claim("one"))})
    pods, claims = fields.pop("pods", ()), fields.pop("claims", ())
    return snapshot(
        pods, claims, claim_templates=templates, pod_templates=FrozenMap({TEMPLATE.key: TEMPLATE}), **fields
    )


def test_the_pods_of_a_request_are_a_gang_with_claims_of_their_own() -> None:
    found = with_virtual_pods(world(provisioning_requests=(REQUEST,)))
    assert [each.key for each in found.pods] == [f"default/request:train:workers-{i}" for i in range(2)]
    assert {each.gang.key for each in found.pods if each.gang} == {"default/request:train"}
    assert found.gangs["default/request:train"].min_count == 2
    named = [entry.claim for each in found.pods for entry in each.claims]
    assert len(set(named)) == 2
    assert all(f"default/{name}" in found.claims for name in named)
    assert with_virtual_pods(found) == found, "adding them twice changes nothing"
    assert without_virtual_pods(found) == world(provisioning_requests=(REQUEST,))


@pytest.mark.parametrize(
    ("key", "owner"),
    [
        ("default/request:train:ppt-0-12", VirtualOwner("ProvisioningRequest", "default", "train")),
        ("team/buffer:warm:3", VirtualOwner("CapacityBuffer", "team", "warm")),
        ("default/train-0", None),
        ("default/request", None),
    ],
)
def test_whom_a_name_stands_for(key: str, owner: VirtualOwner | None) -> None:
    assert owner_of(key) == owner
    assert is_virtual(key) == (owner is not None)
    if owner is not None and owner.kind == "ProvisioningRequest":
        assert pod_set_of(key.partition("/")[2]) == ("ppt-0", 12)


def test_what_holds_a_template_back_does_not_hold_its_pods_back() -> None:
    marked = FrozenMap({labels.CONSUME_PROVISIONING_REQUEST: "train"})
    held = replace(
        TEMPLATE, pod=replace(TEMPLATE.pod, annotations=marked, scheduling_gates=("kueue.x-k8s.io/admission",))
    )
    state = replace(world(provisioning_requests=(REQUEST,)), pod_templates=FrozenMap({held.key: held}))
    made = with_virtual_pods(state)
    assert {placement.target for placement in plan(made).placements} == {Target.NEW}


@pytest.mark.parametrize(
    "request_of",
    [
        replace(REQUEST, class_name="best-effort-atomic-scale-up.autoscaling.x-k8s.io"),
        replace(REQUEST, class_name="queued-provisioning.gke.io"),
        replace(REQUEST, class_name="check.foreslice.dev"),
        replace(REQUEST, deleting=True),
        replace(REQUEST, conditions=(Condition("Provisioned", "True"),)),
        replace(REQUEST, conditions=(Condition("Failed", "True"),)),
        replace(REQUEST, pod_sets=(PodSet("nowhere", 2),)),
    ],
)
def test_nothing_is_planned_for_requests_of_others_and_for_those_that_are_over(request_of: ProvisioningRequest) -> None:
    assert with_virtual_pods(world(provisioning_requests=(request_of,))).pods == ()


@pytest.mark.parametrize("class_name", ["atomic.foreslice.dev", "queued-provisioning.gke.io"])
def test_a_pod_that_consumes_a_request_gets_no_node_of_its_own(class_name: str) -> None:
    marked = FrozenMap({labels.CONSUME_PROVISIONING_REQUEST: "train"})
    consumer = pod("train-0", "c", annotations=marked)
    done = replace(REQUEST, class_name=class_name, conditions=(Condition("Provisioned", "True", since=NOW),))
    state = world(pods=[consumer], claims=[claim("c")], provisioning_requests=(done,))
    assert plan(with_virtual_pods(state)).launches == ()


def test_real_pods_come_before_buffers() -> None:
    pool = CapacityPool("team", limits=Limits(accelerators=1))
    state = world(
        pods=[pod("job", "c", priority=-1000)], claims=[claim("c")], pools=(pool,), capacity_buffers=(BUFFER,)
    )
    found = plan(with_virtual_pods(state))
    assert [placement.pod for placement in found.placements] == ["default/job"]
    assert [entry.pod for entry in found.left_out] == ["default/buffer:warm:0"]


def placed(*targets: Target) -> Plan:
    places = (Placement(f"default/request:train:workers-{i}", t, f"n{i}") for i, t in enumerate(targets))
    return Plan(placements=tuple(places))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (placed(Target.EXISTING, Target.EXISTING), Why.PROVISIONED),
        (placed(Target.EXISTING, Target.COMING), Why.COMING),
        (placed(Target.EXISTING), Why.NOT_FOUND),
        (placed(Target.EXISTING, Target.NEW), Why.COMING),
    ],
)
def test_a_request_is_provisioned_when_every_pod_has_a_node_that_is_there(found: Plan, why: Why) -> None:
    state = with_virtual_pods(world(provisioning_requests=(REQUEST,)))
    (answer,) = request_answers(state, found, NOW, {})
    assert [condition.why for condition in answer.conditions] == [Why.ACCEPTED, why]
    assert answer.nodes == (("n0", "n1") if why is Why.PROVISIONED else ())


@pytest.mark.parametrize(("age", "over"), [(BOOKING, True), (BOOKING - timedelta(seconds=1), False)])
def test_a_booking_lasts_ten_minutes(age: timedelta, *, over: bool) -> None:
    done = replace(REQUEST, conditions=(Condition("Provisioned", "True", since=NOW - age),))
    found = request_answers(world(provisioning_requests=(done,)), Plan(), NOW, {})
    assert [condition.why for answer in found for condition in answer.conditions] == (
        [Why.BOOKING_EXPIRED] if over else []
    )


def test_a_namespace_that_asks_for_too_much_delays_itself_alone() -> None:
    def asking(namespace: str, name: str, count: int) -> ProvisioningRequest:
        return replace(REQUEST, namespace=namespace, name=name, pod_sets=(PodSet("workers", count),))

    greedy = [asking("greedy", f"r{number}", 4_000) for number in range(25)]
    small = asking("small", "one", 2)
    admitted = admitted_keys([*greedy, small], {})
    assert admitted == {
        "ProvisioningRequest greedy/r0",
        "ProvisioningRequest small/one",
        "ProvisioningRequest greedy/r1",
        "ProvisioningRequest greedy/r2",  # the one that goes beyond the bound: the largest there may be has its turn
    }
    huge = [asking("a-greedy", f"r{number}", 10_000) for number in range(5)]
    admitted = admitted_keys([*huge, small], {"other/buffer": 10_000})
    assert "ProvisioningRequest small/one" in admitted
    assert len(admitted) == 2
    many = [asking("greedy", f"r{number:03}", 1) for number in range(300)]
    admitted = admitted_keys([*many, small], {})
    assert (len(admitted), "ProvisioningRequest small/one" in admitted) == (MOST_OBJECTS, True)


def test_a_request_that_waits_for_its_turn_is_told_so_and_has_not_failed() -> None:
    requests = tuple(replace(REQUEST, name=f"r{number:03}") for number in range(MOST_OBJECTS + 1))
    seen = with_virtual_pods(world(provisioning_requests=requests))
    left_out = {owner.key for each in seen.pods if (owner := owner_of(each.key))}
    assert len(left_out) == MOST_OBJECTS
    (waiting,) = (r for r in requests if r.key not in left_out)
    (answer,) = (a for a in request_answers(seen, Plan(), NOW, {}) if a.request.name == waiting.name)
    condition = answer.conditions[-1]
    assert (condition.type.value, condition.true, condition.why) == ("Provisioned", False, Why.NOT_FOUND)
    assert condition.reasons[0].code is Code.WAITS_FOR_TURN


def test_neither_a_tenants_label_nor_a_templates_node_takes_a_node_from_others() -> None:
    mark = FrozenMap({labels.PROVISIONING_REQUEST: "me", "app": "x"})
    named = replace(TEMPLATE, pod=replace(TEMPLATE.pod, node_name="somebodys"))
    others = DaemonSet("default", "agent", replace(pod("agent"), labels=mark))
    found = with_virtual_pods(
        replace(
            world(pods=[replace(pod("real"), labels=mark)], provisioning_requests=(REQUEST,)),
            daemon_sets=(others,),
            pod_templates=FrozenMap({named.key: named}),
        )
    )
    real, *virtual = found.pods
    assert dict(real.labels) == dict(found.daemon_sets[0].pod.labels) == {"app": "x"}
    assert [each.node_name for each in virtual] == [None, None]
    assert all(labels.PROVISIONING_REQUEST in each.labels for each in virtual)


def test_the_unlucky_order_is_tried_for_small_requests_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def tries(pods: list[Pod], *_: object) -> None:
        tried.append(len(pods))
        raise RuntimeError("enough")

    monkeypatch.setattr(placement_risk, "schedule", tries)
    sets = (PodSet("workers", placement_risk.MOST), PodSet("launcher", 1))
    assert placement_risk.pods_at_risk(replace(REQUEST, pod_sets=sets), snapshot([]), []) == {}
    with pytest.raises(RuntimeError):
        placement_risk.pods_at_risk(
            replace(REQUEST, pod_sets=(PodSet("workers", 1), PodSet("launcher", 1))), snapshot([]), []
        )
    assert tried == [0]


def test_only_pods_on_its_own_nodes_consume_a_booking() -> None:
    provisioned = replace(REQUEST, conditions=(Condition("Provisioned", "True", "Provisioned", since=NOW),))
    consumer = replace(
        pod("old"), annotations=FrozenMap({labels.CONSUME_PROVISIONING_REQUEST: "train"}), node_name="elsewhere"
    )
    pods = [consumer, replace(consumer, name="older")]
    own = Node("own", labels=FrozenMap({labels.PROVISIONING_REQUEST: REQUEST.node_label}))
    seen = world(pods=pods, provisioning_requests=(provisioned,))
    assert request_answers(replace(seen, nodes=(own,)), Plan(), NOW, {}) == ()
    here = tuple(replace(each, node_name="own") for each in seen.pods)
    (answer,) = request_answers(replace(seen, nodes=(own,), pods=here), Plan(), NOW, {})
    assert [condition.why for condition in answer.conditions] == [Why.CONSUMED]
    leaving = tuple(replace(each, deleting=True) for each in here)
    assert request_answers(replace(seen, nodes=(own,), pods=leaving), Plan(), NOW, {}) == ()


def test_nodes_that_another_autoscaler_may_end_are_not_promised() -> None:
    pools = (CapacityPool("ours"), CapacityPool("theirs", launcher=Launcher.CLUSTER_AUTOSCALER))
    ours, theirs = (Node(name, labels=FrozenMap({labels.POOL: name})) for name in ("ours", "theirs"))
    pods = with_virtual_pods(replace(world(provisioning_requests=(REQUEST,)), pools=pools)).pods
    assert len(pods) == 2
    for made in pods:
        assert made.affinity is not None
        assert [matches(made.affinity, name=found.name, labels=found.labels) for found in (ours, theirs)] == [
            True,
            False,
        ]


@pytest.mark.parametrize(
    ("request_", "feature"),
    [
        (replace(REQUEST, pod_sets=(PodSet("workers", 2), PodSet("workers", 1))), "one PodTemplate in two pod sets"),
        (replace(REQUEST, name="r" * 280), "characters together"),
    ],
    ids=["a template twice", "long names"],
)
def test_requests_whose_pods_cannot_be_told_apart_or_written_down_are_refused(
    request_: ProvisioningRequest, feature: str
) -> None:
    seen = with_virtual_pods(world(provisioning_requests=(request_,)))
    assert seen.pods == ()
    (answer,) = request_answers(seen, Plan(), NOW, {})
    condition = answer.conditions[-1]
    assert (condition.type.value, condition.why) == ("Failed", Why.NO_PODS)
    assert feature in str(condition.reasons[0].detail)

"""Which pods a question about one pod is about."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.situation import Situation
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, claim, gpus, pairs, plan, pod, snapshot

POLICY = Policy(considered=10_000)


def test_a_pod_of_another_namespace_is_not_alike() -> None:
    ours, theirs = pod("p", "c", owner="Job/train"), replace(pod("q", "d", owner="Job/train"), namespace="other")
    given = snapshot([ours, theirs], [claim("c", gpus(12)), replace(claim("d", gpus(12)), namespace="other")])
    plan = plan_for(given, CATALOG, POLICY, NOW)
    found = Situation.of(ours, given, CATALOG, plan)
    assert found is not None
    assert [each.key for each in found.pods] == ["default/p"]
    assert isinstance(found.pod, Pod)


@pytest.mark.parametrize(("label", "bought"), [("example.com/team", True), (labels.SIMULATED_GPUS, False)])
def test_nothing_is_bought_for_a_pod_that_wants_a_simulated_node(label: str, bought: bool) -> None:
    asked = replace(pod("p", "c"), node_selector=FrozenMap({label: "a"}))
    given = snapshot([asked], [claim("c", gpus(1))])
    plan = plan_for(given, CATALOG, POLICY, NOW)
    assert [entry.pod for entry in plan.left_out] == [asked.key]
    assert bool(advise(asked, given, CATALOG, plan, POLICY, NOW)) is bought


def test_copies_that_nothing_owns_change_together() -> None:
    """Only the number at the end of their names differs, and they ask for the same."""
    pods, claims = pairs(3, gpus(12))
    state = snapshot(pods, claims)
    found = Situation.of(pods[0], state, CATALOG, plan(state))
    assert found is not None
    assert [one.name for one in found.pods] == ["p00", "p01", "p02"]
    state = snapshot(pods[:2], [claims[0], replace(claims[1], requests=(gpus(13),))])
    found = Situation.of(pods[0], state, CATALOG, plan(state))
    assert found is not None
    assert [one.name for one in found.pods] == ["p00"]


@pytest.mark.parametrize(
    ("head", "worker", "found"),
    [
        ({"app": "a"}, {"app": "a", "group": "w"}, ("group", "w")),
        ({"app": "h"}, {"app": "w", "kueue.x-k8s.io/queue-name": "q"}, ("app", "w")),
        ({"app": "h"}, {"app": "8", labels.POD_TEMPLATE_HASH: "a1"}, None),  # YAML reads 8 as a number
        ({"app": "a"}, {"app": "a"}, None),
        (None, {"app": "a"}, None),  # every pod asks for devices
    ],
)
def test_the_label_that_pods_with_devices_have_alone(
    head: dict[str, str] | None, worker: dict[str, str], found: tuple[str, str] | None
) -> None:
    tpus = FrozenMap({"google.com/tpu": Quantity.of(4)})
    asked = replace(pod("w", labels=FrozenMap(worker)), containers=(Container("main", tpus),))
    pods = [asked] if head is None else [asked, pod("h", labels=FrozenMap(head))]
    state = snapshot(pods)
    situation = Situation.of(asked, state, CATALOG, plan(state))
    assert situation is not None
    assert situation.own_label == found

"""Pods that required affinity ties to one node get a node that is large enough for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from autoscaler.cel.common.evaluation import BudgetSpentError
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Unknown, Verdict
from autoscaler.planning.demand import ties
from autoscaler.planning.demand.ties import ties_of
from autoscaler.planning.supply.hypothetical import as_coming
from autoscaler.planning.work import Ledger
from autoscaler.report.reasons import text_of
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import (
    CATALOG,
    TEAM,
    Pairs,
    gpus,
    joined,
    ours,
    pairs,
    places,
    plan,
    snapshot,
    types,
    why_left,
)


def selecting(app: str, key: str = labels.HOSTNAME) -> PodAffinityTerm:
    return PodAffinityTerm(LabelSelector((Requirement("app", "In", (app,)),)), key, ("default",))


def replicas(count: int, *near: str, app: str, devices: int = 0, **fields: object) -> Pairs:
    """Pods with the label `app`, each with as many devices, that require pods with the labels `near` on their node."""
    pods, claims = pairs(count, gpus(max(1, devices)), prefix=f"{app}-", **fields)
    terms = tuple(selecting(name) for name in near)
    own = {"labels": FrozenMap({"app": app}), "owner": f"ReplicaSet/{app}"}
    pods = [replace(pod, **own, pod_affinity=terms) for pod in pods]
    return (pods, claims) if devices else ([replace(pod, claims=()) for pod in pods], [])


def state(*parts: Pairs, **fields: object) -> Snapshot:
    return snapshot(*joined(*parts), **{"pools": (TEAM,), **fields})  # type: ignore[arg-type]


def live(**machines: str) -> dict[str, Any]:
    """Nodes of these types, by name, without pods."""
    made = [as_coming(ours(name, machine), snapshot([]), CATALOG) for name, machine in machines.items()]
    there = [each for each in made if each is not None]
    return {"nodes": tuple(each.node for each in there), "slices": tuple(s for each in there for s in each.slices)}


def running(node: str, app: str) -> Pairs:
    return [replace(pod, name="first", node_name=node, phase="Running") for pod in replicas(1, app=app)[0]], []


@pytest.mark.parametrize(("count", "devices", "machine"), [(2, 2, "s4"), (4, 1, "s4"), (3, 2, "l8"), (8, 1, "l8")])
def test_a_node_holds_all_replicas(count: int, devices: int, machine: str) -> None:
    found = plan(state(replicas(count, "a", app="a", devices=devices)))
    assert (types(found), len(set(places(found).values()))) == ([machine], 1)
    assert found.left_out == ()


@pytest.mark.parametrize(("count", "devices", "first"), [(5, 2, 4), (3, 5, 1), (12, 1, 8), (17, 1, 8)])
def test_the_node_holds_as_many_as_any_machine_and_the_others_are_told(count: int, devices: int, first: int) -> None:
    found = plan(state(replicas(count, "a", app="a", devices=devices)))
    assert (types(found), len(found.placements)) == (["l8"], first)
    assert len(found.left_out) == count - first
    assert {reason.code for left in found.left_out for reason in left.reasons} == {Code.TIED_SPLIT}
    assert f"{first} of them come first" in text_of(found.left_out[0].reasons[0])


def test_nothing_is_bought_for_pods_of_which_none_fits() -> None:
    found = plan(state(replicas(3, "a", app="a", devices=9)))
    assert (found.launches, len(found.left_out)) == ((), 3)


def test_others_use_other_nodes_or_the_room_beside_them() -> None:
    found = plan(state(replicas(2, "a", app="a", devices=1), replicas(2, app="b", devices=1)))
    assert (types(found), len(found.placements)) == (["s4"], 4)
    found = plan(state(replicas(2, "a", app="a", devices=2), replicas(1, app="b", devices=1)))
    assert types(found) == ["s1", "s4"]
    assert places(found)["a-00"] == places(found)["a-01"]


def test_pods_that_differ_in_amounts_are_tied_as_well() -> None:
    pods, claims = replicas(3, "a", app="a", devices=2)
    claims[1] = replace(claims[1], requests=(gpus(4),))
    found = plan(state(([pods[0], replace(pods[1], priority=3), pods[2]], claims)))
    assert (types(found), len(found.placements)) == (["l8"], 3)


def test_a_pod_that_needs_two_labels_of_different_pods_never_starts() -> None:
    """kube-scheduler wants one pod that all terms select."""
    found = plan(state(replicas(1, app="b", devices=1), replicas(2, "a", "b", app="a", devices=1)))
    assert sorted(places(found)) == ["b-00"]
    assert types(found) == ["s1"]


def test_a_later_replica_does_not_buy() -> None:
    found = plan(state(running("old", "a"), replicas(2, "a", app="a", devices=2), **live(old="s1")))
    assert (found.launches, found.placements) == ((), ())
    assert why_left(found, "a-00") == why_left(found, "a-01") == [Code.POD_AFFINITY]


def test_later_replicas_use_the_room_beside_the_first() -> None:
    found = plan(state(running("old", "a"), replicas(2, "a", app="a", devices=3), **live(free="l8", old="s4")))
    assert (found.launches, places(found)) == ((), {"a-00": "old"})
    assert why_left(found, "a-01") == [Code.POD_AFFINITY]


def test_where_the_first_replica_has_room_the_others_cannot_go_elsewhere() -> None:
    """kube-scheduler puts the first one onto the existing node, and the others must join it."""
    found = plan(state(replicas(3, "a", app="a", devices=2), **live(old="s4")))
    assert (found.launches, places(found)) == ((), {"a-00": "old", "a-01": "old"})
    assert why_left(found, "a-02") == [Code.JOINS_NODE]
    assert "old" in text_of(found.left_out[0].reasons[0])


def test_replicas_that_an_existing_node_takes_together_use_it() -> None:
    found = plan(state(replicas(2, "a", app="a", devices=1), **live(little="s1", large="s4")))
    assert (found.launches, set(places(found).values())) == ((), {"large"})


@pytest.mark.parametrize(("devices", "joining"), [(100, {}), (1, {"unsupported": ("x",)}), (1, {})])
@pytest.mark.parametrize("namespace", ["default", "other"])
def test_a_pod_that_wants_to_join_has_no_influence(namespace: str, devices: int, joining: dict[str, Any]) -> None:
    """Anybody may write an affinity that selects the pods of others, and a pod that no node takes."""
    (joiner,), claims = replicas(1, "a", app="x", devices=devices, **joining)
    joiner = replace(joiner, namespace=namespace)
    claims = [replace(each, namespace=namespace) for each in claims]
    for first in (replicas(1, app="a", devices=1), replicas(3, "a", app="a", devices=2)):
        found = plan(state(first, ([joiner], claims)))
        assert {pod.key for pod in first[0]} <= places_by_key(found).keys()


def places_by_key(found: Plan) -> dict[str, str]:
    return {placed.pod: placed.node for placed in found.placements}


def test_replicas_with_a_choice_are_not_tied() -> None:
    """One may join the pod of another workload with their label, wherever that goes."""
    ((other,), _) = replicas(1, app="a", devices=1)
    tied = replicas(2, "a", app="a", devices=1)[0]
    pods = [replace(other, name="other", owner="ReplicaSet/b", claims=()), *tied]
    assert ties_of(pods, World.of(snapshot(pods))) == {}
    assert ties_of(tied, World.of(snapshot(pods))) == {}  # nothing is bought for the other one
    assert set(ties_of(tied, World.of(snapshot(tied)))) == {pod.key for pod in tied}


def test_clients_that_do_not_select_themselves_are_not_tied() -> None:
    clients = replicas(2, "server", app="client", devices=1)[0]
    assert ties_of(clients, World.of(snapshot(clients))) == {}


def test_nothing_is_bought_where_it_is_not_known_if_the_first_replica_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work ends between the question for all replicas and the one for the first."""
    ask = Ledger.fit_present

    def fit_present(self: Ledger, index: int, pods: Sequence[Pod], name: str, world: World) -> Verdict:
        spent = Unknown((self.reason(index, pods[0], BudgetSpentError()),))
        return ask(self, index, pods, name, world) if len(pods) > 1 else spent

    monkeypatch.setattr(Ledger, "fit_present", fit_present)
    found = plan(state(replicas(3, "a", app="a", devices=2), **live(old="s4")))
    assert (found.launches, found.placements) == ((), ())
    assert why_left(found, "a-00") == [Code.WORK_BUDGET]


def test_workloads_with_too_many_pods_to_compare_are_planned_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = replicas(2, "a", app="a", devices=1)[0]
    monkeypatch.setattr(ties, "_MOST_COMPARED", 1)
    assert ties_of(tied, World.of(snapshot(tied))) == {}


def test_thousands_of_replicas_take_no_quadratic_time() -> None:
    found = plan(state(replicas(600, "a", app="a", devices=1)))
    assert (types(found), len(found.placements)) == (["l8"], 8)


def test_replicas_with_affinity_over_zones_share_a_zone() -> None:
    pods, claims = replicas(3, app="a", devices=4)
    pods = [replace(pod, pod_affinity=(selecting("a", labels.ZONE),)) for pod in pods]
    zones = ("us-east-1a", "us-east-1b")
    requirement = Requirement(labels.ZONE, "In", zones)
    found = plan(state((pods, claims), pools=(replace(TEAM, requirements=(requirement,)),)))
    assert len(found.placements) == 3
    assert len({node.offerings[0].zone for node in found.launches}) == 1

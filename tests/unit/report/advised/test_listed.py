"""One advice as a list of steps, with the result and remarks."""

from __future__ import annotations

import pytest

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.trial import Advice, Result
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Fact
from autoscaler.report.advised.listed import advice_document, advice_lines, listed
from instance_catalog.kubernetes.labels import HOSTNAME
from instance_catalog.types.instance_type import CapacityType

DROPPED = Change.of(ChangeKind.DROP_NODE_SELECTOR, "pod default/p", lambda found: found, key="disk", value="ssd")
LOWERED = Change.of(ChangeKind.LOWER_COUNT, "claim default/c, request gpu", lambda found: found, wanted=9, instead=8)
ON_NODES = Result((), None, ("node-1",), useless=("default/p: does not start there",), any_gpu="names no GPU")


def test_one_step_has_no_number_and_each_remark_is_a_note() -> None:
    assert advice_lines(Advice(DROPPED, ON_NODES)) == [
        "pod default/p: drop nodeSelector disk=ssd",
        "→ 1 existing node: node-1",
        "note: default/p: does not start there",
        "note: without it, the pod names no GPU",
    ]


@pytest.mark.parametrize(("nodes", "told"), [(1, False), (8, True)])
def test_pods_that_named_one_node_and_get_several_are_told_how_to_share_one(nodes: int, told: bool) -> None:
    kind, names = ChangeKind.DROP_NODE_SELECTOR, ("node-7",)
    one = Change.of(kind, "pod default/p", lambda found: found, key=HOSTNAME, value="node-7", nodes=names)
    machine = OfferingRef("g2-standard-4", "any", CapacityType.ON_DEMAND)
    *_, last = advice_lines(Advice(one, Result(((machine, nodes),), None, ())))
    said = (
        "note: the pods named 1 node and get 8 here; those that have to share one need a required podAffinity to "
        "each other with topologyKey kubernetes.io/hostname"
    )
    assert (last == said) == told


@pytest.mark.parametrize(("nodes", "told"), [(2, False), (3, True)])
def test_pods_that_get_as_many_nodes_as_they_named_share_as_before(nodes: int, told: bool) -> None:
    names = ("node-7", "node-8")
    kind = ChangeKind.DROP_NODE_AFFINITY
    one = Change.of(kind, "pod default/p", lambda found: found, key=HOSTNAME, nodes=names)
    machine = OfferingRef("g2-standard-4", "any", CapacityType.ON_DEMAND)
    *_, last = advice_lines(Advice(one, Result(((machine, nodes),), None, ())))
    assert ("the pods named 2 nodes and get 3 here" in last) == told


def test_pods_with_a_host_port_in_common_are_not_told_to_share_a_node() -> None:
    kind, names, ports = ChangeKind.DROP_NODE_SELECTOR, ("node-7",), ("23456 (x, which y adds)",)
    facts: dict[str, Fact] = {"key": HOSTNAME, "value": "node-7", "nodes": names, "ports": ports}
    one = Change.of(kind, "pod default/p", lambda found: found, **facts)
    machine = OfferingRef("g2-standard-4", "any", CapacityType.ON_DEMAND)
    *_, last = advice_lines(Advice(one, Result(((machine, 2),), None, ())))
    assert last == (
        "note: the pods named 1 node and get 2 here: each has host port 23456 (x, which y adds), so no two of them "
        "share a node"
    )


def test_several_steps_are_numbered() -> None:
    advice = Advice(Change.together(DROPPED, LOWERED), Result((), None, ("node-1",)))
    assert advice_lines(advice) == [
        "(1) pod default/p: drop nodeSelector disk=ssd",
        "(2) claim default/c, request gpu: request 8 devices instead of 9",
        "→ 1 existing node: node-1",
    ]


def test_the_document_has_what_the_lines_say() -> None:
    advice = Advice(Change.together(DROPPED, LOWERED), ON_NODES)
    (found,) = advice_document([advice])
    assert listed(found["steps"], found["result"]["text"], found["notes"]) == advice_lines(advice)
    assert found["text"] == (
        "(1) pod default/p: drop nodeSelector disk=ssd; "
        "(2) claim default/c, request gpu: request 8 devices instead of 9"
    )

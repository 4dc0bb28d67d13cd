"""A machine whose end moves while its node drains for it, and pods that come after the notice of that end."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import DISRUPTION_BUDGETS, NODES, PODS
from autoscaler.lifecycle.provisioned_node import last_edge
from autoscaler.model.capacity import AtDeadline, CapacityBlock, Drain
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT, DO_NOT_DISRUPT
from tests.unit.execution.node_site import Site

BUDGET = timedelta(minutes=15)


def block(site: Site, end: datetime) -> CapacityBlock:
    """The node's block, which ends then."""
    start = site.desk.now - timedelta(days=1)
    return CapacityBlock(
        "cb", "p5.48xlarge", "z", 1, start, end, drain=Drain(budget=BUDGET, at_deadline=AtDeadline.LEAVE)
    )


def protect(site: Site, name: str) -> None:
    """A pod on the node that a PodDisruptionBudget keeps from being evicted."""
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    site.desk.api.create(DISRUPTION_BUDGETS, budget)
    site.pod(name, labels={"app": "x"})


def notices(site: Site, pod: str) -> tuple[str | None, str | None]:
    """The end of the machine as its pod and its Node have it."""
    objects = (site.desk.api.get(PODS, pod, namespace="default"), site.desk.api.get(NODES, "n1"))
    of_pod, of_node = (found["metadata"].get("annotations", {}).get(CAPACITY_ENDS_AT) for found in objects)
    return of_pod, of_node


def text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def test_a_pod_that_came_after_the_notice_is_told_while_the_node_drains(site: Site) -> None:
    end = site.desk.now + timedelta(minutes=10)
    site.blocks = (block(site, end),)
    protect(site, "late")
    site.drain(Code.BLOCK_ENDING)
    (trouble,) = site.carry_out()
    assert (trouble.reason, site.node.phase) == ("Blocked", Phase.DRAINING)
    assert notices(site, "late") == (text(end), text(end))


@pytest.mark.parametrize(("recreated", "evicted"), [("7002", True), ("", False)])
def test_a_mark_holds_no_pod_on_a_machine_that_is_another_one(site: Site, recreated: str, evicted: bool) -> None:
    site.blocks = (block(site, site.desk.now + timedelta(days=1)),)
    site.pod("job", annotations={DO_NOT_DISRUPT: "true"})
    site.desk.journal.save_node(replace(site.node, recreated_as=recreated))
    site.drain(Code.MACHINE_RECREATED)
    site.carry_out()
    assert (site.evicted("job"), site.node.phase) == (evicted, Phase.DRAINING)


def test_a_drain_for_the_end_of_a_block_that_is_extended_is_taken_back(site: Site) -> None:
    site.blocks = (block(site, site.desk.now + timedelta(minutes=10)),)
    protect(site, "job")
    site.drain(Code.BLOCK_ENDING)
    site.carry_out()
    site.blocks = (block(site, site.desk.now + timedelta(days=1)),)
    site.pod("other")
    site.carry_out()
    assert (site.node.phase, last_edge(site.node), site.node.reasons) == (Phase.READY, "EndPostponed", ())
    assert not site.evicted("other")
    site.consider()
    assert (site.taints, notices(site, "job")) == ([], (None, None))
    written = site.desk.api.writes
    site.consider()
    assert site.desk.api.writes == written


def test_an_end_that_moves_by_less_than_the_drain_takes_changes_nothing(site: Site) -> None:
    site.blocks = (block(site, site.desk.now + timedelta(minutes=5)),)
    protect(site, "job")
    site.drain(Code.BLOCK_ENDING)
    site.carry_out()
    later = site.desk.now + BUDGET
    site.blocks = (block(site, later),)
    site.carry_out()
    assert (site.node.phase, notices(site, "job")[0]) == (Phase.DRAINING, text(later))


@pytest.mark.parametrize("deleted", ["block", "ProvisionedNode"])
def test_what_a_person_deleted_drains_on(site: Site, deleted: str) -> None:
    site.drain(Code.BLOCK_ENDING)
    site.pod("job")
    node = site.node
    if deleted == "ProvisionedNode":
        site.blocks = (block(site, site.desk.now + timedelta(days=1)),)
        node = replace(node, deleting=True)
    site.carry_out(Pending(leaving=(node,)))
    assert (site.node.phase, site.evicted("job")) == (Phase.DRAINING, True)


@pytest.mark.parametrize(
    ("minutes", "phase"),
    [(None, Phase.READY), (16, Phase.READY), (15, Phase.DRAINING), (1, Phase.DRAINING)],
    ids=["withdrawn", "moved", "not far enough", "near"],
)
def test_of_a_single_machine_too(site: Site, minutes: int | None, phase: Phase) -> None:
    site.drain(Code.NODE_RECLAIMED)
    end = None if minutes is None else site.desk.now + timedelta(minutes=minutes)
    site.desk.journal.save_node(replace(site.node, reclaim_at=end))
    site.pod("job")
    site.carry_out()
    assert (site.node.phase, site.evicted("job")) == (phase, phase is Phase.DRAINING)


def test_a_drain_with_another_reason_goes_on(site: Site) -> None:
    site.blocks = (block(site, site.desk.now + timedelta(days=1)),)
    site.drain(Code.POOL_DELETED)
    site.pod("job")
    site.carry_out()
    assert (site.node.phase, site.evicted("job")) == (Phase.DRAINING, True)

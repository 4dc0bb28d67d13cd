"""Replicas with required affinity to their own labels share a domain, and their node takes as many as any machine."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import TEAM, claim, gpus, plan, pod, snapshot

SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LARGEST = 8  # devices of the largest machine with a price
ZONES = ("us-east-1a", "us-east-1b")


@st.composite
def workloads(draw: st.DrawFn, key: str) -> Snapshot:
    """Up to three workloads: most with affinity to their own labels, some to those of the one before."""
    pods: list[Pod] = []
    claims: list[ResourceClaim] = []
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        near = draw(st.sampled_from([name, name, "", "a"]))
        selector = LabelSelector((Requirement("app", "In", (near,)),))
        terms = (PodAffinityTerm(selector, key, ("default",)),) if near else ()
        for number in range(draw(st.integers(1, 6))):
            one = f"{name}-{number}"
            claims.append(claim(one, gpus(draw(st.integers(1, 4)))))
            pods.append(pod(one, one, labels=FrozenMap({"app": name}), pod_affinity=terms, owner=f"Job/{name}"))
    pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ZONES),)) if key == labels.ZONE else TEAM
    return snapshot(draw(st.permutations(pods)), claims, pools=(pool,))


def own(state: Snapshot, app: str) -> list[Pod]:
    """The pods of the workload, if they select each other."""
    found = [each for each in state.pods if each.labels["app"] == app]
    terms = [term for each in found for term in each.pod_affinity]
    selects = all(term.selector is not None and term.selector.matches(found[0].labels) for term in terms)
    return found if terms and selects else []


@SOME
@given(workloads(labels.HOSTNAME))
def test_replicas_share_a_node_that_takes_as_many_as_any_machine(state: Snapshot) -> None:
    result = plan(state)
    node = {placed.pod: placed.node for placed in result.placements}
    joining = {term.selector for each in state.pods if not own(state, each.labels["app"]) for term in each.pod_affinity}
    for app in ("a", "b", "c"):
        pods = own(state, app)
        placed = [each for each in pods if each.key in node]
        assert len({node[each.key] for each in placed}) <= 1
        if pods and (app != "a" or not joining):
            free, most = LARGEST, 0
            for each in pods:  # in the scheduler's order
                free -= state.claims[f"default/{each.name}"].requests[0].count  # type: ignore[union-attr]
                most += free >= 0
            assert len(placed) >= most
    assert all(launch.pods for launch in result.launches)


@SOME
@given(workloads(labels.ZONE))
def test_replicas_share_a_zone(state: Snapshot) -> None:
    result = plan(state)
    zone = {key: launch.offering.zone for launch in result.launches for key in launch.pods}
    for app in ("a", "b", "c"):
        assert len({zone[each.key] for each in own(state, app) if each.key in zone}) <= 1

"""Properties of filters, scores and scheduling cycles, on cases like the oracle's that Hypothesis draws."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from autoscaler.model.verdict import Fatal, Fits
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.schedule import Choice, adversarial, equally_good, first, schedule, seeded
from autoscaler.scheduling.scores import SCORES, plugin_scores, scores
from autoscaler.scheduling.world import World
from tests.oracle.cases.placement_cases import placement_drawn
from tests.oracle.cases.placement_pods import draw_pod
from tests.oracle.comparing.placements import simulated, snapshot_of
from tests.oracle.upstream import RELEASES, Json

SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RELEASE = RELEASES["1.36"]
# Hypothesis makes these smaller by making what they draw smaller.
CASES = st.randoms(use_true_random=False).map(placement_drawn)


def world_of(case: Json) -> World:
    return World.of(snapshot_of(case, RELEASE, Problems()))


@SOME
@given(CASES, st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_pods_does_not_matter(case: Json, rng: Random) -> None:
    shuffled = {key: rng.sample(case[key], len(case[key])) for key in ("nodes", "pods")}
    assert simulated({**case, **shuffled}, RELEASE).answer == simulated(case, RELEASE).answer


@SOME
@given(CASES)
def test_scores_keep_to_their_range_and_add_up(case: Json) -> None:
    world, pod = world_of(case), parse_pod(case["pod"])
    fitting = {name: Fits() for name in world.nodes}
    by_plugin = plugin_scores(pod, fitting, world)
    for entry in SCORES:
        assert all(0 <= score <= 100 * entry.weight for score in by_plugin.get(entry.plugin, {}).values())
    assert scores(pod, fitting, world) == {
        name: sum(given_scores[name] for given_scores in by_plugin.values()) for name in fitting
    }


@pytest.mark.slow
@pytest.mark.parametrize("choose", [first, adversarial, seeded(7)], ids=["first", "adversarial", "seeded"])
@SOME
@given(case=CASES, rng=st.randoms(use_true_random=False))
def test_every_pod_goes_to_one_of_the_best_nodes_at_its_turn_or_fits_none(
    choose: Choice, case: Json, rng: Random
) -> None:
    about = frozenset({"affinity", "ports", "resources", "spread", "taints"})
    pods = [parse_pod(draw_pod(rng, f"new-{index}", about)) for index in range(3)]
    world = world_of(case)
    found = schedule(pods, world, choose)
    bound = {entry.pod.name: entry for entry in found.bound}
    for pod in pods:
        verdicts = [fit_one(pod, name, world) for name in world.nodes]
        if pod.name not in bound:
            assert any(isinstance(v, Fatal) for v in verdicts) or not any(isinstance(v, Fits) for v in verdicts)
            continue
        entry = bound[pod.name]
        assert entry.node in equally_good(pod, world)
        world = world.placed((pod,), entry.node, entry.verdict)
    assert len(found.bound) + len(found.left) == len(pods)

"""Where the real kube-scheduler puts random pods: always one of the nodes that the scores say are equally good."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.schedule import equally_good
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes.profile import REFERENCE
from tests.e2e.harness.cluster import Cluster
from tests.e2e.harness.control_plane import ControlPlane, Json
from tests.oracle.cases.placement_cases import draw_node
from tests.oracle.cases.placement_pods import draw_pod

SEEDS: Final = (1, 2, 3)
NODES, PODS = 5, 30
SUBJECTS: Final = ("affinity", "pods", "ports", "resources", "spread", "taints")


def pods(random: Random) -> list[Json]:
    """Pods of the one namespace there is, each about a few things."""
    found = [
        draw_pod(random, f"pod-{index:02}", frozenset(random.sample(SUBJECTS, random.randint(1, 3))))
        for index in range(PODS)
    ]
    for manifest in found:
        manifest |= {"apiVersion": "v1", "kind": "Pod"}
        manifest["metadata"]["namespace"] = "default"
        del manifest["metadata"]["uid"]
        manifest["spec"].pop("overhead", None)  # comes from RuntimeClasses only
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scheduler_takes_one_of_the_best_nodes(seed: int, control_plane: ControlPlane) -> None:
    random, cluster = Random(seed), Cluster(control_plane)
    nodes = [parse_node(draw_node(random, f"node-{index}", frozenset({"taints"}))) for index in range(NODES)]
    world = World.of(Snapshot(profile=REFERENCE, nodes=tuple(nodes)))
    bound = choices = 0
    try:
        for node in nodes:
            cluster.add_node(node, ())
        cluster.wait_until_ready(NODES)
        for manifest in pods(random):
            pod = parse_pod(manifest)
            options = equally_good(pod, world)
            cluster.apply(manifest)
            placed, refused = cluster.wait_for_answer(pod.name)
            if refused is not None:
                assert not options, (manifest, refused)
                cluster.forget(placed)
                continue
            node_name = placed["spec"]["nodeName"]
            assert node_name in options, (manifest, list(options))
            world = world.placed((pod,), node_name, options[node_name])
            bound, choices = bound + 1, choices + (len(options) < NODES)
    finally:
        cluster.clear()
    assert bound >= PODS // 3
    assert choices >= bound // 2  # or the scores would have said nothing

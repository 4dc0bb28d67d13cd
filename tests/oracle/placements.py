"""Filters on both sides: which plugins refuse a pod on which node, each plugin asked on its own."""

from __future__ import annotations

from time import perf_counter_ns

from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.filters import FILTERS
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap
from tests.oracle.upstream import Given, Json, Release

# Those that need nothing but nodes, pods and namespaces; volumes have table tests.
_PLUGINS = frozenset(
    {
        "InterPodAffinity",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "TaintToleration",
    }
)


def question(case: Json, _: Release) -> Json:
    """What upstream is asked."""
    return dict(case)


def simulated(case: Json, release: Release) -> Given:
    """What the simulator decides."""
    problems = Problems()
    namespaces = {raw["metadata"]["name"]: FrozenMap(raw["metadata"]["labels"]) for raw in case["namespaces"]}
    snapshot = Snapshot(
        profile=release.profile,
        nodes=tuple(parse_node(raw, problems) for raw in case["nodes"]),
        pods=tuple(parse_pod(raw, problems) for raw in case["pods"]),
        namespaces=FrozenMap(namespaces),
    )
    pod = parse_pod(case["pod"], problems)
    if problems.errors:
        return Given({"outcome": "refused", "error": "; ".join(f"{p.field}: {p.message}" for p in problems)}, 0)
    world = World.of(snapshot)
    start = perf_counter_ns()
    refused = {
        state.node.name: sorted(f.plugin for f in FILTERS if f.plugin in _PLUGINS and f.rule(pod, state, world))
        for state in world.states()
    }
    return Given({"outcome": "decided", "refused": refused}, perf_counter_ns() - start)


def difference(found: Json, expected: Json) -> str | None:
    """What differs between the simulator's answer and upstream's, or None."""
    if found["outcome"] != expected["outcome"]:
        return f"{found['outcome']} instead of {expected['outcome']} ({found.get('error') or expected.get('error')})"
    for node, names in expected["refused"].items():
        if found["refused"].get(node) != names:
            wrong = sorted(set(found["refused"].get(node, ())) ^ set(names))
            return f"{','.join(wrong)} differ on {node}: {found['refused'].get(node)} instead of {names}"
    return None

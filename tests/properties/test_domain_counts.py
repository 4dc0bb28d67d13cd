"""What is counted once and then corrected for changes is what counting all nodes anew gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.node_state import DomainCounts
from autoscaler.scheduling.pod_filters import inter_pod_affinity, topology_spread
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import pod, snapshot

_APPS = ("a", "b")
_ZONES = ("x", "y", "")
_KEYS = (labels.ZONE, labels.HOSTNAME)
_selectors = st.sampled_from([LabelSelector(), *(LabelSelector((Requirement("app", "In", (app,)),)) for app in _APPS)])
_terms = st.lists(
    st.builds(PodAffinityTerm, _selectors, st.sampled_from(_KEYS), st.just(("default",))), max_size=2
).map(tuple)
_spreads = st.lists(
    st.builds(
        TopologySpread,
        st.integers(1, 2),
        st.sampled_from(_KEYS),
        st.just(WhenUnsatisfiable.DO_NOT_SCHEDULE),
        _selectors,
        st.sampled_from([None, 2, 3]),
    ),
    max_size=2,
).map(tuple)
_pods = st.builds(
    lambda app, near, apart, spread: pod(
        "p", labels=FrozenMap({"app": app}), pod_affinity=near, pod_anti_affinity=apart, topology_spread=spread
    ),
    st.sampled_from(_APPS),
    _terms,
    _terms,
    _spreads,
)
_NODES = 9


def _node(name: str, zone: str) -> Node:
    found = {labels.HOSTNAME: name} | ({labels.ZONE: zone} if zone else {})
    return Node(name, labels=FrozenMap(found))


def _changed(world: World, found: Pod, where: int, step: int) -> World:
    """One more pod, on a node of the world; without a node; or with a new one."""
    name = f"n{where % _NODES}"
    if step % 4 == 3:
        return world.without_node(name)
    if step % 4 == 2 or name not in world.nodes:
        return world.with_node(_node(f"new{step}", _ZONES[where % len(_ZONES)]), ())
    return world.placed([replace(found, name=f"q{step}")], name, Fits())


@given(
    st.lists(st.sampled_from(_ZONES), min_size=_NODES, max_size=_NODES),
    st.lists(st.tuples(_pods, st.integers(0, _NODES - 1)), max_size=8),
    st.lists(st.tuples(_pods, st.integers(0, _NODES - 1), st.integers(0, 7)), max_size=5),
    st.lists(_pods, min_size=1, max_size=3),
)
def test_counts_that_are_corrected_are_those_of_all_nodes(
    zones: list[str], running: list[tuple[Pod, int]], changes: list[tuple[Pod, int, int]], asking: list[Pod]
) -> None:
    bound = [replace(p, name=f"r{i}", node_name=f"n{where}") for i, (p, where) in enumerate(running)]
    world = World.of(snapshot(bound, nodes=tuple(_node(f"n{i}", zone) for i, zone in enumerate(zones))))
    for found, where, step in [(asking[0], 0, 0), *changes]:
        for one in asking:
            for state in world.states():
                anew = replace(world, counts=DomainCounts())
                assert topology_spread(one, state, world) == topology_spread(one, state, anew)
                assert inter_pod_affinity(one, state, world) == inter_pod_affinity(one, state, anew)
        world = _changed(world, found, where, step)

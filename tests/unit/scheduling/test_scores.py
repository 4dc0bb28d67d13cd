"""Every row of the score table: what it gives and when it stays out. Numbers are those of the upstream formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from autoscaler.model.labels import LabelSelector, Selection
from autoscaler.model.node import Node
from autoscaler.model.pod import (
    Container,
    Pod,
    PodAffinityTerm,
    PodClaim,
    PreferredPodTerm,
    PreferredTerm,
    TopologySpread,
    WhenUnsatisfiable,
)
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, DeviceRequest, FirstAvailable, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.resources import scored_requests
from autoscaler.scheduling.scores import SCORES, likely_nodes, plugin_scores, scores
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint, Toleration

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APP = FrozenMap({"app": "x"})
OF_APP = LabelSelector((Requirement("app", "In", ("x",)),))
MIB = 1024 * 1024


def amounts(**resources: str) -> FrozenMap[str, Quantity]:
    return FrozenMap({name: Quantity.parse(text) for name, text in resources.items()})


def node(name: str, *, zone: str = "a", **fields: Any) -> Node:
    found = Node(
        name,
        labels=FrozenMap({HOST: name, ZONE: zone}),
        allocatable=amounts(cpu="10", memory="10Gi", pods="100"),
    )
    return replace(found, **fields)


ORDINARY = amounts(cpu="1", memory="1Gi")


def pod(name: str = "p", *, requests: FrozenMap[str, Quantity] = ORDINARY, **fields: Any) -> Pod:
    return replace(Pod("ns", name, containers=(Container("c", requests),)), **fields)


def there(where: str, name: str, **fields: Any) -> Pod:
    return pod(name, node_name=where, phase="Running", **fields)


def given(subject: Pod, *nodes: Node, **fields: Any) -> Mapping[str, Mapping[str, int]]:
    """Weighted scores by plugin, when every node passed the filters."""
    world = World.of(replace(Snapshot(nodes=nodes), **fields))
    return plugin_scores(subject, {entry.name: Fits() for entry in nodes}, world)


def prefer(*effects: str) -> tuple[Taint, ...]:
    return tuple(Taint(f"t{index}", "", effect) for index, effect in enumerate(effects))


SOFT, HARD = "PreferNoSchedule", "NoSchedule"


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param(((), ()), (), [300, 300], id="no taints"),
        pytest.param(((), prefer(SOFT)), (), [300, 0], id="one against none"),
        pytest.param((prefer(SOFT), prefer(SOFT, SOFT, SOFT)), (), [201, 0], id="thirds are cut off"),
        pytest.param(((), prefer(HARD)), (), [300, 300], id="hard taints do not score"),
        pytest.param(((), prefer(SOFT)), (Toleration("t0", "Exists", "", SOFT),), [300, 300], id="tolerated"),
        pytest.param(((), prefer(SOFT)), (Toleration("t0", "Exists", "", HARD),), [300, 0], id="of another effect"),
    ],
)
def test_taints(
    taints: tuple[tuple[Taint, ...], ...], tolerations: tuple[Toleration, ...], expected: list[int]
) -> None:
    nodes = [node(f"n{index}", taints=own) for index, own in enumerate(taints)]
    assert list(given(pod(tolerations=tolerations), *nodes)["TaintToleration"].values()) == expected


def in_zone(*zones: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(ZONE, "In", zones),))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param((PreferredTerm(80, in_zone("a")), PreferredTerm(20, in_zone("a", "b"))), [200, 40], id="sums"),
        pytest.param((PreferredTerm(5, in_zone("c")),), [0, 0], id="nobody"),
        pytest.param((PreferredTerm(5, NodeSelectorTerm()),), [0, 0], id="an empty term prefers nothing"),
        pytest.param(
            (PreferredTerm(5, NodeSelectorTerm((Requirement(ZONE, "Near", ("a",)),))),),
            [0, 0],
            id="an unknown operator",
        ),
    ],
)
def test_preferred_node_affinity(terms: tuple[PreferredTerm, ...], expected: list[int]) -> None:
    found = given(pod(preferred_affinity=terms), node("n0"), node("n1", zone="b"))
    assert list(found["NodeAffinity"].values()) == expected


def test_a_pod_that_prefers_no_node_gets_no_score_for_it() -> None:
    assert "NodeAffinity" not in given(pod(), node("n"))


def test_least_allocated_is_the_mean_of_free_shares() -> None:
    found = given(pod(), node("empty"), node("half"), pods=(there("half", "a", requests=amounts(cpu="5")),))
    # 90% and 90%; 40% of cpu, and of memory what is left after 1Gi and the default 200Mi.
    assert found["NodeResourcesFit"] == {"empty": 90, "half": (40 + 88) // 2}


def test_a_resource_beyond_what_is_there_counts_as_full() -> None:
    full = node("n", allocatable=amounts(cpu="500m", memory="10Gi"))
    assert given(pod(), full)["NodeResourcesFit"] == {"n": 45}


PARTS = Pod("ns", "p", containers=(Container("a", amounts(cpu="50m")), Container("b", amounts(memory="1Mi"))))


@pytest.mark.parametrize(
    ("subject", "bound", "expected"),
    [
        pytest.param(PARTS, False, (150, 201 * MIB), id="defaults for each container"),
        pytest.param(PARTS, True, (150, 201 * MIB), id="of a bound pod as well"),
        pytest.param(
            replace(PARTS, pod_requests=amounts(cpu="1")), False, (150, 201 * MIB), id="pod-level requests are not seen"
        ),
        pytest.param(
            replace(PARTS, pod_requests=amounts(cpu="1")), True, (1000, MIB), id="seen of a bound pod, without defaults"
        ),
        pytest.param(
            Pod("ns", "p", containers=(Container("a"),), pod_requests=amounts(cpu="1")),
            True,
            (1000, 200 * MIB),
            id="a default for what is named nowhere",
        ),
        pytest.param(
            Pod("ns", "p", containers=(Container("a", amounts(cpu="0", memory="0")),)),
            False,
            (0, 0),
            id="zero is asked",
        ),
    ],
)
def test_what_least_allocated_counts(subject: Pod, bound: bool, expected: tuple[int, int]) -> None:
    assert scored_requests(subject, bound=bound) == expected


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param(amounts(cpu="2", memory="2Gi"), 75, id="as balanced as before"),
        pytest.param(amounts(cpu="10"), 50, id="all of one and nothing of the other"),
        pytest.param(amounts(cpu="0"), None, id="requests nothing"),
        pytest.param(amounts(memory="4Gi"), 65, id="by a fifth off"),
    ],
)
def test_balance(requests: FrozenMap[str, Quantity], expected: int | None) -> None:
    found = given(pod(requests=requests), node("n")).get("NodeResourcesBalancedAllocation")
    assert found == (None if expected is None else {"n": expected})


def test_a_pod_that_restores_the_balance_is_welcome() -> None:
    lopsided = there("n", "a", requests=amounts(cpu="8"))
    found = given(pod(requests=amounts(memory="8Gi")), node("n"), pods=(lopsided,))
    assert found["NodeResourcesBalancedAllocation"] == {"n": 95}


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        pytest.param({"img:latest": 1000 * MIB}, 48, id="half of the nodes have it"),
        pytest.param({"img:latest": 5000 * MIB}, 100, id="no more than the most"),
        pytest.param({"img:latest": 10 * MIB}, 0, id="too small to matter"),
        pytest.param({"img:1": 1000 * MIB}, 0, id="another tag"),
    ],
)
def test_images(images: dict[str, int], expected: int) -> None:
    subject = Pod("ns", "p", containers=(Container("c", image="img"),))
    found = given(subject, node("n0", images=FrozenMap(images)), node("n1"))
    assert found["ImageLocality"] == {"n0": expected, "n1": 0}


@pytest.mark.parametrize(("version", "expected"), [("1.35", 38), ("1.36", 79), ("1.37", 39)])
def test_a_registry_port_is_not_a_tag_and_mounted_images_count(version: str, expected: int) -> None:
    images = FrozenMap({"host:5000/img:latest": 400 * MIB, "data:1": 400 * MIB})
    subject = Pod("ns", "p", containers=(Container("c", image="host:5000/img"),), image_volumes=("data:1",))
    found = given(subject, node("n", images=images), profile=profile_for(version))
    assert found["ImageLocality"] == {"n": expected}


@pytest.mark.parametrize(("version", "expected"), [("1.34", 100), ("1.35", 100), ("1.36", 75), ("1.37", 75)])
def test_balance_counts_as_it_is_or_as_what_is_gained(version: str, expected: int) -> None:
    found = given(pod(), node("n"), profile=profile_for(version))
    assert found["NodeResourcesBalancedAllocation"] == {"n": expected}


def soft(**fields: Any) -> TopologySpread:
    return replace(TopologySpread(1, ZONE, WhenUnsatisfiable.SCHEDULE_ANYWAY, OF_APP), **fields)


CROWD = tuple(there("n0", f"x{index}", labels=APP) for index in range(2))


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param(soft(), [0, 200], id="the emptier zone"),
        pytest.param(soft(topology_key=HOST), [0, 200], id="the emptier node"),
        pytest.param(soft(topology_key="rack"), [0, 0], id="nodes without the label"),
        pytest.param(soft(selector=LabelSelector()), [200, 200], id="an empty selector counts nothing"),
        pytest.param(
            soft(when_unsatisfiable=WhenUnsatisfiable.DO_NOT_SCHEDULE), None, id="hard constraints do not score"
        ),
    ],
)
def test_soft_topology_spread(constraint: TopologySpread, expected: list[int] | None) -> None:
    found = given(pod(topology_spread=(constraint,)), node("n0"), node("n1", zone="b"), pods=CROWD)
    scored = found.get("PodTopologySpread")
    assert (None if scored is None else list(scored.values())) == expected


@pytest.mark.parametrize(
    ("selections", "owner", "expected"),
    [
        pytest.param((Selection("Service", "ns", "s", OF_APP),), "", [32, 200], id="a Service"),
        pytest.param((Selection("Service", "other", "s", OF_APP),), "", None, id="a Service elsewhere"),
        pytest.param((Selection("ReplicaSet", "ns", "r", OF_APP),), "ReplicaSet/r", [32, 200], id="its ReplicaSet"),
        pytest.param((Selection("ReplicaSet", "ns", "r", OF_APP),), "Job/r", None, id="somebody else's ReplicaSet"),
        pytest.param((), "ReplicaSet/r", None, id="nothing is known"),
    ],
)
def test_pods_of_services_and_controllers_spread_by_default(
    selections: tuple[Selection, ...], owner: str, expected: list[int] | None
) -> None:
    subject = pod(labels=APP, owner=owner)
    # The second node has no zone: defaults do not ask for all labels. 2 pods x ln 4 + 2, and x ln 4 + 4, are 12 in all;
    # the other node has 2, of its maxSkew.
    nodes = (node("n0"), node("n1", labels=FrozenMap({HOST: "n1"})))
    scored = given(subject, *nodes, pods=CROWD, selections=selections).get("PodTopologySpread")
    assert (None if scored is None else list(scored.values())) == expected


NEAR = PodAffinityTerm(OF_APP, ZONE, ("ns",))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param({"preferred_pod_affinity": (PreferredPodTerm(5, NEAR),)}, {}, [200, 0], id="wants to be near"),
        pytest.param(
            {"preferred_pod_anti_affinity": (PreferredPodTerm(5, NEAR),)}, {}, [0, 200], id="wants to be away"
        ),
        pytest.param({}, {"preferred_pod_affinity": (PreferredPodTerm(5, NEAR),)}, [200, 0], id="is wanted near"),
        pytest.param({}, {"preferred_pod_anti_affinity": (PreferredPodTerm(5, NEAR),)}, [0, 200], id="is wanted away"),
        pytest.param({}, {"pod_affinity": (NEAR,)}, [200, 0], id="is needed near"),
        pytest.param({}, {}, None, id="nobody cares"),
        pytest.param(
            {"preferred_pod_affinity": (PreferredPodTerm(5, replace(NEAR, topology_key="rack")),)},
            {},
            None,
            id="about a label that no node has",
        ),
    ],
)
def test_preferences_between_pods(mine: dict[str, Any], theirs: dict[str, Any], expected: list[int] | None) -> None:
    subject, other = pod(labels=APP, **mine), there("n0", "x", labels=APP, **theirs)
    found = given(subject, node("n0"), node("n1", zone="b"), pods=(other,)).get("InterPodAffinity")
    assert (None if found is None else list(found.values())) == expected


def wants(*alternatives: str) -> ResourceClaim:
    subrequests = tuple(DeviceRequest(name, device_class="c") for name in alternatives)
    return ResourceClaim("ns", "gpu", (FirstAvailable("r", subrequests),))


def gets(alternative: str) -> Fits:
    device = AllocatedDevice(f"r/{alternative}", "driver", "pool", "device")
    return Fits(FrozenMap({"ns/gpu": Allocation((device,))}))


def test_first_choices_of_claims_count() -> None:
    subject = pod(claims=(PodClaim("gpu", "gpu"),))
    world = World.of(Snapshot(nodes=(node("n0"), node("n1")), claims=FrozenMap({"ns/gpu": wants("big", "small")})))
    found = plugin_scores(subject, {"n0": gets("small"), "n1": gets("big")}, world)
    assert found["DynamicResources"] == {"n0": 2 * (100 * 7 // 8), "n1": 200}
    before = World.of(replace(world.snapshot, profile=profile_for("1.34")))
    assert "DynamicResources" not in plugin_scores(subject, {"n0": gets("small"), "n1": gets("big")}, before)


def test_claims_that_are_allocated_do_not_score() -> None:
    subject = pod(claims=(PodClaim("gpu", "gpu"),))
    held = replace(wants("big"), allocation=gets("big").allocations["ns/gpu"])
    world = World.of(Snapshot(nodes=(node("n0"),), claims=FrozenMap({"ns/gpu": held})))
    assert plugin_scores(subject, {"n0": Fits()}, world)["DynamicResources"] == {"n0": 0}


def test_totals_add_up_and_equal_nodes_are_equally_likely() -> None:
    nodes = (node("n0"), node("n1"), node("n2", taints=prefer(SOFT)))
    world = World.of(Snapshot(nodes=nodes))
    fitting = {entry.name: Fits() for entry in nodes}
    totals = scores(pod(), fitting, world)
    assert totals["n0"] == totals["n1"] == totals["n2"] + 300
    assert likely_nodes(pod(), fitting, world) == ("n0", "n1")
    assert likely_nodes(pod(), {"n2": Fits()}, world) == ("n2",)
    assert likely_nodes(pod(), {}, world) == ()


def test_the_table_names_each_plugin_once() -> None:
    assert len({entry.plugin for entry in SCORES}) == len(SCORES)

"""Every row of the filter table: one case that passes and one for each way it does not."""

from __future__ import annotations

import pytest

from autoscaler.model.device_class import DeviceClass
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, HostPort, Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import DaemonSet
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown
from autoscaler.scheduling.daemons import daemon_pods
from autoscaler.scheduling.filters import FILTERS
from autoscaler.scheduling.fit import fit, fit_one
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import ZONE
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint, Toleration
from tests.unit.scheduling.scene import APP, bound, codes, node, pod, selector, world


def spread(**fields: object) -> TopologySpread:
    return replace(TopologySpread(1, ZONE, WhenUnsatisfiable.DO_NOT_SCHEDULE, selector(app="x")), **fields)  # type: ignore[arg-type]


def amounts(**found: str) -> FrozenMap[str, Quantity]:
    return FrozenMap({name: Quantity.parse(text) for name, text in found.items()})


GPU = {"deviceclass.resource.kubernetes.io/b": "1"}
TAINTED = replace(node(), taints=(Taint("dedicated", "gpu", "NoSchedule"),))
PREFER = replace(node(), taints=(Taint("dedicated", "gpu", "PreferNoSchedule"),))
CORDONED = replace(node(), unschedulable=True)
UNSCHEDULABLE = Toleration("node.kubernetes.io/unschedulable", "Exists")


@pytest.mark.parametrize(
    ("subject", "on", "expected"),
    [
        pytest.param(pod(), node(), [], id="plain pod fits"),
        pytest.param(pod(node_name="other"), node(), [Code.NODE_NAME_MISMATCH], id="node name differs"),
        pytest.param(pod(), CORDONED, [Code.NODE_UNSCHEDULABLE], id="cordoned"),
        pytest.param(pod(tolerations=(UNSCHEDULABLE,)), CORDONED, [], id="cordoned, tolerated"),
        pytest.param(pod(), TAINTED, [Code.TAINT_NOT_TOLERATED], id="taint"),
        pytest.param(pod(tolerations=(Toleration("dedicated", "Exists"),)), TAINTED, [], id="taint tolerated"),
        pytest.param(
            pod(tolerations=(Toleration("dedicated", "Equal", "cpu"),)),
            TAINTED,
            [Code.TAINT_NOT_TOLERATED],
            id="toleration of another value",
        ),
        pytest.param(pod(), PREFER, [], id="PreferNoSchedule does not filter"),
        pytest.param(
            pod(node_selector=FrozenMap({ZONE: "b"})), node(), [Code.NODE_SELECTOR_MISMATCH], id="node selector"
        ),
        pytest.param(
            pod(affinity=NodeSelector((NodeSelectorTerm((Requirement(ZONE, "In", ("b", "c")),)),))),
            node(),
            [Code.NODE_AFFINITY_MISMATCH],
            id="node affinity",
        ),
        pytest.param(
            pod(
                affinity=NodeSelector(
                    (
                        NodeSelectorTerm((Requirement(ZONE, "In", ("b",)),)),
                        NodeSelectorTerm((Requirement(ZONE, "Exists"),)),
                    )
                )
            ),
            node(),
            [],
            id="affinity terms are ORed",
        ),
        pytest.param(
            pod(affinity=NodeSelector(())), node(), [Code.NODE_AFFINITY_MISMATCH], id="no term matches nothing"
        ),
        pytest.param(pod(cpu="5"), node(), [Code.INSUFFICIENT_RESOURCE], id="too little cpu"),
        pytest.param(pod(unsupported=("spec.future",)), node(), [Code.UNSUPPORTED], id="unknown field"),
    ],
)
def test_one_node(subject: Pod, on: Node, expected: list[Code]) -> None:
    assert codes(subject, on.name, world(nodes=(on,))) == expected


def test_pods_on_the_node_use_its_resources() -> None:
    full = world(pods=(bound("n1", "a", cpu="2"), bound("n1", "b", cpu="1500m")))
    verdict = fit_one(pod(cpu="1"), "n1", full)
    assert isinstance(verdict, DoesNotFit)
    assert verdict.reasons[0].detail == {"resource": "cpu", "wanted": 1000, "free": 500}


def test_whether_a_contested_class_serves_its_implicit_name_is_open() -> None:
    classes = tuple(DeviceClass(name, (), "x/gpu") for name in ("a", "b"))
    seen = world(
        classes=classes, nodes=(node(), replace(node("plugin"), allocatable=amounts(cpu="4", pods="9", **GPU)))
    )
    wanted = Pod("ns", "p", containers=(Container("c", amounts(cpu="1", **GPU)),))
    verdict = fit_one(wanted, "n1", seen)
    assert isinstance(verdict, Unknown)
    assert [reason.code for reason in verdict.reasons] == [Code.CONTESTED_RESOURCE]
    assert codes(wanted, "plugin", seen) == []
    too_large = fit_one(replace(wanted, containers=(Container("c", amounts(cpu="9", **GPU)),)), "n1", seen)
    assert isinstance(too_large, DoesNotFit)
    assert [reason.code for reason in too_large.reasons] == [Code.INSUFFICIENT_RESOURCE, Code.CONTESTED_RESOURCE]


def test_finished_pods_use_nothing() -> None:
    done = bound("n1", "a", cpu="4")
    assert codes(pod(), "n1", world(pods=(replace(done, phase="Succeeded"),))) == []


def test_host_ports_clash_by_protocol_and_address() -> None:
    def serving(name: str, **port: object) -> Pod:
        ports = (replace(HostPort(80), **port),)  # type: ignore[arg-type]
        return Pod("ns", name, containers=(Container("c", host_ports=ports),))

    taken = world(pods=(replace(serving("a", host_ip="10.0.0.1"), node_name="n1"),))
    assert codes(serving("b"), "n1", taken) == [Code.PORT_CONFLICT]
    assert codes(serving("b", protocol="UDP"), "n1", taken) == []
    assert codes(serving("b", host_ip="10.0.0.2"), "n1", taken) == []


def test_pods_that_land_together_compete() -> None:
    seen = world()
    assert isinstance(fit([pod("a", cpu="2"), pod("b", cpu="2")], "n1", seen), Fits)
    assert isinstance(fit([pod("a", cpu="2"), pod("b", cpu="3")], "n1", seen), DoesNotFit)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param(spread(), [Code.TOPOLOGY_SPREAD], id="skew 2 - 0"),
        pytest.param(spread(max_skew=2), [], id="skew allowed"),
        pytest.param(spread(when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY), [], id="soft"),
        pytest.param(spread(topology_key="rack"), [Code.TOPOLOGY_SPREAD], id="node lacks the label"),
        pytest.param(spread(selector=selector(app="y")), [], id="counts only matching pods"),
    ],
)
def test_topology_spread(constraint: TopologySpread, expected: list[Code]) -> None:
    two_zones = world(nodes=(node(), node("n2", zone="b")), pods=(bound("n1", "a", labels=APP),))
    assert codes(pod(labels=APP, topology_spread=(constraint,)), "n1", two_zones) == expected


def test_min_domains_counts_missing_domains_as_empty() -> None:
    one_zone = world(pods=(bound("n1", "a", labels=APP),))
    wanted = pod(labels=APP, topology_spread=(spread(),))
    assert codes(wanted, "n1", one_zone) == []
    strict = pod(labels=APP, topology_spread=(spread(min_domains=2),))
    assert codes(strict, "n1", one_zone) == [Code.TOPOLOGY_SPREAD]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [pytest.param("Ignore", [Code.TOPOLOGY_SPREAD], id="ignored"), pytest.param("Honor", [], id="honoured")],
)
def test_tainted_nodes_count_by_policy(policy: str, expected: list[Code]) -> None:
    empty_tainted = replace(node("n2", zone="b"), taints=(Taint("dedicated"),))
    seen = world(nodes=(node(), empty_tainted), pods=(bound("n1", "a", labels=APP),))
    wanted = pod(labels=APP, topology_spread=(spread(node_taints_policy=policy),))
    assert codes(wanted, "n1", seen) == expected


AFFINITY = PodAffinityTerm(selector(app="x"), ZONE, ("ns",))


def test_affinity_needs_a_matching_pod_in_the_domain() -> None:
    seen = world(nodes=(node(), node("n2", zone="b")), pods=(bound("n2", "a", labels=APP),))
    wanted = pod(pod_affinity=(AFFINITY,))
    assert codes(wanted, "n1", seen) == [Code.POD_AFFINITY]
    assert codes(wanted, "n2", seen) == []


def test_first_pod_with_affinity_to_itself_may_land_anywhere() -> None:
    assert codes(pod(labels=APP, pod_affinity=(AFFINITY,)), "n1", world()) == []
    assert codes(pod(pod_affinity=(AFFINITY,)), "n1", world()) == [Code.POD_AFFINITY]


def test_anti_affinity_works_both_ways() -> None:
    repels = world(pods=(bound("n1", "a", labels=FrozenMap({"app": "y"}), pod_anti_affinity=(AFFINITY,)),))
    assert codes(pod(labels=APP), "n1", repels) == [Code.POD_ANTI_AFFINITY]
    present = world(pods=(bound("n1", "a", labels=APP),))
    assert codes(pod(pod_anti_affinity=(AFFINITY,)), "n1", present) == [Code.POD_ANTI_AFFINITY]


def test_namespace_selector_widens_the_scope() -> None:
    term = PodAffinityTerm(selector(app="x"), ZONE, (), selector(team="red"))
    other = replace(bound("n1", "a", labels=APP), namespace="elsewhere")
    labelled = FrozenMap({"elsewhere": FrozenMap({"team": "red"})})
    wanted = pod(pod_anti_affinity=(term,))
    assert codes(wanted, "n1", world(pods=(other,), namespaces=labelled)) == [Code.POD_ANTI_AFFINITY]
    assert codes(wanted, "n1", world(pods=(other,))) == []


@pytest.mark.parametrize(
    ("declared", "assumed", "version", "expected"),
    [
        pytest.param(("Feature",), False, "1.36.3", [], id="declared"),
        pytest.param((), False, "1.36.3", [Code.NODE_FEATURE_MISSING], id="not declared"),
        pytest.param(None, False, "1.36.3", [Code.UNSUPPORTED], id="unknown"),
        pytest.param(("Feature",), True, "1.36.3", [], id="declared by default"),
        pytest.param(("Other",), True, "1.36.3", [Code.UNSUPPORTED], id="not declared by default"),
        pytest.param((), False, "1.35.0", [], id="before there were declarations"),
    ],
)
def test_declared_features(
    declared: tuple[str, ...] | None,
    assumed: bool,
    version: str,
    expected: list[Code],
) -> None:
    there = replace(node(), declared_features=declared, features_assumed=assumed)
    seen = world(nodes=(there,), profile=profile_for(version))
    assert codes(pod(node_features=("Feature",)), "n1", seen) == expected


def test_a_namespace_selector_of_absence_selects_every_namespace() -> None:
    term = PodAffinityTerm(selector(app="x"), ZONE, (), LabelSelector((Requirement("team", "NotIn", ("red",)),)))
    other = replace(bound("n1", "a", labels=APP), namespace="elsewhere")
    labelled = FrozenMap({"elsewhere": FrozenMap({"team": "red"})})
    # Up to 1.36 upstream asks the selector of the pod being scheduled about no labels; that of others about real ones.
    seen = world(pods=(other,), namespaces=labelled)
    assert codes(pod(pod_anti_affinity=(term,)), "n1", seen) == [Code.POD_ANTI_AFFINITY]
    later = world(pods=(other,), namespaces=labelled, profile=profile_for("1.37"))
    assert codes(pod(pod_anti_affinity=(term,)), "n1", later) == []
    holder = bound("n1", "a", labels=APP, pod_anti_affinity=(term,))
    red = world(pods=(holder,), namespaces=FrozenMap({"ns": FrozenMap({"team": "red"})}))
    assert codes(pod(labels=APP), "n1", red) == []


def test_daemon_sets_run_where_they_select_and_tolerate() -> None:
    everywhere = DaemonSet("kube-system", "log", pod("log"))
    gpu_only = DaemonSet("kube-system", "gpu", pod("gpu", node_selector=FrozenMap({"gpu": "yes"})))
    names = [p.name for p in daemon_pods(node(gpu="yes"), (everywhere, gpu_only))]
    assert names == ["log-n1", "gpu-n1"]
    assert daemon_pods(TAINTED, (everywhere,)) == ()
    assert [p.node_name for p in daemon_pods(CORDONED, (everywhere,))] == ["n1"]
    gated = DaemonSet("team", "gated", pod("gated", scheduling_gates=("later",)))
    assert daemon_pods(node(), (gated,)) == ()


@pytest.mark.parametrize(
    ("cpus", "carried"),
    [
        pytest.param({"a": ("100000", 0)}, [], id="more than the whole node"),
        pytest.param({"a": ("3", 0), "b": ("3", 0)}, ["a-n1"], id="the first of two"),
        pytest.param({"a": ("3", 0), "b": ("3", 5)}, ["b-n1"], id="that of the higher priority"),
        pytest.param({"a": ("2", 0), "b": ("2", 0)}, ["a-n1", "b-n1"], id="all that fit"),
    ],
)
def test_a_daemon_set_without_room_keeps_nobody_from_the_node(
    cpus: dict[str, tuple[str, int]], carried: list[str]
) -> None:
    sets = [DaemonSet("team", name, pod(name, cpu=cpu, priority=first)) for name, (cpu, first) in cpus.items()]
    assert [p.name for p in daemon_pods(node(cpu="4"), sets)] == carried


def test_the_table_names_each_plugin_once() -> None:
    plugins = [entry.plugin for entry in FILTERS]
    assert len(set(plugins)) == len(plugins)

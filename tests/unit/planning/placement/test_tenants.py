"""Whatever one tenant asks for, the ordinary pods of another get the same nodes, and each tenant pays its own work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, HostPort, Pod, PodAffinityTerm, PreferredPodTerm, TopologySpread
from autoscaler.model.resource_claim import (
    Constraint,
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
)
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.scheduling import pod_filters
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration
from tests.builders import TEAM, Pairs, claim, gpus, joined, pairs, plan, pod, snapshot

ORDINARY: Final = pairs(20, gpus(), prefix="o", cpu="4", created=100.0)
POOL: Final = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b")),))
WORK: Final = WorkLimits(per_round=400_000, selectors_per_round=400_000, per_pod=150_000, hints_per_round=100_000)
_ONE_LOOK: Final = 100_000  # what is under way when the units end
_UUID: Final = "gpu.nvidia.com/uuid"
_PRODUCT: Final = "gpu.nvidia.com/productName"


def _hostile(found: Pairs, namespace: str = "hostile") -> Pairs:
    pods, claims = found
    return [replace(p, namespace=namespace) for p in pods], [replace(c, namespace=namespace) for c in claims]


def _plan(*parts: Pairs) -> Plan:
    return plan(snapshot(*joined(*parts), pools=(POOL,)), policy=Policy(work=WORK))


def _asking(expression: str, name: str = "gpu") -> DeviceRequest:
    return DeviceRequest(name, "gpu.nvidia.com", (Selector(expression),))


def _shared(count: int) -> Pairs:
    return [pod(f"h{number}", "c", cpu="100m") for number in range(count)], [claim("c")]


def _many_claims(count: int) -> Pairs:
    claims = [claim(f"c{number}") for number in range(count)]
    return [pod("h", *(found.name for found in claims))], claims


def _selectors(count: int, expression: str) -> Pairs:
    return joined(*(pairs(1, _asking(expression % number), prefix=f"h{number}-") for number in range(count)))


def _constrained(count: int, requests: int) -> Pairs:
    """Each device equal to the next in its model, and the first different from the last."""
    asked = [gpus(name=f"r{number}") for number in range(requests)]
    chain: list[Constraint] = [MatchAttribute(_PRODUCT, (f"r{n}", f"r{n + 1}")) for n in range(requests - 1)]
    chain.append(DistinctAttribute(_PRODUCT, ("r0", f"r{requests - 1}")))
    found = (pairs(1, *asked, prefix=f"h{number}-", cpu=f"{100 + number}m") for number in range(count))
    pods, claims = joined(*found)
    return pods, [replace(each, constraints=tuple(chain)) for each in claims]


def _alternatives(count: int) -> Pairs:
    """32 requests with eight alternatives each, all of them the same device."""
    asked = [
        FirstAvailable(f"r{r}", tuple(_asking(f"device.driver != 'd{r}-{s}'", f"s{s}") for s in range(8)))
        for r in range(32)
    ]
    pods, claims = joined(*(pairs(1, *asked, prefix=f"h{n}-", cpu=f"{100 + n}m") for n in range(count)))
    return pods, [replace(each, constraints=(MatchAttribute(_UUID),)) for each in claims]


def _each(count: int, change: Callable[[Pod], Pod], **fields: float) -> Pairs:
    pods, claims = pairs(count, gpus(), prefix="h", **fields)
    return [change(found) for found in pods], claims


def _repelling(key: str) -> PodAffinityTerm:
    return PodAffinityTerm(LabelSelector(), key, namespace_selector=LabelSelector())


def _spread(key: str) -> TopologySpread:
    return TopologySpread(key, 1, "DoNotSchedule", LabelSelector())


def _with_ports(found: Pod) -> Pod:
    ports = tuple(HostPort(1000 + number) for number in range(100))
    return replace(found, containers=(replace(found.containers[0], host_ports=ports),))


def _with_containers(found: Pod) -> Pod:
    boxes = (Container(f"c{n}", FrozenMap({f"x{n}.example.com/y": Quantity.parse("1")})) for n in range(100))
    return replace(found, containers=(*found.containers, *boxes))


def _with_terms(found: Pod) -> Pod:
    values = tuple(f"v{number}" for number in range(20))
    term = NodeSelectorTerm(match_expressions=tuple(Requirement(f"k{n}", "NotIn", values) for n in range(50)))
    return replace(found, affinity=NodeSelector((term,) * 50))


_KEYS: Final = [f"key{number}" for number in range(300)]
ATTACKS: Final[dict[str, Callable[[], Pairs]]] = {
    "pods on one claim": lambda: _shared(200),
    "claims of one pod": lambda: _many_claims(200),
    "requests of one claim": lambda: pairs(20, *(gpus(name=f"r{number}") for number in range(32)), prefix="h"),
    "claims that are chained": lambda: (
        [pod(f"h{n}", f"c{n}", f"c{n + 1}", cpu="100m") for n in range(60)],
        [claim(f"c{n}") for n in range(61)],
    ),
    "near-equal selectors": lambda: _selectors(
        150, "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('%dMi')) > 0"
    ),
    "near-equal models": lambda: _selectors(150, "device.attributes['gpu.nvidia.com'].productName == 'x%d'"),
    "a chain of constraints": lambda: _constrained(10, 8),
    "32 requests in a chain": lambda: _constrained(5, 32),
    "firstAvailable": lambda: _alternatives(4),
    "every device": lambda: pairs(10, DeviceRequest("r", "gpu.nvidia.com", allocation_mode="All"), prefix="h"),
    "more devices than there are numbers": lambda: pairs(10, gpus(2**62), prefix="h"),
    "annotations": lambda: _each(
        20, lambda p: replace(p, annotations=FrozenMap({f"k{n}": "x" * 1000 for n in range(250)}))
    ),
    "labels": lambda: _each(20, lambda p: replace(p, labels=FrozenMap({f"k{n}": p.name for n in range(300)}))),
    "anti-affinity by many keys": lambda: _each(
        10, lambda p: replace(p, pod_anti_affinity=tuple(map(_repelling, _KEYS)))
    ),
    "preferred anti-affinity": lambda: _each(
        10, lambda p: replace(p, preferred_pod_anti_affinity=tuple(PreferredPodTerm(1, _repelling(k)) for k in _KEYS))
    ),
    "spreading by many keys": lambda: _each(
        10,
        lambda p: replace(
            p, topology_spread=tuple(TopologySpread(k, 1, "DoNotSchedule", LabelSelector()) for k in _KEYS)
        ),
    ),
    "host ports": lambda: _each(20, _with_ports),
    "volumes": lambda: _each(10, lambda p: replace(p, volumes=tuple(f"v{n}" for n in range(200)))),
    "containers": lambda: _each(20, _with_containers),
    "terms of node affinity": lambda: _each(20, _with_terms),
    "tolerations": lambda: _each(20, lambda p: replace(p, tolerations=tuple(Toleration(key=k) for k in _KEYS))),
    "zones": lambda: _each(50, lambda p: replace(p, node_selector=FrozenMap({labels.ZONE: p.name}))),
    "an older pod alone in its zone": lambda: _each(
        1, lambda p: replace(p, pod_anti_affinity=(_repelling(labels.ZONE),)), created=1.0
    ),
    "older pods alone on their nodes": lambda: _each(
        5, lambda p: replace(p, pod_anti_affinity=(_repelling(labels.HOSTNAME),)), created=1.0
    ),
    "younger pods alone in their zone": lambda: _each(
        5, lambda p: replace(p, pod_anti_affinity=(_repelling(labels.ZONE),)), created=200.0
    ),
}


def _cost(result: Plan) -> Decimal:
    return sum((node.usd_per_hour or Decimal(0) for node in result.launches), Decimal(0))


def _placed(result: Plan, namespace: str) -> set[str]:
    return {p.pod for p in result.placements if p.pod.startswith(f"{namespace}/")}


@pytest.mark.parametrize("attack", list(ATTACKS.values()), ids=list(ATTACKS))
def test_ordinary_pods_beside_a_hostile_tenant(attack: Callable[[], Pairs]) -> None:
    hostile = _hostile(attack())
    without, alone, both = _plan(ORDINARY), _plan(hostile), _plan(hostile, ORDINARY)
    assert len(_placed(both, "default")) == len(ORDINARY[0])
    # Each alone gets the whole bound of a plan; beside another it may get less, and never more.
    assert _placed(both, "hostile") <= _placed(alone, "hostile")
    assert _cost(both) <= _cost(without) + _cost(alone)
    share = (WORK.per_round + WORK.selectors_per_round) // 2 + WORK.hints_per_round
    assert both.work <= without.work + share + _ONE_LOOK


def test_a_pod_pays_for_each_of_its_claims() -> None:
    """Reading the requests, and saying why they fail, takes far longer than a search that ends at the first of them."""
    few, many = (plan(snapshot(*_many_claims(count), pools=(POOL,))).work for count in (100, 200))
    assert many - few > 100 * 100
    usual = plan(snapshot(*_many_claims(8), pools=(POOL,))).work
    assert usual < 10_000


@pytest.mark.parametrize("field", ["pod_affinity", "pod_anti_affinity"])
def test_running_pods_are_read_once_for_a_pod_that_looks_for_some(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 1,000 nodes with ten pods each one such pod cost 40 CPU seconds a plan, and on more by the square."""
    asked: list[str] = []
    real = pod_filters.term_of_pod_matches

    def counted(term: PodAffinityTerm, other: Pod, world: World) -> bool:
        asked.append(other.key)
        return real(term, other, world)

    monkeypatch.setattr(pod_filters, "term_of_pod_matches", counted)
    nodes = [_node(f"n{number}") for number in range(50)]
    running = [pod(f"r{n.name}-{i}", cpu="100m", node_name=n.name, phase="Running") for n in nodes for i in range(10)]
    none = LabelSelector((Requirement("app", "In", ("none",)),))
    term = PodAffinityTerm(none, labels.ZONE, namespace_selector=LabelSelector())
    pods, claims = _hostile(pairs(1, gpus(), prefix="h"))
    found = plan(snapshot([*running, replace(pods[0], **{field: (term,)})], claims, pools=(POOL,), nodes=tuple(nodes)))
    assert max(count for key, count in Counter(asked).items() if key != pods[0].key) <= 2
    assert found.work > len(running)


def test_one_pod_that_looks_at_others_does_not_make_all_pods_cost_more() -> None:
    """It made every pod of every tenant be decided as a whole: 35 times the work. What follows on its node is."""
    different = joined(*(pairs(1, gpus(), prefix=f"o{number}-", cpu=f"{1000 + number}m") for number in range(30)))
    none = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("none",)),)), labels.ZONE)
    hostile = _hostile(_each(1, lambda p: replace(p, pod_anti_affinity=(none,))))
    without, alone = _plan(different), _plan(hostile)
    assert _plan(different, hostile).work <= 10 * (without.work + alone.work)


def _keeping_apart(number: int) -> Pairs:
    """Pods that differ, each against others with a label that none has."""
    found = []
    for index in range(number):
        (one,), claims = pairs(1, gpus(), prefix=f"h{index}-", cpu=f"{100 + index}m")
        term = PodAffinityTerm(LabelSelector((Requirement("app", "In", (f"a{index}",)),)), labels.HOSTNAME)
        found.append(([replace(one, pod_anti_affinity=(term,))], claims))
    return joined(*found)


def test_full_machines_are_not_asked_about_pods_that_look_at_others() -> None:
    """What such a pod takes at least is known. 300 of them asked every machine that each of them had bought."""
    few, many = (plan(snapshot(*_keeping_apart(count), pools=(POOL,))).work for count in (60, 120))
    assert many < 2 * few


def test_no_node_gets_a_name_that_pods_are_bound_to_already() -> None:
    """Whoever may create pods may bind them to any name, and names follow from pool, offering and pods."""
    wanted, claims = pairs(1, gpus())
    name = plan(snapshot(wanted, claims, pools=(POOL,))).launches[0].name
    bound = replace(pod("h", cpu="30", node_name=name), namespace="hostile")
    (launched,) = plan(snapshot([*wanted, bound], claims, pools=(POOL,))).launches
    assert launched.name != name


@pytest.mark.parametrize("first", ["x", "y"])
def test_what_running_pods_keep_away_depends_on_labels(first: str) -> None:
    """The only pods apart from each other are recognised: those with app=x may not be in the zone."""
    away = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.ZONE, ("default",))
    running = pod("r", node_name="n", phase="Running", pod_anti_affinity=(away,))
    found = [pairs(2, gpus(), prefix=app, labels=FrozenMap({"app": app})) for app in sorted("xy", key=first.__ne__)]
    pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ("us-east-1a",)),))
    pods, claims = joined(*found)
    result = plan(snapshot([running, *pods], claims, pools=(pool,), nodes=(_node("n"),)))
    assert _placed(result, "default") == {"default/y00", "default/y01"}


def _node(name: str) -> Node:
    allocatable = {"cpu": Quantity.parse("64"), "memory": Quantity.parse("256Gi"), "pods": Quantity.parse("110")}
    found = {labels.HOSTNAME: name, labels.ZONE: "us-east-1a"}
    return Node(name, labels=FrozenMap(found), allocatable=FrozenMap(allocatable))

"""A change for a pod whose place depends on where other pods are is planned together with them."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.model.capacity import CapacityPool, Limits
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW, SMALL, claim, gpus, machine, pod, snapshot

POLICY = Policy(considered=10_000)
CATALOG = Catalog.of([machine("s1", SMALL, 1, "1.00")])
IN_ONE_ZONE = CapacityPool(
    "gpu", limits=Limits(nodes=1), requirements=(Requirement(labels.ZONE, "In", ("us-east-1a",)),), drivers=("nvidia",)
)


def of(*names: str) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", names),))


def away(name: str, key: str) -> dict[str, Any]:
    return {"pod_anti_affinity": (PodAffinityTerm(of(name), key, ("default",)),)}


def spread(when: WhenUnsatisfiable) -> dict[str, Any]:
    domains = 2 if when is WhenUnsatisfiable.DO_NOT_SCHEDULE else None
    return {"topology_spread": (TopologySpread(1, labels.ZONE, when, of("a", "b"), min_domains=domains),)}


@pytest.mark.parametrize(
    ("first", "second", "helps"),
    [
        pytest.param({}, {}, True, id="nothing said of each other"),
        pytest.param({}, away("a", labels.HOSTNAME), True, id="not on one node"),
        pytest.param({}, away("a", labels.ZONE), False, id="not in the zone of the first"),
        pytest.param({}, away("c", labels.ZONE), True, id="not in the zone of a third"),
        pytest.param(away("b", labels.ZONE), {}, False, id="the first wants no second"),
        pytest.param({}, spread(WhenUnsatisfiable.DO_NOT_SCHEDULE), False, id="spread over two zones"),
        pytest.param({}, spread(WhenUnsatisfiable.SCHEDULE_ANYWAY), True, id="spread if possible"),
    ],
)
def test_room_in_the_pool_helps_if_the_pods_may_be_in_its_zone(
    first: dict[str, Any], second: dict[str, Any], helps: bool
) -> None:
    given = (("a", first), ("b", second))
    pods = [replace(pod(name, f"c-{name}", **fields), labels=FrozenMap({"app": name})) for name, fields in given]
    state = snapshot(pods, [claim(f"c-{one.name}", gpus(1)) for one in pods], pools=(IN_ONE_ZONE,))
    plan = plan_for(state, CATALOG, POLICY, NOW)
    assert [entry.pod for entry in plan.left_out] == ["default/b"]
    found = advise(pods[1], state, CATALOG, plan, POLICY, NOW)
    assert ([entry.change.kind for entry in found] == [ChangeKind.RAISE_LIMIT]) is helps

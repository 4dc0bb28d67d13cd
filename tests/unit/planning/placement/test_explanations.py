"""What is worked out once for several classes of pods is what would be told of each by itself."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from autoscaler.model.capacity import PodScope, Scope
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import ConsideredOutcome, Demand
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Verdict
from autoscaler.planning.placement import considered
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.policy import Policy, WorkLimits
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.catalog import Catalog
from tests import builders
from tests.builders import TEAM, claim, gpus, plan, pod, snapshot

TYPES = {"g6.xlarge", "g6.12xlarge", "g5.xlarge", "g5g.xlarge", "g5g.16xlarge", "p4d.24xlarge", "p5.48xlarge"}
CATALOG = Catalog.of([found for name, found in load_catalog().types.items() if name in TYPES])
ARM = FrozenMap({labels.ARCHITECTURE: "arm64"})


def state(seed: int) -> Snapshot:
    """Pods of four kinds of claims with CPUs of their own; some want ARM."""
    draw = Random(seed)
    requests = [gpus(1), gpus(4), gpus(8), gpus(1, product="NVIDIA L4")]
    pods, claims = [], []
    for number in range(24):
        selected = ARM if draw.random() < 0.2 else FrozenMap[str, str]()
        priority = draw.choice((0, 0, 5))
        cpu = f"{draw.choice((100, 3000, 5000, 40000, 90000)) + number}m"
        pods.append(pod(f"p{number}", f"c{number}", cpu=cpu, node_selector=selected, priority=priority))
        claims.append(claim(f"c{number}", draw.choice(requests)))
    return snapshot(pods, claims)


def in_pools(seed: int) -> Snapshot:
    """Pods that one of two pools serves or both do, of which some select a type."""
    draw = Random(seed)
    pods, claims = [], []
    for number in range(24):
        selected = {labels.INSTANCE_TYPE: draw.choice(["s1", "s4"])} if draw.random() < 0.3 else {}
        tier = FrozenMap({"tier": draw.choice(["gold", "iron"])})
        cpu = f"{draw.choice((100, 3000)) + number}m"
        pods.append(pod(f"p{number}", f"c{number}", cpu=cpu, node_selector=FrozenMap(selected), labels=tier))
        claims.append(claim(f"c{number}", gpus(1)))
    gold = Scope(PodScope.SELECTED, pod_selector=LabelSelector((Requirement("tier", "In", ("gold",)),)))
    pools = (replace(TEAM, name="gold", scope=gold), replace(TEAM, scope=Scope(PodScope.ALL)))
    return snapshot(pods, claims, pools=pools)


@pytest.mark.parametrize("work", [None, 40_000])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("state", "catalog"), [(state, CATALOG), (in_pools, builders.CATALOG)])
def test_equal_explanations_are_what_each_would_be(
    state: Callable[[int], Snapshot], catalog: Catalog, seed: int, work: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy() if work is None else Policy(work=WorkLimits(work, work, work, work))
    made: list[int] = []
    view = considered._View
    monkeypatch.setattr(
        considered, "_View", lambda packing, item, how: (made.append(item), view(packing, item, how))[1]
    )
    shared = plan(state(seed), catalog=catalog, policy=policy)
    once = len(made)
    monkeypatch.setattr(PackingInput, "same_outcomes", lambda *_: None)
    monkeypatch.setattr(PackingOracle, "told_as", lambda *_: None)
    alone = plan(state(seed), catalog=catalog, policy=policy)
    # The reasons of pods that have spent their share say what is known by then: more if each was explained alone.
    spent = {demand.pods for found in (shared, alone) for demand in found.demands if _over_budget(demand)}
    assert [d for d in shared.demands if d.pods not in spent] == [d for d in alone.demands if d.pods not in spent]
    assert [d.pods for d in shared.demands] == [d.pods for d in alone.demands]
    assert replace(shared, work=0, demands=()) == replace(alone, work=0, demands=())
    assert once < len(shared.demands) or work
    assert not spent or work


def _over_budget(demand: Demand) -> bool:
    return any(reason.code is Code.WORK_BUDGET for found in demand.considered for reason in found.reasons)


@pytest.mark.parametrize("seed", range(3))
def test_shapes_with_the_same_devices_or_too_little_of_the_same_are_explained_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    explained = PackingOracle.explained

    def counted(trials: PackingOracle, shape: int, item: int) -> Verdict:
        asked.append((shape, item))
        return explained(trials, shape, item)

    monkeypatch.setattr(PackingOracle, "explained", counted)
    plan(state(seed), catalog=CATALOG)
    once = len(asked)
    asked.clear()
    monkeypatch.setattr(PackingOracle, "told_as", lambda *_: None)
    plan(state(seed), catalog=CATALOG)
    assert once < len(asked) * 0.8


@pytest.mark.parametrize("seed", range(3))
def test_what_cannot_hold_the_bundles_is_no_fallback_and_is_not_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    holds = PackingOracle.holds
    monkeypatch.setattr(PackingOracle, "holds", lambda *args: (tried.append(args[1]), holds(*args))[1])
    found = plan(state(seed), catalog=CATALOG)
    few = len(tried)
    tried.clear()
    monkeypatch.setattr(PackingOracle, "may_hold", lambda *_: -1)
    assert replace(plan(state(seed), catalog=CATALOG), work=0) == replace(found, work=0)
    assert few < len(tried)


def test_what_is_chosen_comes_first_and_is_listed_once() -> None:
    found = plan(state(0), catalog=CATALOG)
    for demand in found.demands:
        outcomes = [entry.outcome for entry in demand.considered]
        order = list(ConsideredOutcome)
        assert outcomes == sorted(outcomes, key=order.index)
        assert len({(e.offering, e.drivers) for e in demand.considered}) == len(demand.considered)
        assert _launched(demand) == {
            node.offering.instance_type for node in found.launches if set(node.pods) & set(demand.pods)
        }


def _launched(demand: Demand) -> set[str]:
    return {entry.offering.instance_type for entry in demand.considered if entry.nodes}

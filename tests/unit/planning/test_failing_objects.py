"""A pod on which planning breaks is found and left out, and everybody else is planned for."""

from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import pytest

from autoscaler.model.capacity import CapacityBlock, CapacityPool, DeletionPolicy
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.failing_objects import (
    FailingObject,
    Searched,
    plan_without_failing,
    searched_after,
    searched_out,
)
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import NOW, pod, snapshot

PODS = [pod(f"p{number}") for number in range(100)]


class Planner:
    """Breaks on some pods, and on a snapshot without any that is marked so."""

    def __init__(self, *odd: str) -> None:
        self.odd = set(odd)
        self.plans = 0
        self.pools: list[str] = []

    def __call__(self, seen: Snapshot) -> Plan:
        self.plans += 1
        open_pools = [pool for pool in seen.pools if not pool.deleting]
        self.pools = [pool.name for pool in open_pools]
        classes = [found for found in seen.classes if not found.unsupported]
        named = {found.name for found in (*seen.pods, *open_pools, *seen.blocks, *classes)}
        if self.odd & named or "" in self.odd:
            raise KeyError("something nobody thought of")
        return Plan(left_out=tuple(LeftOut(p.key, LeftOutVerdict.DOES_NOT_FIT, ()) for p in seen.pods))


def test_nothing_is_looked_for_while_planning_ends_well() -> None:
    planner = Planner()
    plan, failing = plan_without_failing(planner, snapshot(PODS), {})
    assert (len(plan.left_out), failing, planner.plans) == (100, {}, 1)


@pytest.mark.parametrize("odd", [("p0",), ("p99",), ("p41",), ("p3", "p77"), ("p1", "p2", "p3", "p4")])
def test_who_breaks_it_is_left_out(odd: tuple[str, ...]) -> None:
    planner = Planner(*odd)
    plan, failing = plan_without_failing(planner, snapshot(PODS), {})
    assert {key: str(found.error) for key, found in failing.items()} == {
        f"Pod default/{name}": "'something nobody thought of'" for name in odd
    }
    verdicts = {left.pod: left.verdict for left in plan.left_out}
    assert verdicts.keys() == {f"default/p{number}" for number in range(100)} - {f"default/{name}" for name in odd}
    assert planner.plans <= 1 + 13 * len(odd)
    again = planner.plans
    plan_without_failing(planner, snapshot(PODS), failing)
    assert planner.plans == again + 1, "who is known is not looked for again"
    changed = [replace(p, labels=p.labels.with_items({"a": "b"})) for p in PODS]
    planner.odd.clear()
    assert plan_without_failing(planner, snapshot(changed), failing)[1] == {}, "one that has changed is tried again"


def test_what_breaks_without_any_pod_is_raised() -> None:
    with pytest.raises(KeyError):
        plan_without_failing(Planner(""), snapshot(PODS), {})


def test_more_than_are_looked_for_one_by_one_cost_their_namespace_alone() -> None:
    odd = [replace(pod(f"odd{number}"), namespace="hostile") for number in range(30)]
    plan, failing = plan_without_failing(Planner(*(p.name for p in odd)), snapshot([*PODS, *odd]), {})
    assert set(failing) == {f"Pod {p.key}" for p in odd}
    assert {left.pod for left in plan.left_out} == {p.key for p in PODS}


POOLS = tuple(CapacityPool(f"pool{number}") for number in range(9))
BLOCKS = tuple(
    CapacityBlock(f"block{number}", "p5.48xlarge", "z", 1, NOW, NOW, pool=f"pool{number}") for number in range(9)
)


@pytest.mark.parametrize("pods", [PODS, []], ids=["with pods", "without"])
@pytest.mark.parametrize(("name", "kind"), [("pool0", "CapacityPool"), ("block8", "CapacityBlock")])
def test_a_pool_or_block_that_breaks_it_is_left_out(pods: list[Pod], name: str, kind: str) -> None:
    planner = Planner(name)
    seen = replace(snapshot(pods), pools=POOLS, blocks=BLOCKS)
    plan, failing = plan_without_failing(planner, seen, {})
    assert [(key, one.kind, one.pool) for key, one in failing.items()] == [(f"{kind} {name}", kind, f"pool{name[-1]}")]
    assert len(plan.left_out) == len(pods)
    assert planner.plans <= 20
    assert planner.pools == [pool.name for pool in POOLS if pool.name[-1] != name[-1]]
    again = planner.plans
    plan_without_failing(planner, seen, failing)
    assert planner.plans == again + 1


def test_a_pool_on_which_every_pod_breaks_is_to_blame_and_not_the_pods() -> None:
    def plan(seen: Snapshot) -> Plan:
        if seen.pods and any(pool.name == "pool4" and not pool.deleting for pool in seen.pools):
            raise KeyError("something nobody thought of")
        return Plan(left_out=tuple(LeftOut(p.key, LeftOutVerdict.DOES_NOT_FIT, ()) for p in seen.pods))

    decided, failing = plan_without_failing(plan, replace(snapshot(PODS), pools=POOLS), {})
    assert (list(failing), len(decided.left_out)) == (["CapacityPool pool4"], 100)


def in_namespace(namespace: str, count: int) -> list[Pod]:
    return [replace(pod(f"{namespace}{number}"), namespace=namespace) for number in range(count)]


class BreaksWithAPool:
    """Breaks while pods of the namespaces look for nodes and pool4 is open."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = set(namespaces)

    def __call__(self, seen: Snapshot) -> Plan:
        broken = any(p.namespace in self.namespaces for p in seen.pods)
        if broken and any(pool.name == "pool4" and not pool.deleting for pool in seen.pools):
            raise KeyError("something nobody thought of")
        return Plan(left_out=tuple(LeftOut(p.key, "does-not-fit", ()) for p in seen.pods))


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_pods_of_one_namespace_close_no_pool_for_others(count: int) -> None:
    seen = replace(snapshot([*in_namespace("hostile", count), *PODS]), pools=POOLS)
    plan, failing = plan_without_failing(BreaksWithAPool("hostile"), seen, {})
    assert set(failing) == {f"Pod {p.key}" for p in in_namespace("hostile", count)}
    assert {left.pod for left in plan.left_out} == {p.key for p in PODS}


def test_a_pool_that_was_blamed_for_one_namespace_is_judged_again_with_others() -> None:
    hostile, breaks = in_namespace("hostile", 2), BreaksWithAPool("hostile")
    alone = replace(snapshot(hostile), pools=POOLS)
    _, failing = plan_without_failing(breaks, alone, {})
    assert list(failing) == ["CapacityPool pool4"]
    assert plan_without_failing(breaks, alone, failing)[1] == failing
    _, failing = plan_without_failing(breaks, replace(snapshot([*hostile, *PODS]), pools=POOLS), failing)
    assert set(failing) == {f"Pod {p.key}" for p in hostile}
    _, failing = plan_without_failing(
        BreaksWithAPool("hostile", "default"), replace(snapshot([*hostile, *PODS]), pools=POOLS), {}
    )
    assert list(failing) == ["CapacityPool pool4"]


def test_pods_that_wait_for_odd_ones_of_their_namespace_are_tried_when_those_are_gone() -> None:
    hostile = in_namespace("hostile", 30)
    planner = Planner(*(p.name for p in hostile[:10]))
    _, failing = plan_without_failing(planner, snapshot([*hostile, *PODS]), {})
    assert set(failing) == {f"Pod {p.key}" for p in hostile}
    plan, failing = plan_without_failing(planner, snapshot([*hostile[10:], *PODS]), failing)
    assert (failing, len(plan.left_out)) == ({}, 120)


def test_odd_pods_of_any_number_of_namespaces_cost_nobody_else_a_node() -> None:
    odd = [p for namespace in ("one", "two", "three") for p in in_namespace(namespace, 7)]
    planner = Planner(*(p.name for p in odd))
    plan, failing = plan_without_failing(planner, snapshot([*odd, *PODS]), {})
    assert set(failing) == {f"Pod {p.key}" for p in odd}
    assert {left.pod for left in plan.left_out} == {p.key for p in PODS}
    assert planner.plans <= 100


def test_a_pod_that_breaks_it_with_any_pool_is_to_blame_and_not_the_pools() -> None:
    def plan(seen: Snapshot) -> Plan:
        if seen.pools and any(p.name == "p7" for p in seen.pods):
            raise KeyError("something nobody thought of")
        return Plan()

    assert list(plan_without_failing(plan, replace(snapshot(PODS), pools=POOLS), {})[1]) == ["Pod default/p7"]


def test_a_pod_and_a_pool_are_found_both() -> None:
    seen = replace(snapshot(PODS), pools=POOLS)
    assert set(plan_without_failing(Planner("p7", "pool3"), seen, {})[1]) == {"Pod default/p7", "CapacityPool pool3"}


@pytest.mark.parametrize("pods", [PODS, []], ids=["with pods", "without"])
def test_claims_of_a_class_that_breaks_it_are_unknown(pods: list[Pod]) -> None:
    classes = tuple(DeviceClass(f"class{number}.example.com") for number in range(5))
    seen = replace(snapshot(pods), pools=POOLS, blocks=BLOCKS, classes=classes)
    made: list[Snapshot] = []
    planner = Planner("class3.example.com")

    def plan(shown: Snapshot) -> Plan:
        made.append(shown)
        return planner(shown)

    _, failing = plan_without_failing(plan, seen, {})
    assert [(one.kind, one.pool, one.namespace) for one in failing.values()] == [("DeviceClass", "", "")]
    assert [found.name for found in made[-1].classes if found.unsupported] == ["class3.example.com"]
    assert (len(made[-1].classes), len(made[-1].blocks), planner.pools) == (5, 9, [pool.name for pool in POOLS])


def test_the_only_pool_is_closed_and_not_forgotten() -> None:
    made: list[Snapshot] = []

    def plan(shown: Snapshot) -> Plan:
        made.append(shown)
        return Planner("pool0")(shown)

    plan_without_failing(plan, replace(snapshot(PODS), pools=POOLS[:1]), {})
    assert [(pool.name, pool.deleting, pool.deletion_policy) for pool in made[-1].pools] == [
        ("pool0", True, DeletionPolicy.RETAIN)
    ]


def test_the_error_of_an_odd_pod_does_not_keep_the_plan_that_broke() -> None:
    class State:
        """What a plan works with."""

    made = list[weakref.ref[State]]()

    def plan(seen: Snapshot) -> Plan:
        state = State()
        made.append(weakref.ref(state))
        try:
            raise LookupError("what nobody looked for")
        except LookupError as error:
            if any(p.name == "p7" for p in seen.pods):
                raise KeyError("something nobody thought of") from error
        return Plan()

    _, failing = plan_without_failing(plan, snapshot(PODS), {})
    gc.collect()
    assert [found() for found in made] == [None] * len(made)
    (entry,) = failing.values()
    assert "in plan" in "".join(traceback.format_exception(entry.error))


def reconciles(planner: Planner, rounds: Iterable[list[Pod]], *, every: timedelta) -> Iterator[tuple[Plan, list[str]]]:
    """The plan and who is left out of it, of one reconcile after the other."""
    searched: Searched = {}
    before: Mapping[str, FailingObject] = {}
    for number, pods in enumerate(rounds):
        now = NOW + number * every
        plan, failing = plan_without_failing(planner, snapshot(pods), before, unsearched=searched_out(searched, now))
        searched, before = searched_after(searched, before, failing, now), failing
        yield plan, sorted(failing)


def changing(count: int, *, named: bool = False) -> Iterator[list[Pod]]:
    """A pod of another namespace that changes from one reconcile to the next, or is replaced, beside others."""
    for number in range(count):
        odd = replace(pod("odd"), namespace="hostile", labels=FrozenMap({"n": str(number)}))
        yield [*PODS, replace(odd, uid=f"uid-{number}") if named else odd, *in_namespace("hostile", 1)]


@pytest.mark.parametrize(("named", "plans"), [(False, 1), (True, 3)], ids=["changed", "replaced"])
def test_an_odd_pod_that_changes_all_the_time_is_not_searched_for_each_time(*, named: bool, plans: int) -> None:
    planner = Planner("odd")
    ends = []
    for plan, failing in reconciles(planner, changing(30, named=named), every=timedelta(seconds=10)):
        ends.append(planner.plans)
        assert "Pod hostile/odd" in failing
        assert {left.pod for left in plan.left_out} >= {p.key for p in PODS}
    assert ends[8] > 8 * 5, "it is searched for as often as an honest one may change"
    assert ends[-1] - ends[8] == plans * 21
    assert ends[-1] < 200


def test_a_namespace_is_searched_again_an_hour_later() -> None:
    planner, found = Planner("odd"), list[list[str]]()
    for number, (_, failing) in enumerate(reconciles(planner, changing(30), every=timedelta(minutes=5))):
        found.append(failing)
        if number == 20:
            planner.odd.clear()
    assert all(found[:21])
    assert found[-1] == [], "one that is corrected comes in again"


def test_a_pod_of_a_searched_out_namespace_that_breaks_nothing_is_planned_for() -> None:
    planner = Planner("odd")
    for plan, failing in reconciles(planner, changing(20), every=timedelta(seconds=10)):
        assert failing == ["Pod hostile/odd"]
        assert "hostile/hostile0" in {left.pod for left in plan.left_out}


def test_others_do_not_wait_with_a_searched_out_namespace_for_another_one_that_breaks() -> None:
    rounds = list(changing(20))
    rounds[15] = [*rounds[15], replace(pod("odd too"), namespace="third")]
    found = [failing for _, failing in reconciles(Planner("odd", "odd too"), rounds, every=timedelta(seconds=10))]
    assert found[15] == ["Pod hostile/odd", "Pod third/odd too"]
    assert found[16] == ["Pod hostile/odd"]


def test_a_clock_that_is_set_back_leaves_no_namespace_unsearched() -> None:
    searched: Searched = {"hostile": (NOW,) * 20}
    assert searched_out(searched, NOW) == {"hostile"}
    assert searched_out(searched, NOW - timedelta(hours=3)) == frozenset()
    assert searched_after(searched, {}, {}, NOW + timedelta(hours=3)) == {}

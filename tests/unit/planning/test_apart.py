"""A pod on which planning breaks is found and left out, and everybody else is planned for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.apart import plan_apart
from tests.builders import pod, snapshot

PODS = [pod(f"p{number}") for number in range(100)]


class Planner:
    """Breaks on some pods, and on a snapshot without any that is marked so."""

    def __init__(self, *odd: str) -> None:
        self.odd = set(odd)
        self.plans = 0

    def __call__(self, seen: Snapshot) -> Plan:
        self.plans += 1
        if self.odd & {p.name for p in seen.pods} or "" in self.odd:
            raise KeyError("something nobody thought of")
        return Plan(left_out=tuple(LeftOut(p.key, "does-not-fit", ()) for p in seen.pods))


def test_nothing_is_looked_for_while_planning_ends_well() -> None:
    planner = Planner()
    plan, apart = plan_apart(planner, snapshot(PODS), {})
    assert (len(plan.left_out), apart, planner.plans) == (100, {}, 1)


@pytest.mark.parametrize("odd", [("p0",), ("p99",), ("p41",), ("p3", "p77"), ("p1", "p2", "p3", "p4")])
def test_who_breaks_it_is_left_out(odd: tuple[str, ...]) -> None:
    planner = Planner(*odd)
    plan, apart = plan_apart(planner, snapshot(PODS), {})
    assert {key: str(found.error) for key, found in apart.items()} == {
        f"default/{name}": "'something nobody thought of'" for name in odd
    }
    verdicts = {left.pod: left.verdict for left in plan.left_out}
    assert len(verdicts) == 100
    assert {pod for pod, verdict in verdicts.items() if verdict == "unknown"} == {f"default/{name}" for name in odd}
    assert planner.plans <= 1 + 10 * len(odd)
    again = planner.plans
    plan_apart(planner, snapshot(PODS), apart)
    assert planner.plans == again + 1, "who is known is not looked for again"
    changed = [replace(p, labels=p.labels.with_items({"a": "b"})) for p in PODS]
    planner.odd.clear()
    assert plan_apart(planner, snapshot(changed), apart)[1] == {}, "one that has changed is tried again"


def test_what_breaks_without_any_pod_is_raised() -> None:
    with pytest.raises(KeyError):
        plan_apart(Planner(""), snapshot(PODS), {})


def test_more_than_are_looked_for_one_by_one_cost_their_namespace_alone() -> None:
    odd = [replace(pod(f"odd{number}"), namespace="hostile") for number in range(30)]
    plan, apart = plan_apart(Planner(*(p.name for p in odd)), snapshot([*PODS, *odd]), {})
    assert set(apart) == {p.key for p in odd}
    assert {left.pod for left in plan.left_out if left.verdict != "unknown"} == {p.key for p in PODS}

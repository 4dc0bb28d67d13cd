"""A pod that tolerates no others in its zone takes nothing from the pods that kube-scheduler tries before it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from autoscaler.cel.common.evaluation import BudgetSpentError
from autoscaler.model.capacity import Limits
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod, PodAffinityTerm, PodClaim
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code
from autoscaler.model.verdict import Verdict
from autoscaler.planning import planner
from autoscaler.planning.placement.launches import Purchase
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.placement.purchases import each_alone, packed_again
from autoscaler.planning.supply import hypothetical as supply
from autoscaler.planning.work import Ledger
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import TEAM, claim, gpus, ours, pairs, places, plan, pod, snapshot, why_left

TENANTS = 20
ONE_ZONE, TWO_ZONES = ("us-east-1a",), ("us-east-1a", "us-east-1b")
EVERYBODY = PodAffinityTerm(LabelSelector(), labels.ZONE, namespace_selector=LabelSelector())


def planned(hostile: Pod, zones: tuple[str, ...]) -> Plan:
    """The pod, first in the snapshot, beside 20 pods of others that were created at 100."""
    pods, claims = pairs(TENANTS, gpus(), created=100.0)
    pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", zones),))
    return plan(snapshot([hostile, *pods], [claim("c"), *claims], pools=(pool,)))


def hostile(*, created: float = 200.0, priority: int = 0) -> Pod:
    return pod("hostile", "c", created=created, priority=priority, pod_anti_affinity=(EVERYBODY,))


def test_a_later_pod_gets_no_place_in_the_only_zone() -> None:
    found = planned(hostile(), ONE_ZONE)
    assert len(places(found)) == TENANTS
    assert why_left(found, "hostile")[0] is Code.POD_ANTI_AFFINITY


@pytest.mark.parametrize("cpu", ["1", "2"], ids=["equal pods", "pods of different kinds"])
def test_free_places_are_for_the_pods_that_wait_longest(cpu: str) -> None:
    """Whatever they are called, and whether they are decided together or not."""
    young, old = pod("a", "c0", created=200.0, cpu=cpu), pod("z", "c1", created=100.0)
    there = ours("there", "s1", phase=Phase.LAUNCHED)
    full = replace(TEAM, limits=Limits(nodes=1))
    found = plan(
        snapshot([young, old], [claim("c0", gpus()), claim("c1", gpus())], pools=(full,), provisioned=(there,))
    )
    assert places(found) == {"z": "there"}


def test_a_later_pod_gets_another_zone() -> None:
    found = planned(hostile(), TWO_ZONES)
    zone = {node.name: node.offering.zone for node in found.launches}
    where = {name: zone[node] for name, node in places(found).items()}
    assert len(where) == TENANTS + 1
    assert where.pop("hostile") not in where.values()


@pytest.mark.parametrize(
    "fields",
    [pytest.param({"created": 50.0}, id="earlier"), pytest.param({"priority": 1}, id="more important")],
)
def test_a_pod_that_is_tried_before_the_others_keeps_its_place(fields: dict[str, Any]) -> None:
    assert set(places(planned(hostile(**fields), ONE_ZONE))) == {"hostile"}


def test_later_pods_that_fit_only_one_by_one_are_predicted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    real = supply.under_name

    def counted(predicted: Any, node_name: str) -> Any:
        names.append(node_name)
        return real(predicted, node_name)

    monkeypatch.setattr(supply, "under_name", counted)
    planned(hostile(created=50.0), ONE_ZONE)
    assert names
    assert not [name for name in names if name.startswith("retry-")]


def test_a_search_for_a_node_of_its_own_is_paid_by_the_class_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has refused one of equal pods, which nothing draws anywhere, is not asked about the next."""
    paid: list[str] = []

    def watched(real_search: Any, packing: PackingInput, *rest: Any) -> tuple[Purchase, ...]:
        real = Ledger.fit

        def fit(ledger: Ledger, item: int, pods: Any, *where: Any) -> Verdict:
            paid.append(pods[0].name)
            return real(ledger, item, pods, *where)

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "fit", fit)
            return real_search(packing, *rest)

    monkeypatch.setattr(planner, "packed_again", partial(watched, packed_again))
    monkeypatch.setattr(planner, "each_alone", partial(watched, each_alone))
    equal = [replace(hostile(created=200.0 + number), name=f"hostile-{number}") for number in range(2)]
    equal = [replace(one, claims=(PodClaim("c", f"c{number}"),)) for number, one in enumerate(equal)]
    pods, claims = pairs(TENANTS, gpus(), created=100.0)
    claims = [*claims, *(claim(f"c{number}", gpus()) for number in range(2))]
    pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ONE_ZONE),))
    plan(snapshot([*equal, *pods], claims, pools=(pool,)))
    assert set(paid) == {"hostile-0"}


def test_a_class_that_has_spent_its_share_gets_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(packing: PackingInput, *rest: Any) -> tuple[Purchase, ...]:
        for account in packing.trials.ledger.accounts:
            account.refused = BudgetSpentError()
        return packed_again(packing, *rest)

    monkeypatch.setattr(planner, "packed_again", spent)
    found = planned(hostile(), TWO_ZONES)
    assert len(places(found)) == TENANTS
    assert why_left(found, "hostile")[:2] == [Code.WORK_BUDGET, Code.POD_ANTI_AFFINITY]
    assert [entry.verdict for entry in found.left_out] == ["unknown"]

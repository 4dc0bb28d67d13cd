"""How the bound of a round is shared out, and that a pod beyond its share is not even considered for a purchase."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.evaluation import CHEAP, Account, BudgetSpentError, Purse
from autoscaler.model.device_class import Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.verdict import DoesNotFit
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.planning.work import Ledger, over_budget
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.types.catalog import Catalog
from tests.builders import LARGE, TEAM, gpus, machine, pairs, plan, pod, snapshot

LIMITS = WorkLimits(per_round=60_000, selectors_per_round=600_000, per_pod=40_000, hints_per_round=1)


def ledger(*pods: Pod, nodes: int = 0) -> Ledger:
    state = snapshot(list(pods))
    return Ledger.of(classes_of(bundles_of(state.pods, state.claims), state), Policy(work=LIMITS), nodes=nodes)


def kinds(namespace: str, count: int) -> list[Pod]:
    """Pods that differ, so that each is a class of its own."""
    return [replace(pod(f"p{index}", priority=index), namespace=namespace) for index in range(count)]


def test_namespaces_share_equally_and_the_kinds_of_pods_in_each() -> None:
    accounts = ledger(*kinds("one", 1), *kinds("two", 5)).accounts
    assert len({id(account.shared) for account in accounts}) == 2
    assert {account.shared.left for account in accounts} == {300_000}
    assert sorted(account.own for account in accounts) == [6_000] * 5 + [30_000]


def test_many_kinds_of_pods_leave_a_little_for_each() -> None:
    assert {account.own for account in ledger(*kinds("one", 100)).accounts} == {2_000}


def test_the_bound_for_looks_grows_with_the_nodes_and_that_for_selectors_does_not() -> None:
    few, many = (ledger(*kinds("one", 3), nodes=nodes).accounts[0] for nodes in (0, 1000))
    assert (many.own, many.most, many.shared.left) == (6 * few.own, 6 * few.most, few.shared.left)


def test_an_account_ends_at_its_most_whatever_its_namespace_has() -> None:
    account = Account(own=0, shared=Purse(10**9), most=1_000)
    account.admit(600)
    account.pay(600)
    account.admit(600)
    account.pay(600)
    with pytest.raises(BudgetSpentError):
        account.admit(1)


def test_expensive_work_is_not_paid_from_what_is_meant_for_looks() -> None:
    account = Account(own=10 * CHEAP, shared=Purse(0), most=10**9)
    account.admit(CHEAP)
    with pytest.raises(BudgetSpentError):
        account.admit(CHEAP + 1)
    with pytest.raises(BudgetSpentError):
        account.admit(1)  # half a look decides nothing


def test_an_account_that_refused_does_not_keep_what_was_under_way() -> None:
    """A traceback refers to every frame of a search with all that it found; accounts live as long as the round."""
    account = Account(own=0, shared=Purse(0), most=1_000)
    for _ in range(2):
        with pytest.raises(BudgetSpentError) as raised:
            account.admit(1, "device.driver == 'x'")
        assert raised.value.expression == "device.driver == 'x'"
    assert account.refused is not None
    assert account.refused.__traceback__ is None


def test_what_to_buy_is_not_considered_for_a_pod_that_a_present_node_might_take() -> None:
    there = Node("n", allocatable=FrozenMap({"cpu": Quantity.of(8), "pods": Quantity.of(9)}))
    content = (Device("gpu-0", FrozenMap({"type": "gpu", "productName": "Small S1", "index": 77})),)
    published = ResourceSlice("s", "gpu.nvidia.com", Pool("n"), content, NodeReach(node_name="n"))
    state = snapshot(*pairs(1, gpus(1)), pools=(TEAM,), nodes=(there,), slices=(published,))
    found = plan(state, policy=Policy(work=replace(LIMITS, per_pod=100)))
    assert [reason.code for left in found.left_out for reason in left.reasons] == [Code.WORK_BUDGET]
    assert (found.launches, found.demands) == ((), ())


def test_work_that_finds_a_place_is_free_up_to_a_part_of_the_share_of_the_namespace() -> None:
    book = ledger(*kinds("one", 3), *kinds("two", 1))
    mine, theirs = book.accounts[:3], book.accounts[3]
    assert len({id(account.found) for account in mine}) == 1
    assert theirs.found is not mine[0].found
    for found in (mine[0].found, theirs.found):
        assert found is not None
        assert found.left == 50_000
    first, second = mine[0], mine[1]
    for _ in range(60):
        before = first.own
        first.pay(1_000)
        first.refund(before)
    assert (first.own, first.most) == (0, 40_000 + 50_000), "what was beyond stays paid"
    before = second.own
    second.pay(1_000)
    second.refund(before)
    assert second.own == before - 1_000
    before = theirs.own
    theirs.pay(1_000)
    theirs.refund(before)
    assert theirs.own == before


def looking(count: int) -> tuple[list[Pod], list[ResourceClaim]]:
    """Pods of another namespace, each of which wants to be apart from the next."""
    pods, claims = pairs(count, gpus(1), prefix="h")
    selectors = [LabelSelector((Requirement("n", "In", (str(number + 1),)),)) for number in range(count)]
    terms = [PodAffinityTerm(selector, "kubernetes.io/hostname", ("hostile",)) for selector in selectors]
    pods = [
        replace(one, namespace="hostile", labels=FrozenMap({"n": str(number)}), pod_anti_affinity=(terms[number],))
        for number, one in enumerate(pods)
    ]
    return pods, [replace(one, namespace="hostile") for one in claims]


def test_pods_that_fit_and_look_at_others_do_not_take_all_time() -> None:
    """Each is asked about as a whole, on every machine."""
    many = Catalog.of([machine(f"l8-{number}", LARGE, 8, f"4{number}.00") for number in range(10, 50)])
    hostile, usual = looking(60), pairs(1, gpus(1), prefix="usual")
    state = snapshot([*hostile[0], *usual[0]], [*hostile[1], *usual[1]], pools=(TEAM,))
    result = plan(state, catalog=many, policy=Policy(work=replace(LIMITS, selectors_per_round=1)))
    assert "default/usual00" in {placement.pod for placement in result.placements}
    assert len(result.placements) == 61, "what is known to take a pod is bought for it"
    assert result.work < 300_000, "without the bound more than a million"


def asking(name: str, expression: str, *, cpu: str = "1") -> tuple[Pod, ResourceClaim]:
    """A pod with CPUs of its own and a claim with this selector."""
    (one,), (wanted,) = pairs(1, DeviceRequest("gpu", "gpu.nvidia.com", (Selector(expression),)), prefix=name, cpu=cpu)
    return one, wanted


def test_pods_whose_claims_ask_for_the_same_pay_for_the_answers_together() -> None:
    same = [asking(f"a{i}-", "device.driver == 'x'", cpu=f"{i + 1}m") for i in range(3)]
    other = asking("b", "device.driver == 'y'")
    state = snapshot([p for p, _ in (*same, other)], [c for _, c in (*same, other)])
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    first, second, third, alone = Ledger.of(classes, Policy(work=LIMITS)).accounts
    assert first.kin is second.kin is third.kin is not alone.kin
    assert sum(a.own for a in (first, second, third, alone)) + first.kin.left <= LIMITS.per_round
    assert alone.own == 15_000
    for account in (first, second, third, alone):
        account.shared.left = 0
    before = second.own, alone.own
    while first.refused is None:
        try:
            first.admit(100)
            first.pay(100)
        except BudgetSpentError:
            break
    assert first.spent > 15_000 + 8_000, "it has used what the others gave"
    assert (second.own, alone.own) == before, "and nothing of what they kept"
    assert second.own >= 2_000


def test_an_answer_that_is_known_costs_little() -> None:
    one = asking("a", "device.driver != 'x'", cpu="1m")
    state = snapshot([one[0]], [one[1]])
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    book = Ledger.of(classes, Policy(work=LIMITS))
    verdict = DoesNotFit((Reason.of(Code.INSUFFICIENT_RESOURCE),))
    assert book.check_amounts(0, one[0], lambda: verdict) is verdict
    assert 0 < book.spent < 50
    book.accounts[0].own = book.accounts[0].shared.left = 0
    assert over_budget(book.check_amounts(0, one[0], lambda: verdict))


@pytest.mark.slow
def test_many_different_pods_of_one_namespace_are_all_decided() -> None:
    """Breadth is no hostility: 300 pods with CPUs of their own and ten kinds of claims, in units for thirty of them."""
    wanted = [asking(f"p{i}-", f"device.driver != 'x{i % 10}'", cpu=f"{100 + i}m") for i in range(300)]
    tight = WorkLimits(per_round=600_000, selectors_per_round=50_000, per_pod=50_000, hints_per_round=1)
    state = snapshot([p for p, _ in wanted], [c for _, c in wanted], pools=(TEAM,))
    result = plan(state, policy=Policy(work=tight))
    assert len(result.placements) == 300
    assert result.work < 600_000

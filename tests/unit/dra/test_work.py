"""Searches are paid for: whatever a claim asks for, an account ends them after so much work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account
from autoscaler.dra.allocation.allocator import Allocated
from autoscaler.model.pod import Toleration
from autoscaler.model.resource_claim import Constraint, DistinctAttribute, MatchAttribute, ResourceClaim
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from tests.unit.dra.build import (
    DRIVER,
    ask,
    claim,
    cluster,
    counter_slice,
    device,
    drawing,
    request,
    shareable,
    slice_of,
)

_UNITS = 200_000
# The dearest step: one look at every device of the largest node here.
_STEP = 5_000
_MIB = 2**20

Case = tuple[list[ResourceSlice], list[ResourceClaim]]


def _matching_over_many_devices() -> Case:
    content = [device(f"d{i}", {"pair": i // 3, "odd": i % 2, "third": i % 3}) for i in range(1000)]
    rules: list[Constraint] = [
        MatchAttribute(f"{DRIVER}/pair"),
        DistinctAttribute(f"{DRIVER}/odd"),
        MatchAttribute(f"{DRIVER}/third"),
    ]
    return [slice_of(content)], [claim(request(count=8), constraints=rules)]


def _unequal_partitions() -> Case:
    content = [
        drawing(f"p{i}-{j}", f"gpu{i}", memory=f"{3 + (i * 7 + j * 5) % 11}") for i in range(8) for j in range(9)
    ]
    counters = counter_slice(*((f"gpu{i}", {"memory": f"{20 + i}"}) for i in range(8)))
    return [counters, slice_of(content, name="devices", count=2)], [claim(request(count=30))]


def _consumable_capacity() -> Case:
    content = [shareable(f"s{i}", memory=f"{10 + i}", cores=f"{5 + i % 7}") for i in range(64)]
    wants = [
        request(f"r{i}", capacity=FrozenMap({"memory": Quantity.parse(f"{9 + i % 9}"), "cores": Quantity.parse("5")}))
        for i in range(32)
    ]
    return [slice_of(content)], [claim(*wants, constraints=[DistinctAttribute(f"{DRIVER}/none")])]


def _administrators() -> Case:
    content = [device(f"d{i}", {"a": i}) for i in range(1000)]
    wants = [request(f"r{i}", 1, admin_access=True) for i in range(32)]
    return [slice_of(content)], [claim(*wants, constraints=[MatchAttribute(f"{DRIVER}/a")])]


def _many_tolerations() -> Case:
    content = [device(f"d{i}", {"a": i}) for i in range(1000)]
    tolerations = tuple(Toleration(f"key-{i}", "Exists") for i in range(128))
    wants = [request(f"r{i}", 2, tolerations=tolerations) for i in range(16)]
    return [slice_of(content)], [claim(*wants, constraints=[MatchAttribute(f"{DRIVER}/a")])]


_CASES = [
    _matching_over_many_devices,
    _unequal_partitions,
    _consumable_capacity,
    _administrators,
    _many_tolerations,
]


@pytest.mark.slow
@pytest.mark.parametrize("case", _CASES, ids=[case.__name__.strip("_") for case in _CASES])
def test_every_search_ends_within_its_account(case: Callable[[], Case]) -> None:
    slices, claims = case()
    account = Account(own=_UNITS, shared=Purse(0), most=_UNITS)
    where = cluster(*slices)
    tracemalloc.start()
    try:
        with on_account(account):
            ask(claims, where)
    except BudgetSpentError:
        assert account.refused is not None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert 0 < account.spent <= _UNITS + _STEP
    assert peak < 64 * _MIB


def test_a_search_that_was_refused_leaves_nothing_behind() -> None:
    slices, claims = [slice_of([device(f"d{i}", {"a": i}) for i in range(50)])], [claim(request(count=5))]
    where = cluster(*slices)
    with on_account(Account(own=100, shared=Purse(0), most=10**6)), pytest.raises(BudgetSpentError):
        ask(claims, where)
    assert isinstance(ask(claims, where), Allocated)


def test_what_was_asked_before_is_not_paid_again() -> None:
    where = cluster(slice_of([device(f"d{i}", {"a": i}) for i in range(50)]))
    claims = [claim(request(count=5))]
    first = Account(own=10**6, shared=Purse(0), most=10**6)
    with on_account(first):
        ask(claims, where)
    again = Account(own=10**6, shared=Purse(0), most=10**6)
    with on_account(again):
        ask(claims, where)
    assert first.spent > 0
    assert again.spent == 0


def test_devices_that_the_class_refuses_are_judged_once_for_all_requests() -> None:
    from autoscaler.model.device_class import DeviceClass, Selector
    from tests.unit.dra.build import PythonSelectors

    engine = PythonSelectors()
    content = [device(f"d{i}", {"kind": "gpu" if i < 2 else "other", "a": i}) for i in range(10)]
    where = cluster(slice_of(content), classes=[DeviceClass("any", (Selector("kind=gpu"),))], engine=engine)
    for wanted in ("7", "8", "9"):
        ask([claim(request("r", 1, f"a={wanted}"))], where)
    refused = [name for expression, name in engine.asked if expression == "kind=gpu" and name not in ("d0", "d1")]
    assert len(refused) == 8

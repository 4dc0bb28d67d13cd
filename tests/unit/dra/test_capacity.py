"""Consumable capacity and the allocated state (consumable_capacity_test.go of dynamic-resource-allocation, v0.36)."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.capacity import CapacityError, has_room, taken, violates
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.model.resource_claim import AllocatedDevice, Allocation
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, RequestPolicy, ValidRange

V37 = profile_for("1.37")


def q(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def policy(
    default: str | None = None,
    low: str | None = None,
    high: str | None = None,
    step: str | None = None,
    values: tuple[str, ...] = (),
) -> RequestPolicy:
    valid = ValidRange(q(low), q(high), q(step)) if low or high or step else None
    return RequestPolicy(q(default), tuple(Quantity.parse(value) for value in values), valid)


@pytest.mark.parametrize(
    ("requested", "value", "rules", "expected"),
    [
        (None, "1", None, "1"),
        (None, "2", policy("1", low="1"), "1"),
        (None, "2", policy("1", values=("1",)), "1"),
        ("2", "2", policy(low="1"), "2"),
        ("1", "2", policy(low="2"), "2"),
        ("2", "3", policy(low="1", step="2"), "3"),
        ("2", "2", policy(low="1", step="1"), "2"),
        ("2", "3", policy(values=("1", "2", "3")), "2"),
        ("2", "3", policy(values=("1", "3")), "3"),
        ("3", "3", policy(values=("1", "2")), "3"),
    ],
)
def test_what_a_request_takes(requested: str | None, value: str, rules: RequestPolicy | None, expected: str) -> None:
    capacity = Capacity(Quantity.parse(value), rules)
    assert str(taken("c", q(requested), capacity, REFERENCE)) == expected
    assert str(taken("c", q(requested), capacity, V37)) == expected


@pytest.mark.parametrize(
    ("requested", "low", "step", "whole", "fractional"),
    [
        ("1500m", "1", "1", "2", "2"),
        ("600m", "500m", "250m", "1", "750m"),
        ("1500M", "1G", "1G", "1953125Ki", "2G"),
    ],
)
def test_steps_count_in_integers_until_v1_37(requested: str, low: str, step: str, whole: str, fractional: str) -> None:
    capacity = Capacity(Quantity.parse("10G"), policy(low=low, step=step))
    assert str(taken("c", q(requested), capacity, REFERENCE)) == whole
    assert str(taken("c", q(requested), capacity, V37)) == fractional


@pytest.mark.parametrize(
    ("amount", "rules", "refused"),
    [
        ("1", None, False),
        ("1", policy(high="2"), False),
        ("2", policy("1", high="1"), True),
        ("1", policy(values=("1",)), False),
        ("2", policy(values=("1",)), True),
        ("1Gi", policy("1024Mi", high="1Mi"), True),
        ("1Gi", policy("1Gi", high="1Mi"), False),
    ],
)
def test_what_a_policy_refuses(amount: str, rules: RequestPolicy | None, refused: bool) -> None:
    assert violates("c", Quantity.parse(amount), rules, REFERENCE) is refused


def test_a_negative_request_is_an_error_from_v1_37_on() -> None:
    capacities = {"c": Capacity(Quantity.parse("4"))}
    assert has_room({"c": Quantity.parse("-1")}, capacities, profile=REFERENCE)
    with pytest.raises(CapacityError, match="negative"):
        has_room({"c": Quantity.parse("-1")}, capacities, profile=V37)


def test_a_request_for_a_capacity_that_a_device_lacks_finds_no_room() -> None:
    assert not has_room({"other": Quantity.parse("1")}, {"c": Capacity(Quantity.parse("4"))}, profile=REFERENCE)


def test_an_exponent_that_nobody_means_is_an_error() -> None:
    capacities = {"c": Capacity(Quantity.parse("1e1000000000"))}
    with pytest.raises(CapacityError, match="too large"):
        has_room(
            {"c": Quantity.parse("1")}, capacities, in_use={"c": Quantity.parse("1e1000000000")}, profile=REFERENCE
        )


def share(share_id: str, amount: str | None) -> Allocation:
    consumed = None if amount is None else FrozenMap({"c": Quantity.parse(amount)})
    return Allocation((AllocatedDevice("r", "d", "p", "x", share_id=share_id, consumed_capacity=consumed),))


def test_consumption_adds_up() -> None:
    state = AllocatedState().plus([share("a", "1"), share("b", "1"), share("c", None)])
    use = state.use_of("d", "p")
    assert str(use.consumed["x"]["c"]) == "2"
    assert use.shares == {("x", "a"), ("x", "b"), ("x", "c")}
    assert use.shared("x")

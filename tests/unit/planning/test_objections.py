"""What a plan says about the things it rests on."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from autoscaler.model.reason import Code
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, Price
from tests.builders import SMALL, claim, machine, plan, pod, snapshot, types


@pytest.mark.parametrize("guess", [True, False], ids=["guessed", "quoted"])
def test_a_plan_that_rests_on_a_guessed_price_says_so(guess: bool) -> None:
    prices = FrozenMap({CapacityType.ON_DEMAND: Price(Decimal(2), "here", "2026", guess)})
    only = replace(machine("s1", SMALL, 1, None), prices=prices)
    result = plan(snapshot([pod("p", "c")], [claim("c")]), catalog=Catalog.of([only]))
    assert types(result) == ["s1"]
    told = [(warning.code, dict(warning.detail)) for warning in result.warnings]
    assert told == ([(Code.PRICE_GUESSED, {"types": "s1"})] if guess else [])

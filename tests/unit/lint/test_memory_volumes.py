"""emptyDir volumes of medium Memory that may have more than all memory of the node that the pod gets."""

from __future__ import annotations

import pytest

from autoscaler.lint.supply_advice import supply_advice
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, claim, plan, pod, snapshot


@pytest.mark.parametrize(("limit", "told"), [("512Gi", True), ("64Gi", False), (None, False)])
def test_a_volume_larger_than_the_memory_of_its_node(limit: str | None, *, told: bool) -> None:
    """The machines have 256Gi."""
    asking = replace(pod("p", "c"), memory_volume=Quantity.parse(limit) if limit else None)
    state = snapshot([asking], [claim("c")])
    found = [one for one in supply_advice(state, plan(state), CATALOG) if "emptyDir" in one.message]
    assert ["with sizeLimit 512Gi, and s1, which it gets, has " in one.message for one in found] == [True] * told

"""Claims that match the same devices on every machine are one kin, and have the answers that each would have."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from tests.builders import GPU, snapshot
from tests.properties.test_device_states import compare_ways, packing_of, worlds


def test_claims_written_otherwise_are_of_one_kin_where_they_match_the_same_on_every_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("autoscaler.planning.placement.matching._MANY", 2)
    asked = [f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{least}Mi")) >= 0' for least in (1, 2)]
    asked.append("false")
    made = [
        ResourceClaim("default", f"c{i}", (DeviceRequest("gpu", "gpu.nvidia.com", (Selector(text),)),), uid=f"c{i}")
        for i, text in enumerate(asked)
    ]
    pods = [Pod("default", f"p{i}", uid=f"p{i}", claims=(PodClaim("gpu", f"c{i}"),)) for i in range(3)]
    pools = (CapacityPool("team", drivers=("nvidia",)),)
    trials = packing_of(snapshot(pods, made, classes=(GPU,), pools=pools)).trials
    assert trials.kin(0) is trials.kin(1)
    assert trials.kin(2) is not trials.kin(0)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(worlds(), st.data())
def test_claims_that_match_the_same_everywhere_have_the_answers_of_each(
    monkeypatch: pytest.MonkeyPatch, state: Snapshot, data: st.DataObject
) -> None:
    """As in plans with many kinds of claims."""
    monkeypatch.setattr("autoscaler.planning.placement.matching._MANY", 1)
    compare_ways(packing_of(state), state, data)


def test_what_an_answer_of_another_claim_means_for_this_one_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand claims that are written otherwise and fit nowhere share an answer; telling each its own is work."""
    monkeypatch.setattr("autoscaler.planning.placement.matching._MANY", 2)
    asked = [f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{least}Ti")) >= 0' for least in (8, 9)]
    made = [
        ResourceClaim("default", f"c{i}", (DeviceRequest("gpu", "gpu.nvidia.com", (Selector(text),)),), uid=f"c{i}")
        for i, text in enumerate(asked)
    ]
    pods = [Pod("default", f"p{i}", uid=f"p{i}", claims=(PodClaim("gpu", f"c{i}"),)) for i in range(2)]
    pools = (CapacityPool("team", drivers=("nvidia",)),)
    trials = packing_of(snapshot(pods, made, classes=(GPU,), pools=pools)).trials
    assert trials.kin(0) is trials.kin(1)
    trials.explained(0, 0)
    before = trials.ledger.spent
    first = trials.explained(0, 1)
    assert trials.ledger.spent > before
    assert [str(reason.subject) for reason in first.reasons] == ["claim default/c1, request gpu"]
    before = trials.ledger.spent
    assert trials.explained(0, 1) == first
    assert trials.ledger.spent == before

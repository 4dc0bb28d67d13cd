"""Claims whose selectors are written otherwise, and match the same devices, get the answers of the direct way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.cel.common.evaluation import BudgetSpentError
from autoscaler.model.device_class import Selector
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, Request
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.placement.trial import PackingOracle
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from tests.builders import shipped
from tests.properties.equal_nodes import scheduled_once
from tests.properties.test_device_states import CATALOG, DRIVERS, compare_ways, directly, packing_of, some, worlds

# Of the last type nobody knows how much memory its GPUs have while they may be divided.
UNSURE = shipped("g6.12xlarge", "p4d.24xlarge", "p6-b300.48xlarge")


def respelt(wanted: Sequence[Request], name: str) -> tuple[Request, ...]:
    """The same requests with selectors of their own that admit the same devices."""
    more = Selector(f"device.driver != '{name}.example.com'")
    return tuple(
        replace(
            request, subrequests=tuple(replace(one, selectors=(*one.selectors, more)) for one in request.subrequests)
        )
        if isinstance(request, FirstAvailable)
        else replace(request, selectors=(*request.selectors, more))
        for request in wanted
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_answers_are_those_of_the_direct_way(state: Snapshot, data: st.DataObject) -> None:
    """No two claims are written alike, though many ask for the same."""
    made = {key: replace(claim, requests=respelt(claim.requests, claim.name)) for key, claim in state.claims.items()}
    state = replace(state, claims=FrozenMap(made))
    compare_ways(packing_of(state), state, data)


def selecting(*expressions: str, catalog: Catalog = CATALOG, driver: str = "nvidia") -> PackingInput:
    """Pods that differ in CPU, each with a claim for one GPU that the expression selects."""
    state = some(*[1] * len(expressions), driver=driver).snapshot
    made = {
        key: replace(claim, requests=(replace(claim.requests[0], selectors=(Selector(expression),)),))
        for (key, claim), expression in zip(state.claims.items(), expressions, strict=True)
        if isinstance(claim.requests[0], DeviceRequest)
    }
    return packing_of(replace(state, claims=FrozenMap(made)), catalog)


_MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{}Gi')) >= 0"


def test_claims_that_match_the_same_devices_are_asked_once_however_they_are_spelt() -> None:
    """An L4 has 23 Gi: it has 1, 10 and 20, and no 30 or 40."""
    packing = selecting(*(_MEMORY.format(amount) for amount in (1, 10, 20, 30, 40)))
    verdicts = [packing.trials.verdict(0, item) for item in range(5)]
    assert [type(verdict) for verdict in verdicts] == [Fits] * 3 + [DoesNotFit] * 2
    empty = packing.trials.empty(0)
    assert empty.devices is not None
    assert len(empty.devices.steps) == 2
    for item in range(3):
        verdict = packing.trials.explained(0, item)
        assert isinstance(verdict, Fits)
        assert list(verdict.allocations) == [f"default/c{item}"]


def test_a_claim_is_refused_in_the_words_of_its_own_selector() -> None:
    packing = selecting(_MEMORY.format(30), _MEMORY.format(40))
    for item, amount in enumerate((30, 40)):
        assert isinstance(packing.trials.verdict(0, item), DoesNotFit)
        (reason,) = packing.trials.explained(0, item).reasons
        assert str(reason.subject) == f"claim default/c{item}, request gpu"
        assert reason.detail["expressions"] == (_MEMORY.format(amount),)


def test_claims_that_match_other_devices_of_a_node_are_told_apart() -> None:
    """Of a node's four GPUs one claim admits all, and each of the others another one."""
    there = [d.attributes["resource.kubernetes.io/pcieRoot"] for d in some(1).shapes[0].sample.slices[0].devices]
    assert len(set(there)) == 4
    roots = [f"device.attributes['resource.kubernetes.io'].pcieRoot == '{root}'" for root in there[::3]]
    packing = selecting("true", *roots)
    direct = directly(packing, packing.snapshot)
    for item in range(3):
        assert isinstance(packing.trials.verdict(0, item), Fits)
        assert packing.trials.explained(0, item) == direct.explained(0, item)


def test_devices_with_other_values_are_another_class() -> None:
    """Neither 30 nor 50 Gi is in an L4, and 30 is in an A100."""
    packing = selecting(_MEMORY.format(30), _MEMORY.format(50))
    names = [shape.candidate.instance_type.name for shape in packing.shapes]
    small, large = names.index("g6.12xlarge"), names.index("p4d.24xlarge")
    assert [type(packing.trials.verdict(small, item)) for item in range(2)] == [DoesNotFit, DoesNotFit]
    assert [type(packing.trials.verdict(large, item)) for item in range(2)] == [Fits, DoesNotFit]


def test_claims_about_what_nobody_knows_share_an_answer_and_are_told_in_their_own_words() -> None:
    uuids = [f"device.attributes['gpu.nvidia.com'].uuid == '{uuid}'" for uuid in "ab"]
    packing = selecting(*uuids, "false")
    assert [type(packing.trials.verdict(0, item)) for item in range(3)] == [Unknown, Unknown, DoesNotFit]
    empty = packing.trials.empty(0)
    assert empty.devices is not None
    assert len(empty.devices.steps) == 2
    for item, expression in enumerate(uuids):
        told = packing.trials.explained(0, item)
        assert isinstance(told, Unknown)
        assert told.reasons[0].detail["expression"] == expression


def test_what_is_unknown_of_one_type_keeps_no_claims_apart_on_the_others() -> None:
    """Nobody has measured what a B300 has while it may be divided: 10 Gi and 20 are still one claim on all machines."""
    expressions = [_MEMORY.format(10 + number / 4) for number in range(80)]
    packing = selecting(*expressions, catalog=UNSURE, driver=DRIVERS[2])
    kin = [packing.trials.kin(item) for item in range(len(packing.classes))]
    assert len(kin) == 80
    assert len(set(kin)) == 2  # an L4 has 23 Gi, an A100 has 40
    unsure = [shape.candidate.instance_type.name for shape in packing.shapes].index("p6-b300.48xlarge")
    assert {type(packing.trials.verdict(unsure, item)) for item in range(80)} == {Unknown}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_answers_about_what_nobody_knows_are_those_of_the_direct_way(state: Snapshot, data: st.DataObject) -> None:
    """Beside machines whose memory is known, those of which nobody knows whether they have what claims want."""
    made = {key: replace(claim, requests=respelt(claim.requests, claim.name)) for key, claim in state.claims.items()}
    state = replace(state, claims=FrozenMap(made))
    compare_ways(packing_of(state, UNSURE), state, data)


def test_nodes_whose_claims_match_the_same_devices_are_scheduled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 claims with amounts of memory of their own: the plan is that of scheduling every node, and few are."""
    state = selecting(*(_MEMORY.format(10 + number / 4) for number in range(80))).snapshot
    once, repeats = scheduled_once(state, CATALOG, monkeypatch)
    assert len(repeats) == len(once.launches) >= 15
    assert repeats.count(False) <= 4


def test_a_class_that_has_spent_its_share_goes_where_the_answer_is_known() -> None:
    packing = some(1, 1, 2)
    ledger = packing.trials.ledger
    first = packing.trials.put(packing.trials.empty(0), 0)
    assert first is not None
    for item in (1, 2):
        ledger.accounts[item].refused = BudgetSpentError()
    assert [packing.trials.put(packing.trials.empty(0), item) is not None for item in (1, 2)] == [True, False]
    waiting = some(1, 1)
    before = waiting.trials.put(waiting.trials.empty(0), 0)
    waiting.trials.ledger.waiting.add(1)
    assert before is not None
    assert waiting.trials.put(before, 1) is None
    assert waiting.trials.put(waiting.trials.empty(0), 1) is None


def test_a_class_that_has_spent_its_share_may_go_where_its_kin_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine is asked what it would say, and one that is not known does not count as a refusal."""
    for devices, known in ((1, 1), (100, 0)):
        packing = some(devices, devices, 2)
        assert packing.trials.may_take(0, 1) == known
        for item in (1, 2):
            packing.trials.ledger.accounts[item].refused = BudgetSpentError()
        with monkeypatch.context() as asking:
            asking.setattr(PackingOracle, "verdict", lambda *_: pytest.fail("a machine was asked"))
            assert [packing.trials.may_take(item, 1) for item in (1, 2)] == [known, 1]

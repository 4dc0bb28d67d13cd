"""Flex-start machines: asked for by resize requests with a run duration, only where a trial has tried them, and ended
by Google."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from providers.contract import describe_all
from providers.errors import NotInGroupsError, WaitingError
from tests.gcp import FLEX, Rig, outcome, request

LASTS = timedelta(hours=2)


def flex_rig(stock: int = 9, *, tried: bool = True) -> Rig:
    rig = Rig()
    rig.flex(lasts=LASTS, tried=tried)
    rig.fake.project.stock[rig.key(FLEX)] = stock
    return rig


def test_one_machine_waits_for_capacity_and_runs_for_its_duration() -> None:
    rig = flex_rig(stock=0)
    asked = request("a", offerings=(FLEX,))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    (held,) = rig.group(FLEX).asked.values()
    assert held.lasts == LASTS
    rig.advance(timedelta(days=3))
    assert (rig.provider.waits(asked), len(rig.fake.project.machines)) == (True, 0)
    rig.fake.project.stock[rig.key(FLEX)] = 1
    (machine,) = outcome(rig, asked).instances
    assert machine.offering == FLEX
    assert (rig.fake.calls["resizeRequests.insert"], rig.fake.calls["createInstances"]) == (1, 0)


def test_the_end_of_the_run_is_announced_from_the_start_and_leaves_nothing() -> None:
    rig = flex_rig()
    outcome(rig, request("a", offerings=(FLEX,)))
    rig.settle()
    (seen,) = describe_all(rig.provider, {})
    (machine,) = rig.fake.project.machines.values()
    assert (seen.offering, seen.reclaim_at) == (FLEX, machine.created + LASTS)
    rig.advance(LASTS)
    rig.settle()
    assert list(describe_all(rig.provider, {})) == []
    assert rig.group(FLEX).members == {}


def test_what_is_withdrawn_starts_nothing() -> None:
    rig = flex_rig(stock=0)
    asked = request("a", offerings=(FLEX,))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.advance(timedelta(minutes=1))
    assert rig.provider.withdraw(asked).instances == ()
    rig.fake.project.stock[rig.key(FLEX)] = 9
    rig.advance(timedelta(hours=1))
    assert (len(rig.fake.project.machines), rig.group(FLEX).asked) == (0, {})


@pytest.mark.parametrize(
    ("change", "why", "step"),
    [
        ({"flex_start": None}, "does not say how long", "spec.flexStart.runDuration"),
        ({"tried": frozenset()}, "no trial has started", "foreslice gcp trial --template gpu --type a3-highgpu-8g"),
    ],
)
def test_it_is_off_until_the_template_and_a_trial_allow_it(change: dict[str, object], why: str, step: str) -> None:
    rig = flex_rig()
    rig.templates.found = replace(rig.templates.found, **change)
    (failure,) = rig.provider.launch(request("a", offerings=(FLEX,))).failures
    assert isinstance(failure.error, NotInGroupsError)
    assert why in failure.error.message
    assert FLEX not in [status.offering for status in rig.provider.offerings()]
    (status,) = rig.provider.template_statuses()
    (fault,) = [fault for fault in status.faults if "flex" in fault.message]
    assert step in fault.next_step
    assert rig.fake.calls["resizeRequests.insert"] == 0


def test_a_request_that_waits_is_found_when_flex_start_was_switched_off_since() -> None:
    rig = flex_rig(stock=0)
    asked = request("a", offerings=(FLEX,))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.templates.found = replace(rig.templates.found, flex_start=None)
    rig.advance(timedelta(minutes=10))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    assert rig.fake.calls["resizeRequests.insert"] == 1
    rig.provider.withdraw(asked)
    assert not rig.provider.waits(asked)


def test_a_reservation_has_no_flex_start_machines() -> None:
    rig = flex_rig()
    rig.group(FLEX).reservation = "r"
    rig.restart()
    (failure,) = rig.provider.launch(request("a", offerings=(FLEX,))).failures
    assert "flex-start machines of a reservation do not exist" in failure.error.message

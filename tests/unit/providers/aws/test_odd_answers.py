"""Every member of EC2's answers is optional, and new values come: what is missing is an error of the call, never a
crash, and nothing follows from an answer that cannot be read."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from providers.aws import describe
from providers.contract import TAG_CLUSTER
from providers.errors import ProviderError
from tests.aws import CLUSTER, Rig, in_reservation, request


def rig() -> tuple[Rig, dict[str, Any]]:
    """A machine of ours in a reservation, and how EC2 describes it."""
    made = Rig()
    made.provider.launch(request(offerings=(in_reservation(made),)))
    made.settle()
    (found,) = describe.listed(made.aws, {TAG_CLUSTER: CLUSTER})
    return made, dict(found)


def members(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all members of an answer."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from members(value, (*path, key))


def without(found: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(found)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return changed


def test_a_machine_of_which_a_member_is_missing_is_described_or_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, found = rig()
    read, refused, steps = 0, [], set()
    for path in members(found):
        odd = without(found, path)
        monkeypatch.setattr(describe, "_described", lambda aws, filters, odd=odd: iter([odd]))
        try:
            page = made.provider.describe({TAG_CLUSTER: CLUSTER})
            made.provider.terminate(("i-00000000000000000",))
        except ProviderError as error:
            steps.add(error.next_step.partition(" from")[0])
            refused.append(path)
            continue
        read += 1
        # Without its token a machine is not ours, and is left out; otherwise it is there.
        assert page.instances or path[0] == "Tags"
    assert {path[0] for path in refused} <= {"InstanceId", "Placement", "InstanceType", "LaunchTime"}
    assert read > len(refused) > 0
    assert steps == {"nothing is concluded"}


@pytest.mark.parametrize(
    "change",
    [
        {"State": {"Name": "hibernating"}},
        {"State": None},
        {"InstanceLifecycle": "something-new"},
        {"Tags": [{"Key": "only-a-key"}, {"Value": "only a value"}, {}]},
        {"Tags": None},
    ],
)
def test_what_nobody_knows_yet_is_no_error(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    made, found = rig()
    odd = {**found, **change}
    monkeypatch.setattr(describe, "_described", lambda aws, filters: iter([odd]))
    made.provider.describe({TAG_CLUSTER: CLUSTER})
    assert describe.instance_of(odd).id == found["InstanceId"]


def test_an_odd_reservation_of_somebody_else_hides_none_of_ours() -> None:
    made, _ = rig()
    answer = made.aws.ec2.describe_capacity_reservations()["CapacityReservations"][0]
    for path in members(answer):
        odd = {**without(answer, path), "CapacityReservationId": "cr-odd"}
        if path == ("CapacityReservationId",):
            odd.pop("CapacityReservationId")
        found = made.provider._reservations.readable([odd, answer], {})
        assert answer["CapacityReservationId"] in [one.id for one in found]

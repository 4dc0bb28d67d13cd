"""Pods wait for a CapacityBlock that begins soon (maxWait), and for nothing else."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.lifecycle.capacity_block import BEGINS_WITHIN
from autoscaler.model.capacity import (
    CapacityBlock,
    CapacityPool,
    Consumers,
    Limits,
    Mode,
    Permission,
    UnknownDurationPolicy,
)
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.planning.awaiting_blocks import await_blocks
from autoscaler.planning.policy import Policy
from autoscaler.report.explanation import explanation_lines, explanation_of
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, block, claim, gang, gpus, ours, plan, pod, snapshot, types, why_left

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DEMAND = CapacityPool("demand", Mode.ACT, capacity_types=(CapacityType.ON_DEMAND,))
PREPAID = CapacityPool("prepaid", Mode.ACT, capacity_types=(CapacityType.CAPACITY_BLOCK,))
POOLS = (PREPAID, DEMAND)
WAITS = [Code.WAITS_FOR_BLOCK]


def soon(name: str = "soon", *, minutes: int = 12, **fields: Any) -> CapacityBlock:
    """A block of one l8 that begins in some minutes and lasts ten hours until its drain."""
    starts = NOW + minutes * MINUTE
    defaults: dict[str, Any] = {
        "count": 1,
        "starts_at": starts,
        "ends_at": starts + 10 * HOUR + 15 * MINUTE,
        "pool": "prepaid",
        "max_wait": 30 * MINUTE,
    }
    return block(name, **(defaults | fields))


def wants(*names: str, **fields: Any) -> tuple[list[Pod], list[ResourceClaim]]:
    """Pods of eight large GPUs each, made now."""
    made = {"created": NOW.timestamp()} | fields
    return (
        [pod(name, f"{name}-c", **made) for name in names],
        [claim(f"{name}-c", gpus(8, product="Large L9")) for name in names],
    )


def planned(*pods: tuple[list[Pod], list[ResourceClaim]], **fields: Any) -> Plan:
    fields = {"pools": POOLS, "blocks": (soon(),)} | fields
    now = fields.pop("now", NOW)
    all_pods = [each for group, _ in pods for each in group]
    return plan(snapshot(all_pods, [each for _, group in pods for each in group], **fields), now=now)


def waits(result: Plan) -> list[str]:
    """Who waits for a block."""
    return sorted(
        left.pod.removeprefix("default/")
        for left in result.left_out
        if [reason.code for reason in left.reasons] == WAITS
    )


class TestWhoWaits:
    def test_the_pod_waits_and_its_reason_says_what_it_would_get_otherwise(self) -> None:
        result = planned(wants("a"))
        assert (result.launches, waits(result)) == ((), ["a"])
        (left,) = result.left_out
        assert text_of(left.reasons[0]) == (
            "pod default/a: waits for CapacityBlock soon, which begins at 2026-11-21T08:12+00:00; "
            "without it: l8, on-demand, 40.00 $/h"
        )

    def test_nobody_waits_unless_told_to(self) -> None:
        assert types(planned(wants("a"), blocks=(soon(max_wait=timedelta(0)),))) == ["l8"]

    def test_the_pod_says_so_itself(self) -> None:
        blocks = (soon(max_wait=timedelta(0)),)
        assert waits(planned(wants("a", max_wait=12 * MINUTE), blocks=blocks)) == ["a"]

    def test_the_pod_refuses_to_wait(self) -> None:
        assert types(planned(wants("a", max_wait=timedelta(0)))) == ["l8"]

    @pytest.mark.parametrize(("age", "waiting"), [(18, ["a"]), (19, [])])
    def test_the_time_counts_from_its_creation(self, age: int, waiting: list[str]) -> None:
        assert waits(planned(wants("a", created=(NOW - age * MINUTE).timestamp()))) == waiting

    def test_a_pod_that_never_met_an_api_server_is_as_old_as_the_plan(self) -> None:
        assert waits(planned(wants("a", created=0.0))) == ["a"]

    def test_a_node_that_is_there_is_taken_at_once(self) -> None:
        of_demand = OfferingRef("l8", "any", CapacityType.ON_DEMAND, Decimal(80))
        node = ours("n1", "l8", phase=Phase.LAUNCHED, offering=of_demand, pool="demand", provider_id="i-1")
        result = planned(wants("a"), provisioned=(node,))
        assert [(p.pod, p.node) for p in result.placements] == [("default/a", "n1")]

    def test_prepaid_capacity_is_taken_at_once(self) -> None:
        result = planned(wants("a"), blocks=(soon(), block("open", pool="prepaid", reservation="cr-1")))
        assert [node.offering.block for node in result.launches] == ["open"]

    def test_a_virtual_pod_never_waits(self) -> None:
        assert types(planned(wants("buffer:spare:0", max_wait=HOUR))) == ["l8"]


class TestTheBlock:
    @pytest.mark.parametrize(
        "fields",
        [
            {"note": "AWS delivers it later than asked for"},
            {"minutes": 31},
            {"ends_at": NOW + 12 * MINUTE + HOUR + 10 * MINUTE},  # 55 minutes from its start to its drain
            {"consumers": Consumers(min_accelerators=9)},
            {"unknown_duration": UnknownDurationPolicy.DENY, "ends_at": NOW + HOUR},
            {"reclaim_at": NOW},
            {"instance_type": "l1"},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    def test_a_block_that_would_not_take_it_is_not_waited_for(self, fields: dict[str, Any]) -> None:
        assert types(planned(wants("a", expected_duration=HOUR), blocks=(soon(**fields),))) == ["l8"]

    def test_a_pod_that_ends_before_the_drain_waits(self) -> None:
        blocks = (soon(ends_at=NOW + 12 * MINUTE + HOUR + 15 * MINUTE),)
        assert waits(planned(wants("a", expected_duration=HOUR), blocks=blocks)) == ["a"]

    def test_a_pool_that_does_not_launch_is_not_waited_for(self) -> None:
        assert types(planned(wants("a"), pools=(replace(PREPAID, mode=Mode.OBSERVE), DEMAND))) == ["l8"]

    def test_where_nothing_launches_waiting_is_proposed(self) -> None:
        assert waits(planned(wants("a"), pools=tuple(replace(p, mode=Mode.OBSERVE) for p in POOLS))) == ["a"]

    def test_a_reservation_that_failed_is_not_waited_for(self) -> None:
        backoff = Backoff(NOW + HOUR, instance_type="l8", capacity_type=CapacityType.CAPACITY_BLOCK)
        assert types(planned(wants("a"), backoffs=(backoff,))) == ["l8"]

    def test_a_pool_at_its_limit_is_not_waited_for(self) -> None:
        assert types(planned(wants("a"), pools=(replace(PREPAID, limits=Limits(nodes=0)), DEMAND))) == ["l8"]

    def test_a_block_that_has_just_begun_has_two_minutes_to_be_counted(self) -> None:
        begun = soon(minutes=0, available=0)
        assert waits(planned(wants("a"), blocks=(begun,), now=NOW)) == ["a"]
        last = NOW + BEGINS_WITHIN - timedelta(seconds=1)
        assert waits(planned(wants("a"), blocks=(begun,), now=last)) == ["a"]
        assert types(planned(wants("a"), blocks=(begun,), now=NOW + BEGINS_WITHIN)) == ["l8"]

    def test_a_block_that_is_full_is_not_waited_for(self) -> None:
        used = ours("n1", "l8", phase=Phase.READY, pool="prepaid", provider_id="i-1", pods=("default/x",))
        offering = OfferingRef("l8", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal(0), block="soon")
        node = replace(used, offerings=(offering,))
        assert types(planned(wants("a"), blocks=(soon(minutes=0, available=0),), provisioned=(node,))) == ["l8"]

    def test_once_it_has_begun_it_is_used(self) -> None:
        result = planned(wants("a"), blocks=(soon(reservation="cr-1"),), now=NOW + 12 * MINUTE)
        assert [node.offering.block for node in result.launches] == ["soon"]


class TestOthers:
    def test_one_waits_for_one_machine_and_the_other_gets_its_own(self) -> None:
        result = planned(wants("a", "b"))
        assert (len(waits(result)), types(result)) == (1, ["l8"])

    def test_a_pod_without_a_machine_that_is_more_important_takes_the_block(self) -> None:
        """It tolerates only what the block's pool offers: its selector keeps it from on-demand machines."""
        only_blocks = FrozenMap({"foreslice.dev/capacity-type": "capacity-block"})
        important = wants("important", priority=10, node_selector=only_blocks)
        result = planned(wants("a"), important)
        assert (types(result), waits(result)) == (["l8"], [])

    def test_one_that_is_less_important_does_not(self) -> None:
        only_blocks = FrozenMap({"foreslice.dev/capacity-type": "capacity-block"})
        result = planned(wants("a", priority=10), wants("other", priority=0, node_selector=only_blocks))
        # Both have a place if the first is bought a machine; leaving out fewer pods counts before money.
        assert (types(result), waits(result)) == (["l8"], [])

    def test_a_gang_waits_as_a_whole(self) -> None:
        pods = wants("a", "b", gang="g")
        result = planned(pods, gangs=gang("g", 2), blocks=(soon(count=2),))
        assert (types(result), waits(result)) == ([], ["a", "b"])

    def test_a_gang_does_not_wait_in_part(self) -> None:
        pods = wants("a", "b", gang="g")
        result = planned(pods, gangs=gang("g", 2))
        assert (types(result), waits(result)) == (["l8", "l8"], [])

    def test_pods_beside_a_gang_that_does_not_wait_may(self) -> None:
        result = planned(wants("a", "b", gang="g"), wants("c"), gangs=gang("g", 2))
        assert (types(result), waits(result)) == (["l8", "l8"], ["c"])

    def test_nobody_waits_where_that_saves_nothing(self) -> None:
        """The machine is bought for the other pod anyway, and has room for both."""
        of_type = FrozenMap({"node.kubernetes.io/instance-type": "l8"})
        pods = [
            pod("a", "a-c", created=NOW.timestamp(), node_selector=of_type),
            pod("b", "b-c", created=NOW.timestamp(), node_selector=of_type, max_wait=timedelta(0)),
        ]
        one = replace(
            PREPAID, capacity_types=(*PREPAID.capacity_types, CapacityType.ON_DEMAND), overflow=Permission.ALLOW
        )
        result = planned((pods, [claim("a-c"), claim("b-c")]), pools=(one,))
        assert (types(result), waits(result)) == (["l8"], [])

    def test_nobody_waits_where_another_pod_loses_its_place(self) -> None:
        """Whatever the reason: here the plan without the pod does not place the other one."""
        first, second = wants("a"), wants("b", max_wait=timedelta(0))
        state = snapshot([*first[0], *second[0]], [*first[1], *second[1]], pools=POOLS, blocks=(soon(),))

        def make(asked: Snapshot) -> Plan:
            result = plan(replace(asked, blocks=()) if not any(b.ahead for b in asked.blocks) else asked)
            delayed = any(each.no_node_before for each in asked.pods)
            kept = [p for p in result.placements if not (delayed and p.pod == "default/b")]
            return replace(result, placements=tuple(kept))

        before = make(state)
        assert await_blocks(before, state, make, NOW).placements == before.placements

    def test_the_reason_is_the_only_one(self) -> None:
        pods, claims = wants("a")
        result = plan(snapshot(pods, claims, pools=POOLS, blocks=(soon(),)), policy=Policy(explains=True))
        assert [left.pod for left in result.left_out] == ["default/a"]
        assert why_left(result, "a") == WAITS

    def test_there_is_nothing_to_change(self) -> None:
        """`explain` tries no change, and says that the pod waits."""
        pods, claims = wants("a")
        state = snapshot(pods, claims, pools=POOLS, blocks=(soon(),))
        result = plan(state)
        assert advise(pods[0], state, CATALOG, result, Policy(), NOW) == ()
        lines = [line.strip() for line in explanation_lines(explanation_of(pods[0], state, result, (), ()))]
        assert "waits, as its block or the pod itself allows" in lines
        assert not any("Smallest changes" in line or "gets no node" in line for line in lines)

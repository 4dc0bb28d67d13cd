"""plan_for on small worlds: what is bought, where pods go, and the reason for everything left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import Baseline, CapacityPool, Consumers, Limits
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan, Target
from autoscaler.model.pod import Container, PodAffinityTerm
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.planning.policy import Policy, Scope
from instance_catalog import labels
from instance_catalog.catalog import Catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.instance_type import Fabric
from instance_catalog.node_selector import Requirement
from instance_catalog.quantity import Quantity
from instance_catalog.taint import Taint, Toleration
from tests.unit.planning.scene import (
    CATALOG,
    GPU,
    LARGE,
    NAMELESS,
    NOW,
    SMALL,
    TPU,
    block,
    claim,
    codes,
    gang,
    gpus,
    machine,
    ours,
    pairs,
    plan,
    pod,
    snapshot,
    types,
    why_left,
)

TEAM = CapacityPool("team")
TOLERATES = (Toleration("foreslice.dev/capacity-block", "Exists"),)
HOLDING = Taint("foreslice.dev/capacity-block", "november")


def places(result: Plan) -> dict[str, str]:
    """pod -> node."""
    return {p.pod.removeprefix("default/"): p.node for p in result.placements}


@pytest.mark.parametrize(
    ("count", "request_", "bought"),
    [
        pytest.param(1, gpus(), ["s1"], id="one-gpu-cheapest-type"),
        pytest.param(4, gpus(), ["s4"], id="four-equal-pods-share-the-cheaper-big-node"),
        pytest.param(5, gpus(), ["s1", "s4"], id="five-pods-mixed"),
        pytest.param(3, gpus(), ["s1", "s1", "s1"], id="three-pods-cheaper-apart"),
        pytest.param(1, gpus(product="Large L9"), ["l1"], id="by-product-name"),
        pytest.param(8, gpus(product="Large L9"), ["l8"], id="equal-price-fewer-nodes"),
        pytest.param(1, gpus(8), ["l8"], id="all-eight-gpus"),
        pytest.param(1, gpus(4), ["s4"], id="four-gpus-in-one-claim"),
    ],
)
def test_the_cheapest_set_of_nodes_is_bought(count: int, request_: DeviceRequest, bought: list[str]) -> None:
    result = plan(snapshot(*pairs(count, request_)))
    assert types(result) == bought
    assert result.left_out == ()
    assert len(places(result)) == count
    assert set(places(result).values()) == {node.name for node in result.launches}
    assert result.usd_per_hour == sum((n.usd_per_hour or Decimal(0) for n in result.launches), Decimal(0))


def test_a_plan_is_the_same_again() -> None:
    state = snapshot(*pairs(5, gpus()))
    assert plan(state) == plan(state)


def test_a_planned_node_says_everything_about_itself() -> None:
    (node,) = plan(snapshot(*pairs(2, gpus(product="Large L9")))).launches[:1]
    assert node.pool == "implicit"
    assert node.drivers[0].startswith("nvidia")
    assert node.node.labels[labels.INSTANCE_TYPE] == "l1"
    assert {piece.pool.name for piece in node.slices} == {node.name}
    assert [d.pool for d in node.devices_used] == [node.name]
    assert node.devices_total == 1
    assert codes(node.reasons) == [Code.CHEAPEST]
    assert [o.instance_type for o in node.offerings] == ["l1", "l8"]


def test_the_considered_offerings_mark_the_chosen_one() -> None:
    (demand,) = plan(snapshot(*pairs(1, gpus()))).demands
    outcomes = {c.offering.instance_type: c for c in demand.considered}
    assert demand.considered[0].outcome == "chosen"
    assert demand.considered[0].nodes == 1
    assert outcomes["s4"].outcome == "fits"
    assert codes(outcomes["mystery"].reasons) == [Code.NO_PRICE]


def test_first_available_outranks_price() -> None:
    best = FirstAvailable("gpu", (gpus(product="Large L9", name="large"), gpus(product="Small S1", name="small")))
    result = plan(snapshot(*pairs(1, best)))
    assert types(result) == ["l1"]
    assert codes(result.launches[0].reasons) == [Code.PREFERRED]
    assert result.placements[0].preference == 0


def test_pods_that_share_a_claim_land_together() -> None:
    result = plan(snapshot([pod("a", "shared"), pod("b", "shared"), pod("c", "own")], [claim("shared"), claim("own")]))
    where = places(result)
    assert where["a"] == where["b"] != where["c"]
    assert Code.SHARES_CLAIM in codes(result.placements[0].reasons)


def test_pods_that_share_a_claim_and_fit_no_node_together() -> None:
    state = snapshot([pod("a", "shared", cpu="20"), pod("b", "shared", cpu="20")], [claim("shared")])
    result = plan(state)
    assert {entry.pod for entry in result.left_out} == {"default/a", "default/b"}
    assert Code.BUNDLE_SPLIT in why_left(result, "a")
    assert result.left_out[0].claims == ("default/shared",)


def test_near_misses_count_types_by_what_failed() -> None:
    result = plan(snapshot(*pairs(1, gpus(17))))
    (entry,) = result.left_out
    assert entry.verdict == "does-not-fit"
    first = entry.near_misses[0]
    assert (first.reason.code, first.types, first.example) == (Code.TOO_FEW_DEVICES, 5, "mystery")


def test_a_type_without_price_is_never_bought_unless_allowed() -> None:
    state = snapshot(*pairs(1, gpus(16)))
    assert plan(state).left_out[0].near_misses[0].example == "l8"
    assert why_left(plan(state), "p00") == [Code.NO_PRICE]
    assert types(plan(state, policy=Policy(buy_unpriced=True))) == ["mystery"]


def test_what_the_catalog_does_not_know_is_unknown_and_not_bought() -> None:
    catalog = Catalog.of([machine("n1", NAMELESS, 1, "1")])
    result = plan(snapshot(*pairs(1, gpus(product="Large L9"))), catalog=catalog)
    assert result.left_out[0].verdict == "unknown"
    assert result.launches == ()


class TestScope:
    def test_pods_without_claims_are_shown_and_open_nothing(self) -> None:
        result = plan(snapshot([pod("web")]))
        assert result.out_of_scope == ("default/web",)
        assert (result.launches, result.left_out) == ((), ())

    def test_scope_all_serves_them(self) -> None:
        assert types(plan(snapshot([pod("web")]), policy=Policy(scope=Scope.ALL))) == ["s1"]

    def test_an_extended_resource_that_a_class_serves_is_in_scope(self) -> None:
        legacy = replace(pod("old"), containers=(Container("main", FrozenMap({"nvidia.com/gpu": Quantity.of(1)})),))
        served = replace(GPU, extended_resource_name="nvidia.com/gpu")
        result = plan(snapshot([legacy], classes=(served,)))
        assert types(result) == ["s1"]
        assert len(result.placements[0].allocations) == 1
        assert plan(snapshot([legacy], classes=(replace(GPU, name="other"),))).out_of_scope == ("default/old",)

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            pytest.param({"scheduling_gates": ("wait",)}, Code.SCHEDULING_GATED, id="gate"),
            pytest.param({"scheduler_name": "volcano"}, Code.OTHER_SCHEDULER, id="other-scheduler"),
        ],
    )
    def test_pods_that_no_node_would_help(self, fields: dict[str, Any], code: Code) -> None:
        result = plan(snapshot([pod("a", "c", **fields)], [claim("c")]))
        assert why_left(result, "a") == [code]
        assert result.launches == ()

    def test_a_claim_that_does_not_exist(self) -> None:
        assert why_left(plan(snapshot([pod("a", "nowhere")])), "a") == [Code.CLAIM_NOT_FOUND]

    def test_a_class_that_does_not_exist(self) -> None:
        result = plan(snapshot([pod("a", "c")], [claim("c")], classes=()))
        assert Code.CLASS_NOT_FOUND in why_left(result, "a")


class TestComingNodes:
    def test_a_coming_node_takes_pods_before_anything_is_bought(self) -> None:
        pods, claims = pairs(5, gpus())
        result = plan(snapshot(pods, claims, provisioned=(ours("coming-1"),)))
        assert types(result) == ["s1"]
        coming = [p for p in result.placements if p.target is Target.COMING]
        assert [p.node for p in coming] == ["coming-1"] * 4
        assert codes(coming[0].reasons) == [Code.COMING_NODE]

    @pytest.mark.parametrize("phase", [Phase.GONE, Phase.FAILED, Phase.DRAINING, Phase.TERMINATING])
    def test_a_node_that_goes_takes_nothing(self, phase: Phase) -> None:
        result = plan(snapshot(*pairs(1, gpus()), provisioned=(ours("going", phase=phase),)))
        assert types(result) == ["s1"]


class TestPools:
    def test_requirements_bound_what_a_pool_offers(self) -> None:
        pool = replace(TEAM, requirements=(Requirement(labels.INSTANCE_TYPE, "NotIn", ("s1",)),))
        assert types(plan(snapshot(*pairs(1, gpus()), pools=(pool,)))) == ["s4"]

    @pytest.mark.parametrize("name", ["large", "L9", "Large L9"])
    def test_an_accelerator_may_be_required_by_any_of_its_names(self, name: str) -> None:
        pool = replace(TEAM, requirements=(Requirement(labels.ACCELERATOR, "In", (name,)),))
        assert types(plan(snapshot(*pairs(1, gpus()), pools=(pool,)))) == ["l1"]

    def test_capacity_types_are_preferred_in_the_pools_order_before_price(self) -> None:
        catalog = Catalog.of([machine("s1", SMALL, 1, "1.00", spot="0.30")])
        careful = replace(TEAM, capacity_types=("on-demand", "spot"))
        thrifty = replace(TEAM, capacity_types=("spot", "on-demand"))
        for pool, expected in ((careful, "on-demand"), (thrifty, "spot")):
            result = plan(snapshot(*pairs(1, gpus()), pools=(pool,)), catalog=catalog)
            assert result.launches[0].offering.capacity_type == expected

    @pytest.mark.parametrize(
        ("limits", "placed"),
        [
            pytest.param(Limits(nodes=1), 4, id="nodes"),
            pytest.param(Limits(accelerators=2), 2, id="accelerators"),
            pytest.param(Limits(usd_per_hour=Decimal("3.70")), 4, id="usd-per-hour"),
        ],
    )
    def test_limits_hold_and_are_the_reason(self, limits: Limits, placed: int) -> None:
        only_small = (Requirement(labels.ACCELERATOR, "In", ("small",)),)
        pool = replace(TEAM, limits=limits, requirements=only_small)
        result = plan(snapshot(*pairs(5, gpus()), pools=(pool,)))
        assert len(result.placements) == placed
        assert Code.POOL_LIMIT in why_left(result, "p04")

    def test_limits_count_what_exists(self) -> None:
        pool = replace(TEAM, limits=Limits(nodes=1))
        full = ours("taken", "s1", offering=OfferingRef("s1", "any", "on-demand", "1.00"))
        result = plan(snapshot(*pairs(2, gpus()), pools=(pool,), provisioned=(full,)))
        assert result.launches == ()
        assert len(result.placements) == 1

    def test_a_higher_priority_gets_the_last_node(self) -> None:
        pool = replace(TEAM, limits=Limits(nodes=1), requirements=(Requirement(labels.INSTANCE_TYPE, "In", ("s1",)),))
        pods, claims = pairs(1, gpus())
        more, wanted = pairs(1, gpus(), prefix="vip", priority=10)
        result = plan(snapshot(pods + more, claims + wanted, pools=(pool,)))
        assert list(places(result)) == ["vip00"]

    def test_a_back_off_is_respected(self) -> None:
        shortage = Backoff(NOW + timedelta(minutes=5), instance_type="s1", reason="Shortage")
        over = replace(shortage, until=NOW)
        assert types(plan(snapshot(*pairs(1, gpus()), backoffs=(shortage,)))) == ["s4"]
        assert types(plan(snapshot(*pairs(1, gpus()), backoffs=(over,)))) == ["s1"]

    def test_pool_taints_keep_pods_away_that_do_not_tolerate_them(self) -> None:
        pool = replace(TEAM, taints=(Taint("team", "a"),))
        pods, claims = pairs(1, gpus())
        assert why_left(plan(snapshot(pods, claims, pools=(pool,))), "p00") == [Code.TAINT_NOT_TOLERATED]
        tolerant = [replace(p, tolerations=(Toleration("team", "Exists"),)) for p in pods]
        assert types(plan(snapshot(tolerant, claims, pools=(pool,)))) == ["s1"]

    @pytest.mark.parametrize(
        ("fields", "word"),
        [
            pytest.param({"drivers": ("nvidja",)}, "nvidja", id="unknown-driver"),
            pytest.param({"drivers": ("nvidia:mig=all-1g.5gb",)}, "mig=all-1g.5gb", id="machines-without-mig"),
            pytest.param({"baselines": (Baseline(1, "at noon"),)}, "at noon", id="schedule"),
        ],
    )
    def test_a_pool_that_cannot_be_used_is_reported_and_stops_nobody(self, fields: dict[str, Any], word: str) -> None:
        broken = replace(TEAM, name="broken", weight=1, **fields)
        result = plan(snapshot(*pairs(1, gpus()), pools=(broken, TEAM)))
        assert len(result.placements) == 1
        (warning,) = result.warnings
        assert (warning.code, warning.subject) == (Code.UNSUPPORTED, "pool broken")
        assert word in str(warning.detail["feature"])

    def test_a_type_that_would_fit_outside_the_pools_is_named(self) -> None:
        pool = replace(TEAM, requirements=(Requirement(labels.ACCELERATOR, "In", ("small",)),))
        result = plan(snapshot(*pairs(1, gpus(product="Large L9")), pools=(pool,)))
        assert why_left(result, "p00")[-1] is Code.NO_POOL
        assert result.left_out[0].reasons[-1].detail["instance_type"] == "l1"

    def test_the_spending_guard_binds_over_all_pools(self) -> None:
        result = plan(snapshot(*pairs(1, gpus(8))), policy=Policy(max_usd_per_hour=Decimal(10)))
        assert why_left(result, "p00") == [Code.SPENDING_GUARD, Code.NO_PRICE]


class TestGangs:
    def test_all_members_are_placed_across_nodes(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 4)))
        assert types(result) == ["l8"] * 4
        assert len(set(places(result).values())) == 4

    def test_nothing_is_bought_for_a_gang_that_cannot_be_complete(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        pool = replace(TEAM, limits=Limits(nodes=3))
        result = plan(snapshot(pods, claims, gangs=gang("train", 4), pools=(pool,)))
        assert (result.launches, result.placements) == ((), ())
        assert why_left(result, "p00")[:2] == [Code.GANG_INCOMPLETE, Code.POOL_LIMIT]

    def test_the_minimum_is_enough(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        pool = replace(TEAM, limits=Limits(nodes=3))
        result = plan(snapshot(pods, claims, gangs=gang("train", 3), pools=(pool,)))
        assert len(result.placements) == 3

    def test_a_half_placed_gang_gives_its_places_on_coming_nodes_back(self) -> None:
        pods, claims = pairs(2, gpus(4), gang="train")
        others, more = pairs(1, gpus(), prefix="x", priority=-1)
        nothing = replace(TEAM, limits=Limits(nodes=1))
        state = snapshot(
            pods + others, claims + more, gangs=gang("train", 2), pools=(nothing,), provisioned=(ours("coming-1"),)
        )
        result = plan(state)
        assert places(result) == {"x00": "coming-1"}

    def test_members_that_do_not_exist_yet_are_waited_for(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 3)))
        assert why_left(result, "p00") == [Code.GANG_INCOMPLETE]
        assert result.launches == ()


class TestTopology:
    """Gangs whose pods must share a node label."""

    CLIQUES = Catalog.of(
        [
            replace(machine("rack2", LARGE, 4, "10"), fabric=Fabric("NVLink", "NVL72", domain_nodes=(2,))),
            replace(machine("rack9", LARGE, 4, "12"), fabric=Fabric("NVLink", "NVL72", domain_nodes=(4, 9))),
            machine("lonely", LARGE, 4, "1"),
        ]
    )

    @pytest.mark.parametrize(
        ("members", "bought"),
        [
            pytest.param(2, ["rack2"] * 2, id="small-unit-is-cheaper"),
            pytest.param(3, ["rack9"] * 3, id="too-many-for-the-small-unit"),
            pytest.param(10, [], id="too-many-for-any"),
        ],
    )
    def test_one_nvlink_domain_takes_all_of_them(self, members: int, bought: list[str]) -> None:
        pods, claims = pairs(members, gpus(4), gang="train")
        state = snapshot(pods, claims, gangs=gang("train", members, labels.NVIDIA_GPU_CLIQUE))
        result = plan(state, catalog=self.CLIQUES)
        assert types(result) == bought
        if not bought:
            assert why_left(result, "p00")[:2] == [Code.GANG_INCOMPLETE, Code.GANG_TOPOLOGY]

    def test_the_gang_stays_in_the_zone_of_its_running_members(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        home = Node("n1", labels=FrozenMap({labels.ZONE: "us-east-1b"}))
        pods.append(pod("running", gang="train", node_name="n1", phase="Running"))
        zones = (Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b")),)
        pool = replace(TEAM, requirements=zones)
        state = snapshot(pods, claims, gangs=gang("train", 3, labels.ZONE), nodes=(home,), pools=(pool,))
        result = plan(state)
        assert {node.offering.zone for node in result.launches} == {"us-east-1b"}
        assert len(result.placements) == 2

    def test_a_key_that_no_node_has_cannot_be_promised(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 2, "example.com/rack")))
        assert result.launches == ()
        assert Code.GANG_TOPOLOGY in why_left(result, "p01")


class TestBlocks:
    def one(self, state: Snapshot) -> str:
        return plan(state).launches[0].offering.capacity_type

    def test_a_job_that_fits_the_hours_left_runs_in_the_block(self) -> None:
        pods, claims = pairs(1, gpus(8), active_deadline_seconds=9 * 3600, tolerations=TOLERATES)
        result = plan(snapshot(pods, claims, blocks=(block(taint=HOLDING),)))
        assert result.launches[0].offering.block == "november"
        assert result.usd_per_hour == 0
        assert codes(result.launches[0].reasons) == [Code.PREPAID]

    def test_a_longer_job_does_not(self) -> None:
        pods, claims = pairs(1, gpus(8), active_deadline_seconds=11 * 3600, tolerations=TOLERATES)
        pool = replace(TEAM, capacity_types=("capacity-block",))
        result = plan(snapshot(pods, claims, blocks=(block(taint=HOLDING),), pools=(pool,)))
        assert why_left(result, "p00") == [Code.BLOCK_ENDS_TOO_SOON]
        assert result.left_out[0].reasons[0].detail["left"] == 10 * 3600

    def test_nobody_tolerates_the_taint_for_the_pod(self) -> None:
        pods, claims = pairs(1, gpus(8))
        assert self.one(snapshot(pods, claims, blocks=(block(taint=HOLDING),))) == "on-demand"
        assert self.one(snapshot(pods, claims, blocks=(block(),))) == "capacity-block"

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            pytest.param({"unknown_duration": "Deny"}, Code.BLOCK_DURATION_UNKNOWN, id="duration-unknown"),
            pytest.param({"min_remaining": timedelta(hours=11)}, Code.BLOCK_ENDS_TOO_SOON, id="too-little-remains"),
            pytest.param(
                {"consumers": Consumers(pod_selector=LabelSelector((Requirement("team", "Exists"),)))},
                Code.BLOCK_NOT_CONSUMER,
                id="no-consumer",
            ),
            pytest.param({"consumers": Consumers(min_accelerators=9)}, Code.BLOCK_NOT_CONSUMER, id="too-small-a-job"),
            pytest.param({"available": 0}, None, id="nothing-left"),
            pytest.param({"starts_at": NOW + timedelta(hours=1)}, None, id="not-open-yet"),
        ],
    )
    def test_a_block_that_does_not_take_the_pod(self, fields: dict[str, Any], code: Code | None) -> None:
        state = snapshot(*pairs(1, gpus(8)), blocks=(block(**fields),))
        assert self.one(state) == "on-demand"
        (demand,) = plan(state).demands
        given = [c for entry in demand.considered if entry.offering.block for c in codes(entry.reasons)]
        assert given == ([code] if code else [])

    def test_a_block_of_an_unknown_type_is_reported(self) -> None:
        (warning,) = plan(snapshot([], blocks=(block(instance_type="l7"),))).warnings
        assert (warning.code, warning.subject) == (Code.CATALOG_UNKNOWN, "block november")

    def test_a_full_block_overflows_only_where_the_pool_allows(self) -> None:
        state = snapshot(*pairs(3, gpus(8)), blocks=(block(pool="team"),))
        strict = plan(replace(state, pools=(TEAM,)))
        assert [n.offering.capacity_type for n in strict.launches] == ["capacity-block"] * 2
        assert why_left(strict, "p02") == [Code.BLOCK_FULL]
        loose = plan(replace(state, pools=(replace(TEAM, overflow="Allow"),)))
        assert sorted(n.offering.capacity_type for n in loose.launches) == ["capacity-block"] * 2 + ["on-demand"]


class TestOtherPods:
    def test_devices_that_would_make_another_pods_selector_fail_are_not_bought(self) -> None:
        """TPUs have no attribute `type`: reading it is an error, and kube-scheduler gives the whole pod up."""
        classes = (DeviceClass("tpu", (Selector("device.driver == 'tpu.google.com'"),)), DeviceClass("anything"))
        careless = DeviceRequest("any", "anything", (Selector("device.attributes[device.driver].type == 'gpu'"),))
        catalog = Catalog.of([machine("t1", TPU, 1, "1", cloud="gcp"), machine("l1", LARGE, 1, "5")])
        pods, claims = pairs(1, DeviceRequest("any", "tpu"))
        assert types(plan(snapshot(pods, claims, classes=classes), catalog=catalog)) == ["t1"]
        careful = snapshot([*pods, pod("picky", "c")], [*claims, claim("c", careless)], classes=classes)
        result = plan(careful, catalog=catalog)
        assert types(result) == ["l1"]
        assert why_left(result, "p00") == [Code.BREAKS_OTHER_POD]
        assert result.left_out[0].reasons[0].detail["pod"] == "default/picky"

    def test_a_pod_that_present_nodes_break_already_protects_nobody(self) -> None:
        """The careless pod is stuck because of a TPU node that is there; one more changes nothing for it."""
        careless = DeviceRequest("any", "anything", (Selector("device.attributes[device.driver].type == 'gpu'"),))
        classes = (DeviceClass("tpu", (Selector("device.driver == 'tpu.google.com'"),)), DeviceClass("anything"))
        catalog = Catalog.of([machine("t1", TPU, 1, "1", cloud="gcp"), machine("l1", LARGE, 1, "5")])
        there = ours("there", offering=OfferingRef("t1", "any", "on-demand", "1"), drivers=("tpu",))
        pods, claims = pairs(2, DeviceRequest("any", "tpu"))
        state = snapshot(
            [*pods, pod("picky", "c", priority=1)],
            [*claims, claim("c", careless)],
            classes=classes,
            provisioned=(there,),
        )
        result = plan(state, catalog=catalog)
        assert types(result) == ["t1"]
        assert places(result)["p00"] == "there"
        assert [(entry.pod, entry.verdict) for entry in result.left_out] == [("default/picky", "fatal")]

    def test_a_pod_that_fails_on_every_node_protects_nobody(self) -> None:
        broken = DeviceRequest("any", "gpu.nvidia.com", (Selector("device.attributes['nope'].x == 1"),))
        pods, claims = pairs(1, gpus())
        result = plan(snapshot([*pods, pod("broken", "c")], [*claims, claim("c", broken)]))
        assert types(result) == ["s1"]
        assert result.left_out[0].verdict == "fatal"
        assert why_left(result, "broken") == [Code.SELECTOR_ERROR]

    def test_anti_affinity_over_zones_buys_in_different_zones(self) -> None:
        term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.ZONE, ("default",))
        pods, claims = pairs(3, gpus(), labels=FrozenMap({"app": "x"}), pod_anti_affinity=(term,))
        pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b")),))
        result = plan(snapshot(pods, claims, pools=(pool,)))
        assert sorted(node.offering.zone for node in result.launches) == ["us-east-1a", "us-east-1b"]
        assert [entry.pod for entry in result.left_out] == ["default/p02"]
        assert why_left(result, "p02")[0] is Code.POD_ANTI_AFFINITY

    def test_anti_affinity_between_equal_pods_spreads_them(self) -> None:
        term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.HOSTNAME, ("default",))
        pods, claims = pairs(4, gpus(), labels=FrozenMap({"app": "x"}), pod_anti_affinity=(term,))
        result = plan(snapshot(pods, claims))
        assert types(result) == ["s1"] * 4
        assert len(set(places(result).values())) == 4


def test_the_catalog_is_part_of_the_answer() -> None:
    result = plan(snapshot([]))
    assert result.catalog_digest == CATALOG.digest
    assert result.profile == "v1.36.3"

"""plan_for on small worlds: what is bought, where pods go, and the reason for everything left out."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import Baseline, CapacityPool, Limits
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Target
from autoscaler.model.pod import Container, PodAffinityTerm
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable
from autoscaler.model.snapshot import Backoff
from autoscaler.planning import outside_pools, planner
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import text_of, texts_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice, RuntimeOnly
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import (
    CATALOG,
    GPU,
    NAMELESS,
    NOW,
    SMALL,
    TEAM,
    claim,
    codes,
    gpus,
    machine,
    ours,
    pairs,
    places,
    plan,
    pod,
    shipped,
    snapshot,
    types,
    why_left,
)


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


def test_equal_nodes_share_what_is_predicted_and_publish_it_under_their_own_names() -> None:
    one, other = plan(snapshot(*pairs(2, gpus(product="Large L9", count=5)))).launches
    assert one.predicted is other.predicted
    assert one.node.labels[labels.HOSTNAME] == one.name != other.node.labels[labels.HOSTNAME]
    tokens = [{value for d in node.slices[0].devices for value in d.attributes.values()} for node in (one, other)]
    known = {value for value in tokens[0] & tokens[1] if isinstance(value, RuntimeOnly)}
    assert all(value.is_catalog_gap for value in known)
    assert {piece.pool.name for piece in other.slices} == {other.name}


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
    assert [entry.pod for entry in result.left_out] == ["default/b"]
    assert why_left(result, "b") == [Code.BUNDLE_SPLIT]
    assert result.left_out[0].claims == ("default/shared",)


def test_a_variant_that_the_selectors_take_says_what_its_type_lacks() -> None:
    """A slice of the wanted topology has no network device; that a single machine is no slice is no news."""
    selected = FrozenMap({labels.GKE_TPU_ACCELERATOR: "tpu-v5p-slice", labels.GKE_TPU_TOPOLOGY: "2x2x2"})
    own = DeviceClass("net", (Selector('device.driver == "dra.net"'),))
    wanted = replace(gpus(), device_class="net", selectors=())
    waiting = replace(pod("a", "c"), node_selector=selected)
    state = snapshot([waiting], [claim("c", wanted)], classes=(own,))
    (entry,) = plan(state, catalog=shipped("ct5p-hightpu-4t")).left_out
    assert [miss.reason.code for miss in entry.near_misses] == [Code.NO_DEVICE_OF_CLASS]


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


def test_what_a_node_that_is_there_leaves_open_is_unknown() -> None:
    attributes = FrozenMap({"type": "gpu", "productName": "Secret X"})
    device = Device("gpu-0", attributes, unsupported=("newer",))
    there = Node("n", allocatable=FrozenMap({"cpu": Quantity.of(8), "pods": Quantity.of(9)}))
    published = ResourceSlice("s", "gpu.nvidia.com", Pool("n"), (device,), NodeReach(node_name="n"))
    state = snapshot(*pairs(1, gpus(product="Secret X")), nodes=(there,), slices=(published,))
    (left,) = plan(state).left_out
    assert left.verdict == "unknown"
    assert codes(left.reasons) == [Code.UNSUPPORTED]
    plain = replace(published, devices=(replace(device, unsupported=()),))
    assert places(plan(replace(state, slices=(plain,)))) == {"p00": "n"}
    assert plan(replace(state, slices=())).left_out[0].verdict == "does-not-fit"


class TestDemand:
    def test_an_extended_resource_that_a_class_serves_is_in_scope(self) -> None:
        legacy = replace(pod("old"), containers=(Container("main", FrozenMap({"nvidia.com/gpu": Quantity.of(1)})),))
        served = replace(GPU, extended_resource_name="nvidia.com/gpu")
        result = plan(snapshot([legacy], classes=(served,)))
        assert types(result) == ["s1"]
        assert len(result.placements[0].allocations) == 1
        assert plan(snapshot([legacy], classes=(replace(GPU, name="other"),))).out_of_scope == ("default/old",)

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

    def test_a_pod_that_waits_for_a_held_request_is_shown_so(self) -> None:
        pods, claims = pairs(1, gpus())
        nodes = (ours("held", phase=Phase.LAUNCHING), ours("other", phase=Phase.LAUNCHING))
        waiting: FrozenMap[str, datetime] = FrozenMap({"held": NOW})
        (placement,) = plan(snapshot(pods, claims, provisioned=nodes[:1], waiting=waiting)).placements
        assert (placement.target, placement.node) == (Target.COMING, "held")
        assert text_of(placement.reasons[0]).startswith(
            "fits a node that the provider has not started yet: it has held the"
        )
        (placement,) = plan(snapshot(pods, claims, provisioned=nodes[1:], waiting=waiting)).placements
        assert texts_of(placement.reasons) == "fits a node that is starting"

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
        careful = replace(TEAM, capacity_types=(CapacityType.ON_DEMAND, CapacityType.SPOT))
        thrifty = replace(TEAM, capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND))
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
        full = ours("taken", "s1", offering=OfferingRef("s1", "any", CapacityType.ON_DEMAND, Decimal("1.00")))
        result = plan(snapshot(*pairs(2, gpus()), pools=(pool,), provisioned=(full,)))
        assert result.launches == ()
        assert len(result.placements) == 1

    @pytest.mark.parametrize(
        "limits",
        [
            pytest.param(Limits(nodes=1), id="nodes"),
            pytest.param(Limits(accelerators=4), id="accelerators"),
            pytest.param(Limits(usd_per_hour=Decimal("3.60")), id="usd-per-hour"),
        ],
    )
    def test_a_pool_with_more_than_its_limit_stops_no_other_pool(self, limits: Limits) -> None:
        """As after its limit was lowered, until its nodes are gone."""
        pools = (replace(TEAM, limits=limits), CapacityPool("other"))
        leaving = tuple(ours(name, phase=Phase.DRAINING) for name in "ab")
        result = plan(snapshot(*pairs(1, gpus()), pools=pools, provisioned=leaving))
        assert [node.pool for node in result.launches] == ["other"]

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
        ("fields", "code", "word"),
        [
            pytest.param({"drivers": ("nvidja",)}, Code.UNUSABLE, "nvidja", id="unknown-driver"),
            pytest.param(
                {"drivers": ("nvidia:mig=all-1g.5gb",)}, Code.UNSUPPORTED, "mig=all-1g.5gb", id="machines-without-mig"
            ),
            pytest.param({"baselines": (Baseline(1, "at noon"),)}, Code.UNUSABLE, "at noon", id="schedule"),
        ],
    )
    def test_a_pool_that_cannot_be_used_is_reported_and_stops_nobody(
        self, fields: dict[str, Any], code: Code, word: str
    ) -> None:
        broken = replace(TEAM, name="broken", weight=1, **fields)
        result = plan(snapshot(*pairs(1, gpus()), pools=(broken, TEAM)))
        assert len(result.placements) == 1
        (warning,) = result.warnings
        assert (warning.code, str(warning.subject)) == (code, "pool broken")
        assert word in str(warning.detail.get("problem", warning.detail.get("feature")))

    def test_a_type_that_would_fit_outside_the_pools_is_named(self) -> None:
        pool = replace(TEAM, requirements=(Requirement(labels.ACCELERATOR, "In", ("small",)),))
        result = plan(snapshot(*pairs(1, gpus(product="Large L9")), pools=(pool,)))
        assert why_left(result, "p00")[-1] is Code.NO_POOL
        assert result.left_out[0].reasons[-1].detail["instance_type"] == "l1"

    def test_what_pools_say_of_an_offering_is_asked_once_and_paid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many kinds of pods would get it. The machine with the pool's drivers is made once, too."""
        asked: list[str] = []
        excluded = outside_pools.excluded_by
        monkeypatch.setattr(outside_pools, "excluded_by", lambda *of: asked.append("excluded") or excluded(*of))
        made = outside_pools.hypothetical
        monkeypatch.setattr(outside_pools, "hypothetical", lambda *of, **by: asked.append("made") or made(*of, **by))
        pool = replace(TEAM, drivers=("neuron",))
        pods = [pod(f"p{number}", f"c{number}", cpu=f"{number + 1}m") for number in range(8)]
        state = snapshot(pods, [claim(f"c{number}", gpus()) for number in range(8)], pools=(pool,))
        result = plan(state)
        assert [entry.reasons[-1].code for entry in result.left_out] == [Code.NO_POOL] * 8
        assert sorted(asked) == ["excluded", "made"]
        monkeypatch.setattr(outside_pools.OutsidePools, "_takes", lambda *_: True)
        assert result.work - plan(state).work >= 8 * 200  # a look at the machine with the pool's drivers for each kind

    def test_the_spending_guard_binds_over_all_pools(self) -> None:
        result = plan(snapshot(*pairs(1, gpus(8))), policy=Policy(max_usd_per_hour=Decimal(10)))
        assert why_left(result, "p00") == [Code.SPENDING_GUARD, Code.NO_PRICE]


def test_the_catalog_is_part_of_the_answer() -> None:
    result = plan(snapshot([]))
    assert result.catalog_digest == CATALOG.digest
    assert result.profile == "v1.36.3"


class TestWithoutPendingPods:
    """Most reconciles: a node has registered, or a pod has ended."""

    def test_nothing_is_computed_about_pods(self) -> None:
        memory, node = PlanMemory(), Node("n1")
        found = plan(snapshot([], nodes=(node,), pools=(TEAM,), provisioned=(ours("n1"),)), memory=memory)
        assert not len(memory.world.states)
        assert [decided.provisioned_node for decided in found.nodes] == ["n1"]
        assert found.at_least_usd_per_hour == Decimal(0)
        plan(snapshot(*pairs(1, gpus()), nodes=(node,), pools=(TEAM,)), memory=memory)
        assert len(memory.world.states) == 1

    def test_it_is_the_plan_of_the_whole_computation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        broken = replace(TEAM, name="broken", drivers=("nvidja",))
        state = snapshot(
            [pod("a", node_name="n1")], nodes=(Node("n1"),), pools=(TEAM, broken), provisioned=(ours("n1"),)
        )
        short = plan(state)
        monkeypatch.setattr(planner, "may_hold", lambda _: True)
        assert plan(state) == short

    def test_missing_baseline_nodes_are_launched(self) -> None:
        pool = replace(TEAM, baselines=(Baseline(1),))
        assert len(plan(snapshot([], pools=(pool,))).launches) == 1


def test_pods_that_exclude_each_other_have_no_lower_bound() -> None:
    """The purchases were for two pods, of which only one is placed: the plan may cost less than their bound."""
    term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.ZONE, ("default",))
    pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ("us-east-1a",)),))
    pods, claims = pairs(2, gpus(4), labels=FrozenMap({"app": "x"}), pod_anti_affinity=(term,))
    found = plan(snapshot(pods, claims, pools=(pool,)))
    assert (len(found.placements), found.at_least_usd_per_hour) == (1, None)
    assert plan(snapshot(pods[:1], claims, pools=(pool,))).at_least_usd_per_hour == found.usd_per_hour

"""What fits and is sold only as capacity that is bought for a time: nobody gives up an accelerator for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.prices import capacity_blocks
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Advice
from autoscaler.model.capacity import CapacityPool, Hold, Limits, Mode, Permission
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Container, PodAffinityTerm
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.report.tables.plan_summary import left_out_lines
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import LARGE, NOW, SMALL, block, claim, gpus, machine, pod, shipped, snapshot
from tests.one_line_advice import advice_lines, change_text

HOURLY = machine("hourly", SMALL, 1, "1.00")
BOUGHT = replace(machine("bought", LARGE, 1, None), capacity_types=(CapacityType.CAPACITY_BLOCK,))
CATALOG, POLICY = Catalog.of([HOURLY, BOUGHT]), Policy(considered=100)


def asked(product: str) -> tuple[Plan, tuple[Advice, ...]]:
    given = snapshot([pod("p", "c")], [claim("c", gpus(product=product))])
    found = plan_for(given, CATALOG, POLICY, NOW)
    return found, advise(given.pods[0], given, CATALOG, found, POLICY, NOW)


def test_a_block_is_the_change_and_no_condition_is_dropped() -> None:
    _, found = asked("Large L9")
    assert [entry.change.kind for entry in found] == [ChangeKind.ADD_BLOCK]
    assert advice_lines(found) == [
        "(1) create a CapacityPool with spec.limits.nodes 1 or more and node.kubernetes.io/instance-type In [bought] "
        "in spec.requirements; (2) buy bought for a time (it is sold only as capacity-block), and add a CapacityBlock "
        "of it (spec.pool, zone, count, startsAt, endsAt and reservation) whose taint the pods tolerate, or with "
        "spec.taint: {effect: None} → 1 × bought (capacity-block), prepaid"
    ]


def test_what_is_only_reserved_is_bought_before_its_accelerator_is_given_up() -> None:
    """A4X machines are sold as reservations alone; their GB200 is not exchanged for a T4."""
    given = snapshot([pod("p", "c")], [claim("c", gpus(product="NVIDIA GB200"))])
    catalog = shipped("a4x-highgpu-4g", "n1-standard-4+1xnvidia-tesla-t4")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW)
    assert [entry.change.kind for entry in found] == [ChangeKind.ADD_BLOCK]


@pytest.mark.parametrize(
    ("hourly", "memory", "kinds"),
    [
        ("g2-standard-96", "2800Gi", [ChangeKind.ADD_BLOCK]),
        ("a3-highgpu-8g", "1830Gi", [ChangeKind.LOWER_REQUEST]),  # less by 2 percent
    ],
)
def test_requests_are_not_cut_to_another_accelerator_where_one_fits_that_is_bought(
    hourly: str, memory: str, kinds: list[ChangeKind]
) -> None:
    asking = Container("main", FrozenMap({"memory": Quantity.parse(memory)}))
    given = snapshot([replace(pod("p", "c"), containers=(asking,))], [claim("c", gpus(8))])
    catalog = shipped("a3-ultragpu-8g", hourly)
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW)
    assert [entry.change.kind for entry in found] == kinds


def test_a_type_that_would_fit_is_no_near_miss() -> None:
    """Its MIG layouts have no whole GPU, which is no news where the GPUs may stay whole."""
    given = snapshot([pod("p", "c")], [claim("c", gpus(product="NVIDIA B200"))])
    (entry,) = plan_for(given, shipped("a4-highgpu-8g", "g6.xlarge"), POLICY, NOW).left_out
    assert [reason.code for reason in entry.reasons] == [Code.NEEDS_RESERVATION]
    assert [miss.example for miss in entry.near_misses] == ["g6.xlarge"]


def test_no_block_helps_who_asks_for_what_nothing_has() -> None:
    _, found = asked("Larger L10")
    assert ChangeKind.ADD_BLOCK not in {entry.change.kind for entry in found}


def test_a_block_is_in_the_region_that_is_asked_for() -> None:
    where = Where(clouds=("gcp",), regions=("us-central1",))
    policy = Policy(considered=100, where=where)
    given = snapshot([pod("p", "c")], [claim("c", gpus(product="NVIDIA B200"))])
    catalog = shipped("a4-highgpu-8g", "p6-b200.48xlarge")
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert [entry.change.kind for entry in found][:1] == [ChangeKind.ADD_BLOCK]


@pytest.mark.parametrize("hold", list(Hold))
def test_who_has_a_block_is_told_of_its_taint_and_not_to_buy_another(hold: Hold) -> None:
    """Also where the plan launches the machines of the block that no pod may use yet."""
    march = Taint("foreslice.dev/capacity-block", "march")
    held = block(
        "march", instance_type="bought", pool="team", reservation="cr-1", count=1, taint=march, hold=hold, uid="u"
    )
    pool = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=1))
    given = snapshot([pod("p", "c")], [claim("c", gpus(product="Large L9"))], pools=(pool,), blocks=(held,))
    found = plan_for(given, CATALOG, POLICY, NOW)
    (entry,) = found.left_out
    assert Code.NEEDS_RESERVATION not in {reason.code for reason in entry.reasons}
    assert len(found.launches) == (1 if hold is Hold.ALWAYS else 0)
    (first, *_) = advise(given.pods[0], given, CATALOG, found, POLICY, NOW)
    assert (first.change.kind, first.change.detail["taint"]) == (
        ChangeKind.TOLERATE,
        "foreslice.dev/capacity-block=march:NoSchedule",
    )


def kept_to_a_block(*, ends: timedelta, overflow: Permission = Permission.NEVER) -> Snapshot:
    """A pod that fits on machines of an hour, in a pool that the block "march" of one machine names."""
    march = block("march", instance_type="bought", pool="team", count=1, available=0, ends_at=NOW + ends)
    pool = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=1), overflow=overflow)
    return snapshot([pod("p", "c")], [claim("c", gpus(product="Small S1"))], pools=(pool,), blocks=(march,))


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (
            timedelta(hours=9),
            "hourly would fit, but pool team has spec.overflow: Never and CapacityBlock march, so it launches no other "
            "capacity: set spec.overflow to Allow",
        ),
        (
            timedelta(0),
            "hourly would fit, but pool team has spec.overflow: Never and CapacityBlock march (ended at "
            f"{NOW.isoformat(timespec='minutes')}), so it launches no other capacity: set "
            "spec.overflow to Allow, or delete the CapacityBlock",
        ),
    ],
)
def test_a_pool_that_keeps_to_its_block_says_so_also_after_the_end(ends: timedelta, reason: str) -> None:
    given = kept_to_a_block(ends=ends)
    found = plan_for(given, CATALOG, POLICY, NOW)
    assert next(iter(left_out_lines(found.left_out[0]))) == reason
    (first, *_) = advise(given.pods[0], given, CATALOG, found, POLICY, NOW)
    assert change_text(first.change) == (
        "pool team: set spec.overflow to Allow, so that it launches more than CapacityBlock march"
    )
    allowed = kept_to_a_block(ends=ends, overflow=Permission.ALLOW)
    assert [node.offering.instance_type for node in plan_for(allowed, CATALOG, POLICY, NOW).launches] == ["hourly"]


@pytest.mark.parametrize(
    ("begins", "ends", "there"),
    [
        (-9, -1, "an open CapacityBlock (march ended at 2026-11-21T07:00+00:00)"),
        (
            -9,
            0.1,
            "an open CapacityBlock (march drains since 2026-11-21T07:51+00:00: its machines end at "
            "2026-11-21T08:06+00:00)",
        ),
        (1, 9, "an open CapacityBlock (march begins at 2026-11-21T09:00+00:00)"),
        (-9, 9, "a CapacityBlock with a machine left (march has none)"),
    ],
)
def test_the_block_that_cannot_be_used_now_is_named(begins: float, ends: float, there: str) -> None:
    times = {key: NOW + timedelta(hours=at) for key, at in (("starts_at", begins), ("ends_at", ends))}
    march = block("march", instance_type="bought", pool="team", count=1, available=0, **times)
    of_others = block("april", instance_type="bought", pool="others", count=1)
    kinds = (CapacityType.CAPACITY_BLOCK,)
    pool = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=1), capacity_types=kinds)
    asking, named = pod("p", "c"), claim("c", gpus(product="Large L9"))
    given = snapshot([asking], [named], pools=(pool,), blocks=(march, of_others))
    (entry,) = plan_for(given, CATALOG, POLICY, NOW).left_out
    assert next(iter(left_out_lines(entry))) == (
        f"bought would fit, but capacity-block capacity needs {there}: add another for what you have bought"
    )


FLEX = replace(
    machine("a3-rare-8g", LARGE, 8, "9.00", cloud="gcp"),
    capacity_types=(CapacityType.FLEX_START, CapacityType.RESERVED),
)


@pytest.mark.parametrize("of_pool", [False, True])
def test_who_selects_flex_start_is_told_to_allow_it_and_of_its_price(of_pool: bool) -> None:
    pool = CapacityPool("team", Mode.ACT, drivers=("nvidia",), capacity_types=(CapacityType.ON_DEMAND,))
    asking = pod("p", "c", node_selector=FrozenMap({labels.GKE_FLEX_START: "true"}))
    given = snapshot([asking], [claim("c", gpus())], pools=(pool,) if of_pool else ())
    catalog = Catalog.of([FLEX, machine("n1-usual", SMALL, 1, "1.00", cloud="gcp")])
    (first, *_) = advise(asking, given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW)
    line = advice_lines([first])[0].partition("; the pod names no GPU")[0]
    allowed = (
        "(1) pool team: add flex-start to" if of_pool else "allow flex-start capacity: --allow on-demand,flex-start"
    )
    assert line.startswith(allowed)
    assert "costs as flex-start, of which no price is shipped" in line
    assert line.endswith("→ 1 × a3-rare-8g (flex-start), no price known")


def test_nobody_gives_up_a_model_that_is_sold_otherwise() -> None:
    """The name of a compute class has the GPU in it; without the class the pod would get any GPU."""
    asking = pod("p", "c", node_selector=FrozenMap({labels.GKE_COMPUTE_CLASS: "gpu-h200-141gb-x8"}))
    given = snapshot([asking], [claim("c", gpus(count=4))])
    catalog = shipped("a3-ultragpu-8g", "n1-standard-8+4xnvidia-tesla-t4")
    (first, *_) = advise(asking, given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW)
    assert {ChangeKind.ADD_BLOCK, ChangeKind.ADD_LABELS} <= {part.kind for part in first.change.parts}
    line = advice_lines([first])[0].partition("; the pod names no GPU")[0]
    assert "drop" not in line
    assert "it is never sold on demand; to buy it as flex-start or spot instead" in line


def test_a_reason_says_how_a_type_is_sold() -> None:
    given = snapshot([pod("p", "c")], [claim("c", gpus(product="NVIDIA B200"))])
    (entry,) = plan_for(given, shipped("a4-highgpu-8g"), POLICY, NOW).left_out
    assert next(iter(left_out_lines(entry))) == (
        "a4-highgpu-8g would fit, but it is sold only as capacity-block, reserved, flex-start, spot, and "
        "capacity-block capacity needs a CapacityBlock: add one for what you have bought, or allow flex-start or spot "
        "(--allow, or spec.capacityTypes of a pool)"
    )


@pytest.mark.parametrize("of_flavor", [True, False])
def test_a_machine_of_another_cloud_becomes_the_bought_one_with_its_gpu(of_flavor: bool) -> None:
    """The own label beside it goes with the flavor of that cloud; written in the pod, a pool gets it."""
    own, catalog = {labels.INSTANCE_TYPE: "BM.GPU.GB300.4", "nvidia.com/gpu": "true"}, shipped("a4x-maxgpu-4g-metal")
    waiting = pod("p", "c", node_selector=FrozenMap(own))
    waiting = replace(waiting, flavor_labels=FrozenMap(dict.fromkeys(own, "gb300s") if of_flavor else {}))
    given = snapshot([waiting], [claim("c", gpus(4))])
    found = advise(given.pods[0], given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW, most=1)
    (line,) = advice_lines(found)
    added = f"{labels.INSTANCE_TYPE}=BM.GPU.GB300.4, nvidia.com/gpu=true"
    flavor = f"instead of what spec.nodeLabels of ResourceFlavor gb300s adds ({added}), which no node of the plan has"
    assert "require foreslice.dev/accelerator In [nvidia-gb300] instead of" in line
    assert (flavor in line) is of_flavor
    assert ("nvidia.com/gpu=true in spec.labels" in line) is not of_flavor
    assert "buy a4x-maxgpu-4g-metal for a time (it is sold only as reserved)" in line
    assert "; a4x-maxgpu-4g-metal is arm64: an image that lacks this architecture does not start" in line


@pytest.mark.parametrize(("key", "counts"), [(labels.NVIDIA_GPU_CLIQUE, [1, 2]), (labels.HOSTNAME, [3])])
def test_workloads_that_want_nvlink_domains_of_their_own_need_a_block_each(key: str, counts: list[int]) -> None:
    away = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("a",)),)), key, ("default",))
    first = pod("a", "c-a", owner="StatefulSet/a", labels=FrozenMap({"app": "a"}))
    second = [pod(name, f"c-{name}", owner="StatefulSet/b", pod_anti_affinity=(away,)) for name in ("b-0", "b-1")]
    state = snapshot([first, *second], [claim(f"c-{name}", gpus(4)) for name in ("a", "b-0", "b-1")])
    catalog = shipped("a4x-highgpu-4g")
    alone = Situation.of(first, state, catalog, plan_for(state, catalog, POLICY, NOW))
    assert alone is not None
    (change,) = capacity_blocks(replace(alone, pods=(first, *second)))
    assert [one.count for one in change.edit(state).blocks] == counts
    assert ("(2 times: podAntiAffinity over nvidia.com/gpu.clique" in change_text(change)) is (len(counts) == 2)


@pytest.mark.parametrize("listed", [1, 100])
def test_the_smallest_cut_is_found_beyond_the_offerings_that_a_plan_lists(listed: int) -> None:
    """The cheapest machine, which the plan lists, has half of the memory, and another one nearly all."""
    asking = Container("main", FrozenMap({"memory": Quantity.parse("800Gi")}))
    given = snapshot([replace(pod("p", "c"), containers=(asking,))], [claim("c", gpus(8))])
    catalog, policy = shipped("g4dn.metal", "g5.48xlarge"), Policy(considered=listed)
    (found,) = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    assert found.change.kind is ChangeKind.LOWER_REQUEST
    assert [(bought.instance_type, count) for bought, count in found.result.launches] == [("g5.48xlarge", 1)]

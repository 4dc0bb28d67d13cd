"""Changes that would place a pod: each kind is found, was planned again, and is the smallest that helps."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.advice import advise as room
from autoscaler.advice.advise import advise
from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.pool_changes import undone as is_undone
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Advice, Budget
from autoscaler.model.capacity import CapacityPool, Limits, PodScope, Scope
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest, MatchAttribute
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from autoscaler.report.advised.change_steps import _TEXTS
from autoscaler.report.tables.failures import failure_text
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, GPU, LARGE, NOW, SMALL, claim, gang, gpus, machine, pairs, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{0}")) >= 0'
NAME = 'device.attributes["gpu.nvidia.com"].productName == "{0}"'
TYPE = 'device.attributes["gpu.nvidia.com"].type == "{0}"'
POLICY = Policy(considered=10_000)
ANYWHERE = Where()
SPOT_ONLY = Catalog.of([machine("s1", SMALL, 1, None, spot="0.30"), machine("l1", LARGE, 1, "5.00")])


def selecting(*expressions: str) -> DeviceRequest:
    return DeviceRequest("gpu", "gpu.nvidia.com", tuple(map(Selector, expressions)))


def advice(
    given: Snapshot,
    *,
    catalog: Catalog = CATALOG,
    name: str = "p",
    most: int = 3,
    budget: Budget | None = None,
    where: Where = ANYWHERE,
) -> tuple[Advice, ...]:
    asked = next(found for found in given.pods if found.name == name)
    policy = replace(POLICY, where=where)
    plan = plan_for(given, catalog, policy, NOW)
    return advise(asked, given, catalog, plan, policy, NOW, most=most, budget=budget)


def lines(given: Snapshot, **more: Any) -> list[str]:
    return [re.split("; (?:without it, )?the pod names no", one)[0] for one in advice_lines(advice(given, **more))]


def one(request: DeviceRequest | None = None, *, pools: tuple[CapacityPool, ...] = (), **fields: Any) -> Snapshot:
    """One pod with one claim."""
    wanted = claim("c", request or gpus())
    return snapshot([pod("p", "c", **fields)], [wanted], pools=pools)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            one(pools=(CapacityPool("team", taints=(Taint("team", "ml"),)),)),
            "pod default/p: tolerate taint team=ml:NoSchedule → 1 × s1 (on-demand), 1.00 $/h",
            id="taint",
        ),
        pytest.param(
            one(pools=(CapacityPool("team", capacity_types=(CapacityType.RESERVED,)),)),
            "pool team: add on-demand to spec.capacityTypes → 1 × s1 (on-demand), 1.00 $/h",
            id="capacity type",
        ),
        pytest.param(
            one(pools=(CapacityPool("team", limits=Limits(nodes=0)),)),
            "pool team: raise spec.limits.nodes from 0 to 1 → 1 × s1 (on-demand), 1.00 $/h",
            id="limit of nodes",
        ),
        pytest.param(
            one(gpus(4), pools=(CapacityPool("team", limits=Limits(usd_per_hour=Decimal("1"))),)),
            "pool team: raise spec.limits.usdPerHour from 1 to 3.60 → 1 × s4 (on-demand), 3.60 $/h",
            id="limit of dollars",
        ),
        pytest.param(
            one(pools=(CapacityPool("team", limits=Limits(accelerators=0)),)),
            "pool team: raise spec.limits.accelerators from 0 to 1 → 1 × s1 (on-demand), 1.00 $/h",
            id="limit of accelerators",
        ),
        pytest.param(
            one(pools=(CapacityPool("team"),), scheduler_name="kai-scheduler"),
            "pool team: add kai-scheduler to spec.scope.schedulerNames → 1 × s1 (on-demand), 1.00 $/h",
            id="scheduler",
        ),
        pytest.param(
            one(volumes=("data",)),
            "pod default/p: create PersistentVolumeClaim default/data (give it with its StorageClass of "
            "volumeBindingMode WaitForFirstConsumer, or bound with its PersistentVolume: `kubectl get pvc,pv,sc "
            "-o yaml`; tried with a volume that every zone serves: the real one decides cloud, zone and so the "
            "price) → 1 × s1 (on-demand), 1.00 $/h",
            id="volume claim",
        ),
        pytest.param(
            one(node_selector=FrozenMap({labels.INSTANCE_TYPE: "ml.s1"})),
            "pod default/p: write s1 instead of ml.s1 for node.kubernetes.io/instance-type → 1 × s1 (on-demand), "
            "1.00 $/h",
            id="name of SageMaker",
        ),
        pytest.param(
            one(affinity=NodeSelector((NodeSelectorTerm((Requirement(labels.INSTANCE_TYPE, "In", ("ml.s1",)),)),))),
            "pod default/p: write s1 instead of ml.s1 for node.kubernetes.io/instance-type → 1 × s1 (on-demand), "
            "1.00 $/h",
            id="name of SageMaker in affinity",
        ),
        pytest.param(
            one(selecting(MEMORY.format("500Gi"))),
            f"claim default/c, request gpu: write 80Gi instead of 500Gi in {MEMORY.format('500Gi')} "
            "→ 1 × l1 (on-demand), 5.00 $/h",
            id="amount of memory",
        ),
        pytest.param(
            one(selecting(NAME.format("Large L8"))),
            f'claim default/c, request gpu: write "Large L9" instead of "Large L8" in {NAME.format("Large L8")} '
            "→ 1 × l1 (on-demand), 5.00 $/h",
            id="name",
        ),
        pytest.param(
            one(cpu="40"),
            "pod default/p: request cpu 40 → 32 (container main) → 1 × s1 (on-demand), 1.00 $/h",
            id="cpu",
        ),
        pytest.param(
            one(gpus(12)),
            "claim default/c, request gpu: request 8 devices instead of 12 → 1 × l8 (on-demand), 40.00 $/h",
            id="count",
        ),
        pytest.param(
            one(pools=(CapacityPool("team", drivers=("dranet",)),)),
            "pool team: set spec.drivers.profiles to [dranet, nvidia] → 1 × s1 (on-demand), 1.00 $/h",
            id="drivers",
        ),
        pytest.param(
            one(node_selector=FrozenMap({labels.REGION: "mars-1"})),
            "pod default/p: drop nodeSelector topology.kubernetes.io/region=mars-1 → 1 × s1 (on-demand), 1.00 $/h",
            id="node selector",
        ),
        pytest.param(
            one(node_selector=FrozenMap({"a": "b", "c": "d"})),
            "create a CapacityPool with spec.limits.nodes 1 or more and a=b, c=d in spec.labels → 1 × s1 (on-demand), "
            "1.00 $/h; this is the cheapest that fits, because labels of your own do not say which machines they mean",
            id="labels of a node pool",
        ),
        pytest.param(
            one(node_selector=FrozenMap({"machine": "S_1"})),
            "create a CapacityPool with spec.limits.nodes 1 or more, node.kubernetes.io/instance-type In [s1] in "
            "spec.requirements and machine=S_1 in spec.labels → 1 × s1 (on-demand), 1.00 $/h",
            id="labels that name a machine",
        ),
        pytest.param(
            one(pools=(CapacityPool("team", requirements=(Requirement(labels.REGION, "In", ("mars-1",)),)),)),
            "pool team: drop the requirement topology.kubernetes.io/region In [mars-1] → 1 × s1 (on-demand), 1.00 $/h",
            id="requirement",
        ),
        pytest.param(
            one(selecting('device.attributes["gpu.nvidia.com"].productName.startsWith("Huge")')),
            'claim default/c, request gpu: drop device.attributes["gpu.nvidia.com"].productName.startsWith("Huge") '
            "→ 1 × s1 (on-demand), 1.00 $/h",
            id="selector",
        ),
    ],
)
def test_the_smallest_change(given: Snapshot, expected: str) -> None:
    assert lines(given)[0] == expected


def test_one_condition_of_a_selector_is_changed_and_the_others_stay() -> None:
    given = one(selecting(f"{NAME.format('Small S1')} && {MEMORY.format('80Gi')}"))
    found = lines(given, most=9)
    assert found[0].startswith(f"claim default/c, request gpu: write 16Gi instead of 80Gi in {MEMORY.format('80Gi')}")
    assert found[0].endswith("1 × s1 (on-demand), 1.00 $/h")
    assert f"claim default/c, request gpu: drop {NAME.format('Small S1')} → 1 × l1 (on-demand), 5.00 $/h" in found


def test_smaller_changes_come_first() -> None:
    pool = CapacityPool("team", taints=(Taint("team", "ml"),))
    given = one(pools=(pool, CapacityPool("other", limits=Limits(nodes=0))))
    found = advice(given, most=9)
    assert [entry.change.kind for entry in found] == [ChangeKind.TOLERATE, ChangeKind.RAISE_LIMIT]


def test_what_was_tried_and_did_not_help_is_not_suggested() -> None:
    """Both a taint and a nodeSelector are in the way, so neither change alone places the pod."""
    pool = CapacityPool("team", taints=(Taint("team", "ml"),))
    assert advice(one(pools=(pool,), node_selector=FrozenMap({"disk": "fast"}))) == ()


def test_every_suggestion_was_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes that help nobody are proposed with ones that do; only what places the pod is shown."""
    useless = Change.of(ChangeKind.TOLERATE, "pod default/p", lambda given: given, taint="no:NoSchedule")
    monkeypatch.setattr(room, "tolerations", lambda asked: iter((useless,)))
    given = one(gpus(12))
    found = advice(given)
    assert [entry.change.kind for entry in found] == [ChangeKind.LOWER_COUNT]
    for entry in found:
        again = plan_for(entry.change.edit(given), CATALOG, POLICY, NOW)
        assert [placement.pod for placement in again.placements] == ["default/p"]


def test_no_more_plans_than_the_budget_allows() -> None:
    given = one(gpus(12))
    budget = Budget(0)
    assert advice(given, budget=budget) == ()
    assert budget.spent == 0


def test_a_placed_pod_needs_no_change() -> None:
    given = one()
    plan = plan_for(given, CATALOG, POLICY, NOW)
    assert Situation.of(given.pods[0], given, CATALOG, plan) is None
    assert advice(given) == ()


def test_spot_where_only_spot_has_a_price() -> None:
    (found,) = lines(one(selecting(NAME.format("Small S1"))), catalog=SPOT_ONLY, most=1)
    assert found == "allow spot capacity: --allow on-demand,spot → 1 × s1 (spot), 0.30 $/h"


def test_what_the_command_line_rules_out() -> None:
    (spot,) = lines(one(), catalog=SPOT_ONLY, where=Where(capacity_types=(CapacityType.RESERVED,)), most=1)
    assert spot == "allow on-demand capacity: --allow reserved,on-demand → 1 × l1 (on-demand), 5.00 $/h"
    (cloud,) = lines(one(), where=Where(clouds=("gcp",)))
    assert cloud == "leave out --cloud gcp → 1 × s1 (on-demand), 1.00 $/h"


def test_pods_of_one_workload_change_together() -> None:
    pods, claims = pairs(3, gpus(12), owner="Job/train")
    given = snapshot(pods, claims)
    (found,) = lines(given, name="p00")
    assert found.endswith("request 8 devices instead of 12 → 3 × l8 (on-demand), 120.00 $/h")


def test_a_gang_changes_together() -> None:
    pods, claims = pairs(2, gpus(12), gang="g")
    given = snapshot(pods, claims, gangs=gang("g", 2))
    (found,) = lines(given, name="p00")
    assert found.endswith("→ 2 × l8 (on-demand), 80.00 $/h")


def test_a_limit_covers_what_others_get() -> None:
    """The pool's two nodes are for others; for the pod one more has to be allowed, whatever the plan is worth."""
    pods, claims = pairs(3, gpus(), cpu="30", owner="Job/train", priority=5)
    given = snapshot(
        [*pods, pod("p", "c", cpu="30")],
        [*claims, claim("c")],
        pools=(CapacityPool("team", limits=Limits(nodes=3)),),
    )
    assert lines(given) == ["pool team: raise spec.limits.nodes from 3 to 4 → 1 × s1 (on-demand), 1.00 $/h"]


def test_a_toleration_is_no_help_while_others_fill_the_pool() -> None:
    taint = Taint("team", "ml")
    served = pod("q", "d", cpu="30", tolerations=(Toleration("team", "Exists"),))
    pools = (CapacityPool("team", taints=(taint,), limits=Limits(nodes=1)),)
    assert lines(snapshot([pod("p", "c", cpu="30"), served], [claim("c"), claim("d")], pools=pools)) == []
    roomy = (CapacityPool("team", taints=(taint,), limits=Limits(nodes=2)),)
    assert len(lines(snapshot([pod("p", "c", cpu="30"), served], [claim("c"), claim("d")], pools=roomy))) == 1


def test_other_drivers_take_nobodys_place() -> None:
    """The pool's MIG layout serves another pod, which has no place among whole GPUs."""
    mig = DeviceClass("mig.nvidia.com", (Selector("device.driver == 'gpu.nvidia.com'"), Selector(TYPE.format("mig"))))
    given = snapshot(
        [pod("p", "c"), pod("q", "d")],
        [claim("c"), claim("d", DeviceRequest("gpu", "mig.nvidia.com"))],
        classes=(GPU, mig),
        pools=(CapacityPool("team", drivers=("nvidia:mig=all-1g.5gb",)),),
    )
    catalog = shipped("a2-highgpu-1g")
    assert [e.pod for e in plan_for(given, catalog, POLICY, NOW).left_out] == ["default/p"]
    found = advice(given, catalog=catalog)
    assert all(entry.change.detail.get("drivers") != ("nvidia",) for entry in found)
    for entry in found:
        again = plan_for(entry.change.edit(given), catalog, POLICY, NOW)
        assert {placement.pod for placement in again.placements} == {"default/p", "default/q"}


def test_a_constraint_can_go() -> None:
    same = MatchAttribute("gpu.nvidia.com/productName")
    wanted = claim(
        "c",
        DeviceRequest("a", "gpu.nvidia.com", (Selector(MEMORY.format("80Gi")),)),
        DeviceRequest("b", "gpu.nvidia.com", (Selector(MEMORY.format("80Gi")),)),
        constraints=(MatchAttribute("gpu.nvidia.com/uuid"), same),
    )
    found = advice(snapshot([pod("p", "c")], [wanted]))
    assert [(e.change.kind, e.change.detail["attribute"]) for e in found] == [
        (ChangeKind.DROP_CONSTRAINT, "gpu.nvidia.com/uuid")
    ]


def test_what_no_node_changes_gets_no_advice() -> None:
    given = replace(one(), classes=())
    assert advice(given) == ()


def test_a_scope_without_the_scheduler_names_it_to_an_implicit_pool() -> None:
    (found, *_) = lines(one(scheduler_name="kai-scheduler"))
    assert found.startswith(
        "create a CapacityPool with spec.limits.nodes 1 or more and kai-scheduler in spec.scope.schedulerNames → 1 × s1"
    )


def test_what_device_plugins_hand_out_widens_the_scope() -> None:
    """Pods without any claim, which a plan ignores: only those that ask for devices are worth a node."""
    catalog = shipped("ct5lp-hightpu-4t")
    wants = FrozenMap({"cpu": Quantity.of(1), "google.com/tpu": Quantity.of(4)})
    (found, *_) = lines(snapshot([replace(pod("p"), containers=(Container("c", wants),))]), catalog=catalog)
    assert found.startswith(
        "create a CapacityPool with spec.limits.nodes 1 or more and spec.scope.pods All → 1 × ct5lp-hightpu-4t"
    )
    assert advice(snapshot([pod("p")]), catalog=catalog) == ()


def test_a_pod_is_not_worth_a_node_for_its_network_card_alone() -> None:
    wants = FrozenMap({"cpu": Quantity.of(1), "vpc.amazonaws.com/efa": Quantity.of(1)})
    given = snapshot([replace(pod("p"), containers=(Container("c", wants),))])
    assert advice(given, catalog=shipped("p4d.24xlarge")) == ()
    everything = replace(given, pools=(CapacityPool("all", scope=Scope(pods=PodScope.ALL)),))
    catalog = shipped("trn1.32xlarge")
    assert advice(everything, catalog=catalog) == ()
    (entry,) = plan_for(everything, catalog, POLICY, NOW).left_out
    assert Code.NO_POOL not in {reason.code for reason in entry.reasons}
    told = [failure_text(miss.reason) for miss in entry.near_misses]
    assert any("has any with its device plugin" in text for text in told), told


def test_texts_of_the_same_pool_are_told_apart() -> None:
    pools = tuple(CapacityPool(name, scope=Scope(schedulers=("x",))) for name in ("a", "b"))
    found = lines(one(pools=pools, scheduler_name="kai"))
    assert [line.partition(":")[0] for line in found] == ["pool a", "pool b"]


def test_a_part_of_a_card_where_only_that_fits() -> None:
    catalog = shipped("g6f.large", "g6.xlarge")
    small = selecting('device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("4Gi")) < 0')
    (found, *_) = lines(one(small), catalog=catalog)
    assert found.startswith(
        "create a CapacityPool with spec.limits.nodes 1 or more and spec.fractional Allow, so that 1/8 of"
    )
    assert "1 × g6f.large (on-demand)" in found


def test_every_kind_of_change_has_a_sentence_with_its_facts() -> None:
    assert {*_TEXTS} == {*ChangeKind}


@pytest.mark.parametrize(("value", "undone"), [("x", True), ("y", False)])
def test_a_label_is_not_given_to_nodes_for_a_pod_that_no_longer_selects_it(value: str, undone: bool) -> None:
    added = Change.of(ChangeKind.ADD_LABELS, "pool a", lambda found: found, labels=("team=x",))
    dropped = Change.of(ChangeKind.DROP_NODE_SELECTOR, "pod b", lambda found: found, key="team", value=value)
    assert (is_undone(added, dropped), is_undone(dropped, added), is_undone(added, added)) == (undone, undone, False)


@pytest.mark.parametrize(
    ("condition", "rewritten"),
    [
        (NAME.format("Tesla T5"), True),
        ('device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:01"', False),
    ],
    ids=["a-name", "an-address"],
)
def test_no_other_address_of_a_device_is_proposed(condition: str, rewritten: bool) -> None:
    found = [entry.change.kind for entry in advice(one(selecting(condition)), catalog=shipped("g4dn.12xlarge"))]
    assert (ChangeKind.REWRITE_SELECTOR in found) is rewritten


def test_the_cloud_that_somebody_asked_for_is_not_given_up_beside_another_change() -> None:
    """Alone that is an answer; with a selector dropped as well it is another question."""
    catalog = Catalog.of([machine("s1", SMALL, 1, "1.00", cloud="aws"), machine("v1", None, 0, "0.10", cloud="gcp")])
    asked = one(node_selector=FrozenMap({"team": "ml"}), pools=())
    where = Where(clouds=("gcp",))
    found = advice(asked, catalog=catalog, where=where)
    assert all(ChangeKind.ASK_ELSEWHERE not in {part.kind for part in entry.change.parts} for entry in found)
    free = advice(one(), catalog=catalog, where=where)
    assert [entry.change.kind for entry in free] == [ChangeKind.ASK_ELSEWHERE]

"""What is offered to whom, and in which order offerings replace each other."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from autoscaler.execution.providers_seen import with_unserved
from autoscaler.model.capacity import CapacityPool, GroupOffering, Limits, Mode, NodeTemplateRef, Permission
from autoscaler.model.device_class import Selector
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import FirstAvailable
from autoscaler.model.snapshot import Backoff
from autoscaler.planning.placement.existing import present_nodes
from autoscaler.planning.supply.offering_labels import capacity_type_facts
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from tests.builders import (
    CATALOG,
    LARGE,
    NAMELESS,
    NOW,
    SMALL,
    block,
    claim,
    gpus,
    machine,
    pairs,
    plan,
    pod,
    snapshot,
    types,
    why_left,
)

ARM = replace(machine("arm", SMALL, 1, "0.50"), architecture="arm64")
INTEL = machine("intel", SMALL, 1, "1.00")
ON_ARM = NodeSelector((NodeSelectorTerm((Requirement(labels.ARCHITECTURE, "In", ("arm64",)),)),))
POOL = CapacityPool("team", Mode.ACT, drivers=("nvidia",), limits=Limits(nodes=5))


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        pytest.param(pod("p", "c"), ["intel"], id="says nothing"),
        pytest.param(pod("p", "c", node_selector=FrozenMap({labels.ARCHITECTURE: "arm64"})), ["arm"], id="selects"),
        pytest.param(pod("p", "c", affinity=ON_ARM), ["arm"], id="affinity"),
        pytest.param(pod("p", "c", tolerations=(Toleration(labels.ARCHITECTURE, "Exists"),)), ["arm"], id="tolerates"),
    ],
)
def test_the_implicit_pool_offers_arm_to_those_who_name_it(asking: Pod, expected: list[str]) -> None:
    state = snapshot([asking], [claim("c")])
    assert types(plan(state, catalog=Catalog.of([ARM, INTEL]))) == expected


@pytest.mark.parametrize(
    ("key", "value"), [(labels.ARCHITECTURE, "arm64"), (labels.INSTANCE_TYPE, "arm"), (labels.ACCELERATOR, "small")]
)
def test_a_pool_that_names_the_architecture_or_the_type_means_it(key: str, value: str) -> None:
    """One that excludes nothing says nothing about the images of pods and nodes."""
    state = snapshot([pod("p", "c")], [claim("c")], pools=(POOL,))
    assert types(plan(state, catalog=Catalog.of([ARM, INTEL]))) == ["intel"]
    named = replace(POOL, requirements=(*POOL.requirements, Requirement(key, "In", (value,))))
    assert types(plan(replace(state, pools=(named,)), catalog=Catalog.of([ARM, INTEL]))) == ["arm"]


def test_only_arm_is_explained() -> None:
    result = plan(snapshot([pod("p", "c")], [claim("c")]), catalog=Catalog.of([ARM]))
    assert Code.ARCHITECTURE_UNASKED in why_left(result, "p")


def test_a_replacement_keeps_the_preference_before_the_price() -> None:
    request = FirstAvailable("gpu", (gpus(product="Large L9", name="large"), gpus(product="Small S1", name="small")))
    result = plan(snapshot([pod("p", "c")], [claim("c", request)], pools=(POOL,)))
    names = [offering.instance_type for offering in result.launches[0].offerings]
    assert names == ["l1", "l8", "s1", "s4"]


@pytest.mark.parametrize("name", ["n1-standard-8+1xnvidia-tesla-t4", "n1-standard-8"])
def test_a_machine_with_attached_accelerators_answers_to_both_names(name: str) -> None:
    attached = replace(
        machine("n1-standard-8+1xnvidia-tesla-t4", SMALL, 1, "1.00", cloud="gcp"), machine="n1-standard-8"
    )
    pool = replace(POOL, requirements=(Requirement(labels.INSTANCE_TYPE, "In", (name,)),))
    result = plan(snapshot([pod("p", "c")], [claim("c")], pools=(pool,)), catalog=Catalog.of([attached, INTEL]))
    assert types(result) == ["n1-standard-8+1xnvidia-tesla-t4"]
    assert result.launches[0].node.labels[labels.INSTANCE_TYPE] == "n1-standard-8"


@pytest.mark.parametrize(("wanted", "bought"), [("spot", "spot"), ("on-demand", "on-demand"), ("reserved", None)])
def test_a_pool_may_name_capacity_types_as_karpenter_does(wanted: str, bought: str | None) -> None:
    pool = replace(
        POOL,
        capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND),
        requirements=(Requirement(labels.KARPENTER_CAPACITY_TYPE, "In", (wanted,)),),
    )
    catalog = Catalog.of([machine("both", SMALL, 1, "1.00", spot="0.30")])
    result = plan(snapshot([pod("p", "c")], [claim("c")], pools=(pool,)), catalog=catalog)
    assert [launch.offering.capacity_type for launch in result.launches] == ([bought] if bought else [])


def test_a_capacity_block_is_reserved_capacity_to_karpenter() -> None:
    assert capacity_type_facts(CapacityType.CAPACITY_BLOCK)[labels.KARPENTER_CAPACITY_TYPE] == "reserved"


@pytest.mark.parametrize("taint", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
def test_a_node_that_another_autoscaler_removes_takes_no_pods(taint: str) -> None:
    """Not even those that tolerate its taint: they would be evicted again."""
    leaving = Node("leaving", taints=(Taint(taint, "", "NoSchedule"),))
    state = snapshot([], nodes=(Node("staying", taints=(Taint("dedicated", "gpu", "NoSchedule"),)), leaving))
    assert list(present_nodes(state, CATALOG, World.of(state)).targets) == ["staying"]


def test_a_selector_that_fails_on_some_types_and_fits_none_is_fatal() -> None:
    asked = replace(gpus(), selectors=(Selector("device.attributes['gpu.nvidia.com'].index == 0"),))
    catalog = Catalog.of([INTEL, machine("plain", None, 0, "0.10")])
    result = plan(snapshot([pod("p", "c")], [claim("c", asked)]), catalog=catalog)
    assert [entry.verdict for entry in result.left_out] == ["fatal"]
    assert why_left(result, "p") == [Code.SELECTOR_ERROR]


PART = replace(
    machine("part", replace(SMALL, model="S1 (1/8)", virtual=True), 1, "0.10"), accelerator_count=Fraction(1, 8)
)


def test_a_part_of_a_card_is_offered_to_pools_that_allow_it() -> None:
    catalog = Catalog.of([PART, INTEL])
    state = snapshot([pod("p", "c")], [claim("c")], pools=(POOL,))
    assert types(plan(state, catalog=catalog)) == ["intel"]
    allowing = snapshot([pod("p", "c")], [claim("c")], pools=(replace(POOL, fractional=Permission.ALLOW),))
    bought = plan(allowing, catalog=catalog)
    assert types(bought) == ["part"]
    assert Reason.of(Code.CHEAPEST, share="1/8 of an S1") in [
        reason for demand in bought.demands for offer in demand.considered for reason in offer.reasons
    ]


def test_only_a_part_of_a_card_is_explained() -> None:
    result = plan(snapshot([pod("p", "c")], [claim("c")]), catalog=Catalog.of([PART]))
    assert Code.FRACTION_UNASKED in why_left(result, "p")


@pytest.mark.parametrize(
    ("groups", "bought"),
    [
        (None, ["intel"]),
        ([("other", "us-east-1a", "on-demand")], ["other"]),
        ([("other", "us-east-1a", "on-demand"), ("intel", "us-east-1b", "spot")], ["other"]),
        ([("intel", "us-east-1a", "on-demand"), ("other", "us-east-1a", "on-demand")], ["intel"]),
        ([], []),
    ],
)
def test_only_what_the_groups_of_a_node_template_start_is_bought(
    groups: list[tuple[str, str, str]] | None, bought: list[str]
) -> None:
    """The price decides among these."""
    catalog = Catalog.of([INTEL, replace(INTEL, name="other", prices=machine("x", SMALL, 1, "9").prices)])
    template = NodeTemplateRef("GCPNodeTemplate", "gpu")
    found = None if groups is None else frozenset(GroupOffering(*group) for group in groups)
    state = snapshot([pod("p", "c")], [claim("c")], pools=(replace(POOL, groups=found, node_template=template),))
    result = plan(state, catalog=catalog)
    assert types(result) == bought
    if not bought:
        assert Code.NOT_IN_GROUPS in why_left(result, "p")


def test_a_type_on_which_nothing_runs_is_not_bought_and_says_why() -> None:
    old = machine("p2.xlarge", replace(SMALL, model="K80", architecture="Kepler"), 1, "0.10")
    state = snapshot([pod("p", "c")], [claim("c")])
    assert types(plan(state, catalog=Catalog.of([old, INTEL]))) == ["intel"]
    assert Code.NOT_RUNNABLE in why_left(plan(state, catalog=Catalog.of([old])), "p")


def test_cheaper_types_that_nobody_can_judge_are_said() -> None:
    """A claim for a product whose name is not known of the cheapest machine: it may have been enough."""
    nameless = machine("n1", NAMELESS, 1, "0.50")
    catalog = Catalog.of([*CATALOG, nameless])
    result = plan(snapshot([pod("a", "c")], [claim("c", gpus(product="Large L9"))]), catalog=catalog)
    assert types(result) == ["l1"]
    (said,) = [reason for reason in result.warnings if reason.code is Code.CHEAPER_UNKNOWN]
    assert (said.detail["types"], said.detail["example"], said.detail["price"]) == (1, "n1", "0.50")
    sure = plan(snapshot([pod("a", "c")], [claim("c", gpus())]), catalog=catalog)
    assert not [reason for reason in sure.warnings if reason.code is Code.CHEAPER_UNKNOWN]


@pytest.mark.parametrize(
    ("price", "said"),
    [
        pytest.param("0.50", 1, id="cheaper for each pod"),
        pytest.param("3.00", 0, id="one GPU at more than an eighth of eight"),
    ],
)
def test_a_small_undecided_type_is_compared_by_what_a_pod_costs(price: str, said: int) -> None:
    nameless, eight = machine("n1", NAMELESS, 1, price), machine("many", LARGE, 8, "10.00")
    pods, claims = pairs(8, gpus(product="Large L9"))
    result = plan(snapshot(pods, claims), catalog=Catalog.of([eight, nameless]))
    assert types(result) == ["many"]
    assert len([reason for reason in result.warnings if reason.code is Code.CHEAPER_UNKNOWN]) == said


def test_the_zones_of_the_groups_are_offered_where_the_pool_names_none() -> None:
    """So a zone that has none is left for the next one."""
    groups = frozenset(GroupOffering("intel", zone, CapacityType.ON_DEMAND) for zone in ("us-east-1a", "us-east-1b"))
    template = NodeTemplateRef("GCPNodeTemplate", "gpu")
    pool = replace(POOL, groups=groups, node_template=template)
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool,))
    (first,) = plan(state, catalog=Catalog.of([INTEL])).launches
    assert {offering.zone for offering in first.offerings} == {"us-east-1a", "us-east-1b"}
    spent = Backoff(NOW + timedelta(hours=1), "intel", first.offering.zone, CapacityType.ON_DEMAND, pool=pool.name)
    (second,) = plan(replace(state, backoffs=(spent,)), catalog=Catalog.of([INTEL])).launches
    assert second.offering.zone != first.offering.zone
    elsewhere = replace(pool, requirements=(Requirement(labels.REGION, "In", ("eu-west-1",)),))
    assert types(plan(replace(state, pools=(elsewhere,)), catalog=Catalog.of([INTEL]))) == []


@pytest.mark.parametrize(("started", "held"), [("cr-1", True), ("cr-2", False), ("", True)])
def test_a_block_is_bought_where_a_group_starts_its_reservation(started: str, held: bool) -> None:
    """ "": the group starts reserved machines, and it is not known of which reservation."""
    group = GroupOffering("l8", "us-east-1a", CapacityType.CAPACITY_BLOCK, started)
    pool = replace(POOL, groups=frozenset({group}), node_template=NodeTemplateRef("GCPNodeTemplate", "gpu"))
    held_block = block(reservation="cr-1", pool=pool.name)
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool,), blocks=(held_block,))
    result = plan(state)
    assert types(result) == (["l8"] if held else [])
    if not held:
        (why,) = (one for entry in result.left_out for one in entry.reasons if one.code is Code.NOT_IN_GROUPS)
        assert dict(why.detail) == {"kind": "GCPNodeTemplate", "template": "gpu", "block": held_block.name}
    (noted,) = with_unserved([held_block], [pool])
    assert bool(noted.note) is not held
    assert with_unserved([held_block], [replace(pool, groups=None)]) == (held_block,)
    assert with_unserved([replace(held_block, note="impaired")], [pool])[0].note == "impaired"


def test_without_a_block_the_block_is_missing_whichever_reservation_the_groups_start() -> None:
    held = replace(INTEL, capacity_types=(CapacityType.RESERVED,))
    group = GroupOffering("intel", "us-east-1a", CapacityType.RESERVED, "cr-1")
    pool = replace(POOL, capacity_types=(CapacityType.RESERVED,), groups=frozenset({group}))
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool,))
    assert Code.NEEDS_RESERVATION in why_left(plan(state, catalog=Catalog.of([held])), "p")


def test_what_one_reservation_lacks_says_nothing_of_others() -> None:
    pool = replace(POOL, capacity_types=(CapacityType.CAPACITY_BLOCK,))
    blocks = (block("a", reservation="cr-a"), block("b", reservation="cr-b"))
    tried = Backoff(
        NOW + timedelta(hours=1), "l8", "us-east-1a", CapacityType.CAPACITY_BLOCK, pool=pool.name, reservation="cr-a"
    )
    state = snapshot([pod("p", "c")], [claim("c")], pools=(pool,), blocks=blocks, backoffs=(tried,))
    assert [node.offering.block for node in plan(state).launches] == ["b"]

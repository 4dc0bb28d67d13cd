"""What a plan looks like: what matters first, equal things together, nothing wider than 120 columns."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
import yaml

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.cli.common.output import json_text
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NearMiss, Plan
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.report.advised.change_steps import change_steps
from autoscaler.report.cel_words import short_cel
from autoscaler.report.plan_document import document_of
from autoscaler.report.tables.given import Given, given_of, without_node_names
from autoscaler.report.tables.plan_summary import left_out_lines, left_out_table, summary_of
from autoscaler.report.tables.plan_tables import tables_of
from autoscaler.report.words import money
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import CapacityType
from tests.builders import TEAM, claim, gpus, pairs, plan, pod, snapshot


def planned(count: int, **fields: object) -> Plan:
    pods, claims = pairs(count, gpus(1))
    return plan(snapshot(pods, claims, **fields))


def text(result: Plan, *, wide: bool = False) -> str:
    parts = [line.text for line in summary_of(result)]
    left = left_out_table(result, wide=wide)
    for table in ([left] if left else []) + tables_of(result, wide=wide):
        parts += [table.title, *(" ".join(row) for row in table.rows), *table.notes]
    return "\n".join(parts)


def test_equal_nodes_and_their_pods_share_a_row() -> None:
    shown = text(planned(30))
    assert "7 × s4 new-node-" in shown
    assert "p00" in shown
    assert "p17" not in shown
    assert "p17" in text(planned(30), wide=True)


def test_nodes_are_counted_where_there_is_no_pool() -> None:
    assert [node.name for node in planned(2).launches] == ["new-node-1", "new-node-2"]
    assert planned(1, pools=(TEAM,)).launches[0].name.startswith("team-")


def test_the_total_says_where_and_when_prices_were_read() -> None:
    assert summary_of(planned(1))[0].text == (
        "1 node to launch for 1.00 $/h (prices of us-east-1, 2026); 1 pod placed, 0 cannot be placed, 0 ignored"
    )


def test_a_pod_that_cannot_be_placed_reads_like_an_event_of_kube_scheduler() -> None:
    result = plan(snapshot([pod("big", "c", cpu="33")], [claim("c")]))
    assert list(left_out_lines(result.left_out[0])) == [
        "0/5 instance types can run default/big: 5 Insufficient cpu (33 requested, at most 32 allocatable)"
    ]


def test_equal_pods_that_fit_nowhere_are_one_entry_and_each_names_its_own_claim() -> None:
    pods, claims = pairs(3, gpus(1, product="Z9000"))
    result = plan(snapshot(pods, claims))
    assert [entry.claims for entry in result.left_out] == [(f"default/p0{i}-c",) for i in range(3)]
    for entry in result.left_out:
        said = " ".join(str(reason.subject) for reason in (*entry.reasons, *(m.reason for m in entry.near_misses)))
        assert entry.claims[0] in said
        assert not any(other.claims[0] in said for other in result.left_out if other is not entry)
    table = left_out_table(result)
    assert table is not None
    assert table.notes[0] == "default/p00, default/p01, default/p02: does-not-fit"


def test_a_pool_that_keeps_a_type_out_is_named_with_the_field() -> None:
    result = plan(
        snapshot([pod("p", "c")], [claim("c")], pools=(CapacityPool("r", capacity_types=(CapacityType.SPOT,)),))
    )
    assert "s1 would fit, but pool r excludes it: spec.capacityTypes has no on-demand" in text(result)


def test_pods_that_share_a_claim_are_not_split_where_nothing_fits_at_all() -> None:
    shared = claim("c", gpus(1, product="Z9000"))
    result = plan(snapshot([pod("a", "c"), pod("b", "c")], [shared]))
    assert all(reason.code is not Code.BUNDLE_SPLIT for entry in result.left_out for reason in entry.reasons)


def test_what_device_plugins_hand_out_needs_a_pool_for_all_pods() -> None:
    wanted = Pod("default", "gpu", containers=(Container("c", FrozenMap({"nvidia.com/gpu": Quantity.of(4)})),))
    told = [line.text for line in summary_of(plan(snapshot([wanted])))[1:]]
    assert told == [
        "1 pod ignored: default/gpu (asks for nvidia.com/gpu, which device plugins hand out and no DeviceClass "
        "serves, and has no resource claim: set spec.scope.pods to All, or to Selected with a podSelector, in a "
        "CapacityPool whose nodes run them, or use a claim)"
    ]


def test_what_no_machine_hands_out_needs_another_place() -> None:
    wanted = Pod("default", "tpu", containers=(Container("c", FrozenMap({"google.com/tpu": Quantity.of(4)})),))
    (told,) = [line.text for line in summary_of(plan(snapshot([wanted])))[1:]]
    assert "asks for google.com/tpu, which no machine of aws in the catalog hands out: neither" in told
    assert "leave it to existing nodes" in told


def test_ignored_pods_have_a_reason_and_a_remedy() -> None:
    result = plan(snapshot([pod("kai", "c", scheduler_name="kai-scheduler"), pod("plain")], [claim("c")]))
    told = [line.text for line in summary_of(result)[1:]]
    assert told == [
        "1 pod ignored: default/kai (schedulerName kai-scheduler is in no pool's scope: add "
        "spec.scope.schedulerNames: [kai-scheduler] to a CapacityPool)",
        "1 pod ignored: default/plain (needs no accelerator: an ordinary node runs it, and nothing is bought for it)",
    ]
    document = document_of(result)
    entry = document["outOfScope"][0]
    assert entry["pod"] == "default/kai"
    assert document["reasons"][entry["reasons"][0]]["code"] == "OtherScheduler"


def test_a_pod_without_devices_that_selects_nodes_needs_one_that_exists() -> None:
    """Which nodes there are is not known without them."""
    one = pod("p", node_selector=FrozenMap({"kubernetes.io/hostname": "gpu-7"}))
    (line,) = summary_of(plan(snapshot([one])))[1:]
    assert line.text.endswith("nothing is bought for it: it needs a node that it selects)")


@pytest.mark.parametrize("name", ["a], pods: All, y: [z", "null", "-", "a: b", "a #b", "1e3", 'a", "b'])
def test_the_name_of_a_scheduler_is_one_item_of_the_list(name: str) -> None:
    result = plan(snapshot([pod("p", "c", scheduler_name=name)], [claim("c")]))
    (text,) = [line.text for line in summary_of(result)[1:]]
    field = text.partition("add spec.scope.")[2].removesuffix(" to a CapacityPool)")
    assert yaml.safe_load(field) == {"schedulerNames": [name]}
    quoted = json.dumps(name)
    change = Change.of(ChangeKind.ADD_SCHEDULER, "pool gpu", lambda state: state, scheduler=name)
    assert f"add {quoted} to spec.scope.schedulerNames" in " ".join(change_steps(change))


def test_a_demand_names_only_its_own_nodes() -> None:
    two = [CapacityPool(name, labels=TEAM.labels.with_items({"team": name})) for name in ("a", "b")]
    pods = [pod(name, name, node_selector=TEAM.labels.with_items({"team": name})) for name in ("a", "b")]
    result = plan(snapshot(pods, [claim("a"), claim("b")], pools=tuple(two)))
    chosen = [(e.outcome, e.nodes) for demand in result.demands for e in demand.considered if e.outcome == "chosen"]
    assert chosen == [("chosen", 1), ("chosen", 1)]


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", "memory >= 40Gi"),
        ('device.attributes["gpu.nvidia.com"].productName == "A"', 'productName == "A"'),
        ("a &&\n    b", "a && b"),
        ("x" * 70, "x" * 59 + "…"),
        ("m.compareTo(quantity('1Gi')) >= 01", "m.compareTo(quantity('1Gi')) >= 01"),
    ],
)
def test_selectors_are_short(expression: str, shown: str) -> None:
    assert short_cel(expression) == shown


@pytest.mark.parametrize(
    ("amount", "shown"), [("92.9375881512329", "92.94"), ("0.001", "<0.01"), ("0", "0.00"), (None, "no price")]
)
def test_money_has_two_digits(amount: str | None, shown: str) -> None:
    assert money(None if amount is None else Decimal(amount)) == shown


def test_a_thousand_pods_are_no_more_than_150_lines_and_2_megabytes() -> None:
    one = planned(2)
    pods = [f"team-{i % 6}/app-{i % 60}-{i}" for i in range(1000)]
    result = replace(
        one,
        launches=tuple(replace(one.launches[0], name=f"new-node-{i + 1}", pods=(p,)) for i, p in enumerate(pods)),
        placements=tuple(replace(one.placements[0], pod=p, node=f"new-node-{i + 1}") for i, p in enumerate(pods)),
        demands=tuple(replace(one.demands[0], pods=tuple(pods[i::60])) for i in range(60)),
    )
    assert text(result).count("\n") < 150
    written = json_text(document_of(result))
    assert len(written) < 2_000_000
    assert json.loads(written)["summary"]["nodesToLaunch"] == 1000


def test_json_shares_offerings_and_reasons() -> None:
    document = document_of(planned(30))
    assert document["apiVersion"] == "foreslice.dev/v1alpha2"
    (demand,) = document["demands"]
    named = {c for group in demand["considered"] for c in group["candidates"]}
    assert named == set(document["candidates"])
    assert {document["candidates"][c]["offering"] for c in named} <= set(document["offerings"])


def test_a_reason_without_a_name_is_no_empty_text() -> None:
    assert list(left_out_lines(replace(planned_out(), near_misses=()))) == [
        "gang g: needs 2 pods at once, 1 could be placed"
    ]


def planned_out():  # type: ignore[no-untyped-def]
    pods, claims = pairs(1, gpus(1, product="Z9000"))
    (entry,) = plan(snapshot(pods, claims)).left_out
    return replace(entry, reasons=(Reason.of(Code.GANG_INCOMPLETE, Subject("gang", "g"), wanted=2, placed=1),))


def test_types_that_the_pod_does_not_ask_for_come_last_and_none_of_them_is_the_nearest() -> None:
    elsewhere = Reason.of(Code.NODE_SELECTOR_MISMATCH, key="team", wanted="search")
    missing = Reason.of(Code.VOLUME_UNBOUND, claim="default/data", missing_claim="not there")
    misses = (NearMiss(elsewhere, 180, "g4ad.xlarge"), NearMiss(missing, 2, "g6.xlarge"))
    volume, line = left_out_lines(LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=misses, types=182))
    assert volume.startswith("PersistentVolumeClaim default/data is not there: create it")
    assert line.index("2 held up by that volume") < line.index("node selector")
    assert "nearest" not in line
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=misses[::-1], types=182)
    *_, line = left_out_lines(entry)
    assert ": 2 held up by that volume (whatever else they lack), 180 " in line  # no device was looked at there


def test_types_that_are_not_on_offer_are_counted_only_where_nothing_else_is() -> None:
    missing = NearMiss(Reason.of(Code.VOLUME_UNBOUND, claim="default/data", missing_claim="not there"), 2, "g6.xlarge")
    parts = NearMiss(Reason.of(Code.FRACTION_UNASKED), 3, "g6f.xlarge")
    drivers = NearMiss(Reason.of(Code.NOT_RUNNABLE), 4, "g3s.xlarge")
    entry = LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=(missing, parts, drivers), types=10)
    _, line = left_out_lines(entry)
    assert (
        line == "0/3 instance types can run default/p: 2 held up by that volume (whatever else they lack), 1 would fit"
    )
    unknown = Reason.of(Code.CLASS_NOT_FOUND, Subject.claim("default/c", "gpu"), missing_class=("vgpu",))
    *_, line = left_out_lines(replace(entry, verdict=LeftOutVerdict.UNKNOWN, reasons=(unknown,)))
    assert line.endswith(", 1 would fit if they had such devices")
    _, wide = left_out_lines(entry, wide=True)
    assert wide.startswith("0/10 ")
    assert "4 have no driver in the supported node images, 3 offer only a part of a GPU" in wide
    barred = replace(entry, near_misses=(parts, drivers))
    assert list(left_out_lines(barred)) == []  # of the 3 on offer something else is said
    *_, line = left_out_lines(replace(barred, verdict=LeftOutVerdict.UNKNOWN, reasons=(unknown,)))
    assert line == "all 3 instance types would fit if they had such devices"
    (alone,) = left_out_lines(replace(entry, near_misses=(parts, drivers), types=7))
    assert alone.startswith("0/7 instance types can run default/p: 4 have no driver")
    _, cut = left_out_lines(replace(entry, near_misses=(missing, parts, *[drivers] * 30), types=200))
    assert cut.endswith("for other reasons")


def test_types_of_which_each_lacks_one_of_two_classes_are_counted() -> None:
    """No class is missing everywhere, so it is not said of one of them."""
    misses = tuple(
        NearMiss(Reason.of(Code.NO_DEVICE_OF_CLASS, device_class=name), types, "s1")
        for name, types in (("gpu.nvidia.com", 2), ("neuron.aws.com", 3))
    )
    (line,) = left_out_lines(LeftOut("default/p", LeftOutVerdict.DOES_NOT_FIT, (), near_misses=misses, types=5))
    assert "3 have no device of DeviceClass neuron.aws.com, 2 have no device of DeviceClass gpu.nvidia.com" in line


def test_what_is_wrong_with_a_volume_is_a_sentence_and_not_counted() -> None:
    """No type is better or worse for a StorageClass that nobody gave."""
    missing = Reason.of(Code.UNSUPPORTED, storage_class="fast", claim="default/data")
    entry = LeftOut("default/p", LeftOutVerdict.UNKNOWN, (), near_misses=(NearMiss(missing, 7, "g6.xlarge"),), types=7)
    (line,) = left_out_lines(entry)
    assert line.startswith("StorageClass fast of PersistentVolumeClaim default/data is not in the files")
    some = replace(entry, types=9)
    told, counted = left_out_lines(some)
    assert (told, counted) == (
        line,
        "0/9 instance types can run default/p: 7 held up by that volume (whatever else they lack), 2 would fit",
    )


def test_pods_on_nodes_that_are_not_given_are_why_nothing_is_pending() -> None:
    running = pod("p", node_name="n")
    state = snapshot([running])
    lines = [line.text for line in summary_of(plan(state), given_of(state))]
    assert "there are no pending pods: default/p already has a node (spec.nodeName n); to plan for a new" in lines[1]
    placeholder = snapshot([pod("p", node_name="your-node")])
    assert "your-node: it looks like a placeholder" in summary_of(plan(placeholder), given_of(placeholder))[1].text
    assert given_of(snapshot([pod("q")])).elsewhere == ()
    assert "give pods" in summary_of(plan(snapshot([])), given_of(snapshot([])))[1].text


def test_pods_are_planned_without_their_node_only_where_nothing_else_keeps_them() -> None:
    found = without_node_names(snapshot([pod("p", node_name="n"), pod("q", node_name="m")]))
    assert found is not None
    assert [each.node_name for each in found.pods] == [None, None]
    assert without_node_names(snapshot([])) is None
    assert without_node_names(snapshot([pod("p", node_name="n"), pod("q")])) is None
    assert without_node_names(snapshot([pod("p", node_name="n", phase="Running")])) is None
    assert without_node_names(snapshot([pod("p", node_name="n")], nodes=[Node("n")])) is None


@pytest.mark.parametrize(("number", "said"), [(1, "1 object looks like a patch"), (2, "2 objects look like patches")])
def test_the_first_line_says_that_patches_were_planned(number: int, said: str) -> None:
    first, *_ = summary_of(planned(1), Given(incomplete=number))
    assert first.text.endswith(f"; an estimate, as {said}: see the warnings")
    assert first.level == "warning"
    assert "estimate" not in summary_of(planned(1))[0].text


@pytest.mark.parametrize(("number", "said"), [(1, "1 cheaper instance type"), (2, "2 cheaper instance types")])
def test_the_first_line_says_that_the_price_is_an_upper_bound(number: int, said: str) -> None:
    warning = Reason.of(Code.ADVICE, problem="they were not considered", may_cost_less=number)
    first, *rest = summary_of(replace(planned(1), warnings=(warning,)))
    assert first.text.endswith(f"; {said} may fit too: see the warnings")
    assert first.level == "warning"
    assert "warning: they were not considered" in [line.text for line in rest]


@pytest.mark.parametrize(("number", "said"), [(1, "1 suspended object"), (2, "2 suspended objects")])
def test_the_first_line_counts_objects_that_are_suspended(number: int, said: str) -> None:
    assert summary_of(planned(1), Given(suspended=number))[0].text.endswith(f"; {said} without pods: see the warnings")
    assert "suspended" not in summary_of(planned(1))[0].text
    nothing = snapshot([])
    advice = summary_of(plan(nothing), given_of(nothing, suspended=number))[1].text
    assert advice == "there are no pending pods: set suspend to false to plan for those of a suspended object"

"""Objects of foreslice.dev become model values and come back unchanged; what is wrong is named with its field."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.errors import BadInputError
from autoscaler.kube.custom.capacity_block import parse_capacity_block, write_capacity_block
from autoscaler.kube.custom.capacity_pool import (
    CapacityPoolStatus,
    parse_capacity_pool,
    parse_pool_status,
)
from autoscaler.kube.custom.pool_memory import (
    REMEMBERED,
    backoff_manifests,
    backoffs_of,
    quarantine_manifests,
    quarantines_of,
)
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import (
    AtDeadline,
    Baseline,
    CapacityBlock,
    CapacityPool,
    ConsolidationPolicy,
    Consumers,
    DeletionPolicy,
    Disruption,
    DisruptionBudget,
    Drain,
    DriftDisruption,
    Hold,
    Limits,
    Mode,
    NodeTemplateRef,
    Permission,
    PodScope,
    Scope,
    UnknownDurationPolicy,
)
from autoscaler.model.labels import LabelSelector
from autoscaler.model.provisioned_node import (
    OfferingRef,
    Phase,
    PhaseChange,
    Prediction,
    ProvisionedNode,
)
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Backoff, Quarantine
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Severity
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from tests.pool_manifest import write_capacity_pool

NOW = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
OFFERING = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal("0"), "cr-1", "november")
PREDICTION = Prediction("p5.48xlarge", ("nvidia",), "sha256:c", "sha256:s")
POOL = CapacityPool(
    name="research",
    mode=Mode.ACT,
    requirements=(
        Requirement("node.kubernetes.io/instance-type", "In", ("p5.48xlarge", "p5en.48xlarge")),
        Requirement("example.com/generation", "Gt", ("4",)),
        Requirement("example.com/tested", "Exists"),
    ),
    capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND),
    node_template=NodeTemplateRef("SimulatedNodeTemplate", "default"),
    labels=FrozenMap({"team": "research"}),
    taints=(Taint("team", "research", "NoExecute"),),
    startup_taints=(Taint("warming"),),
    kubelet_reserved=FrozenMap({"cpu": Quantity.parse("500m"), "memory": Quantity.parse("2Gi")}),
    drivers=("nvidia", "dranet"),
    limits=Limits(accelerators=64, nodes=8, usd_per_hour=Decimal("99.50")),
    overflow=Permission.ALLOW,
    baselines=(Baseline(1), Baseline(2, "* 8-18 * * 1-5", "Europe/Berlin")),
    disruption=Disruption(
        ConsolidationPolicy.NEVER,
        timedelta(hours=1, minutes=30),
        DriftDisruption.NEVER,
        (DisruptionBudget("10%", "0 3 * * *"),),
    ),
    weight=10,
    deletion_policy=DeletionPolicy.RETAIN,
    boot_timeout=timedelta(minutes=40),
    scope=Scope(
        PodScope.SELECTED,
        LabelSelector((Requirement("team", "In", ("research",)),)),
        LabelSelector((Requirement("x", "Exists"),)),
        ("default-scheduler",),
    ),
    uid="u-1",
)
BLOCK = CapacityBlock(
    name="november",
    instance_type="p5.48xlarge",
    zone="us-east-1a",
    count=4,
    starts_at=NOW,
    ends_at=NOW + timedelta(days=2),
    pool="research",
    reservation="cr-1",
    hold=Hold.WHILE_NEEDED,
    consumers=Consumers(
        LabelSelector((Requirement("team", "In", ("research",)),)), LabelSelector((Requirement("x", "Exists"),)), 8
    ),
    taint=Taint("mine", "november", "NoExecute"),
    unknown_duration=UnknownDurationPolicy.DENY,
    min_remaining=timedelta(hours=6),
    drain=Drain(timedelta(hours=1), timedelta(minutes=20), AtDeadline.LEAVE),
    drivers=("nvidia",),
    deletion_policy=DeletionPolicy.DRAIN,
    uid="u-2",
)
NODE = ProvisionedNode(
    name="research-x1",
    pool="research",
    node_name="research-x1",
    batch="b-1",
    offerings=(OFFERING, OfferingRef("p5en.48xlarge", "us-east-1b", CapacityType.ON_DEMAND, Decimal("63.29"))),
    prediction=PREDICTION,
    phase=Phase.READY,
    phase_since=NOW,
    obtained=OFFERING,
    provider="simulated",
    provider_id="sim:///us-east-1a/i-1",
    token="t-1",
    labels=FrozenMap({"team": "research"}),
    pods=("default/train-0",),
    boot_timeout=timedelta(minutes=40),
    reasons=(
        Reason.of(
            Code.TOO_FEW_DEVICES, Subject("request", "gpu"), wanted=8, found=4, share=0.5, exact=True, of=("a", "b")
        ),
    ),
    empty_since=NOW + timedelta(seconds=1, microseconds=5),
    history=(PhaseChange(Phase.INTENDED, NOW, "Planned"), PhaseChange(Phase.READY, NOW, "SlicesComplete")),
    uid="u-3",
    resource_version="17",
)


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(POOL, id="every field"),
        pytest.param(CapacityPool("small", limits=Limits(nodes=1)), id="defaults"),
        pytest.param(CapacityPool("big", limits=Limits(usd_per_hour=Decimal("1E+3"))), id="exponent"),
    ],
)
def test_a_pool_survives_the_way_there_and_back(pool: CapacityPool) -> None:
    assert parse_capacity_pool(write_capacity_pool(pool)) == pool


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(BLOCK, id="every field"),
        pytest.param(
            replace(BLOCK, reservation="", reservation_tags=FrozenMap({"team": "x"}), taint=None),
            id="by tags, no taint",
        ),
    ],
)
def test_a_block_survives_the_way_there_and_back(block: CapacityBlock) -> None:
    assert parse_capacity_block(write_capacity_block(block)) == block


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(NODE, id="every field"),
        pytest.param(ProvisionedNode("n", "p", "n", "", (OFFERING,), PREDICTION), id="defaults"),
    ],
)
def test_a_provisioned_node_survives_the_way_there_and_back(node: ProvisionedNode) -> None:
    assert parse_provisioned_node(write_provisioned_node(node)) == node


def test_a_node_remembers_the_latest_part_of_its_life() -> None:
    moments = (NOW + timedelta(seconds=second) for second in range(60))
    history = tuple(PhaseChange(Phase.LAUNCHING, moment, "") for moment in moments)
    assert parse_provisioned_node(write_provisioned_node(replace(NODE, history=history))).history == history[-50:]


def test_what_the_provider_said_of_a_block_comes_before_the_spec() -> None:
    manifest = write_capacity_block(replace(BLOCK, reservation="", reservation_tags=FrozenMap({"team": "x"})))
    manifest["status"] = {
        "reclaimAt": "2027-02-05T12:00:00+01:00",
        "available": 0,
        "reservation": "cr-9",
    }
    block = parse_capacity_block(manifest)
    assert block is not None
    assert block.ends_at == BLOCK.ends_at
    assert block.reclaimed == datetime(2027, 2, 5, 11, 0, tzinfo=UTC)
    assert (block.available, block.reservation) == (0, "cr-9")


def test_an_implicit_pool_has_no_manifest() -> None:
    with pytest.raises(ValueError, match="implicit"):
        write_capacity_pool(replace(POOL, implicit=True))


def test_an_object_of_ours_that_cannot_be_read_says_which_and_why() -> None:
    manifest = write_provisioned_node(NODE)
    manifest["spec"]["offerings"] = []
    with pytest.raises(BadInputError, match=r"'research-x1'.*spec.offerings needs 1 or more entries") as error:
        parse_provisioned_node(manifest)
    assert "backup" in error.value.next_step


def test_reasons_of_another_version_are_left_out() -> None:
    manifest = write_provisioned_node(NODE)
    manifest["status"]["reasons"].append({"code": "FromTheFuture"})
    assert parse_provisioned_node(manifest) == NODE


def _reread(status: dict[str, Any]) -> CapacityPoolStatus:
    return parse_pool_status({"metadata": {"name": "research"}, "status": status})


def test_backoffs_are_remembered_while_another_failure_would_lengthen_them() -> None:
    live = Backoff(
        NOW + timedelta(minutes=3), "p5.48xlarge", "us-east-1a", CapacityType.SPOT, "research", "Shortage", 4
    )
    passed = Backoff(NOW - timedelta(minutes=3), "p4d.24xlarge", pool="research")
    forgotten = Backoff(NOW - REMEMBERED, "p3.2xlarge", pool="research")
    status = _reread({"backoffs": backoff_manifests((passed, forgotten, live), now=NOW)})
    assert backoffs_of(status, "research") == (live, passed)


def test_quarantines_survive_as_they_are() -> None:
    counted = Quarantine("research", "p5.48xlarge", ("nvidia",), failed_boots=("n1", "n2"))
    active = Quarantine("research", "g6.xlarge", ("nvidia",), (), ("default/a on n3",), 2, NOW + timedelta(hours=1))
    drifted = replace(counted, failed_boots=(), drifts=("n4",), until=NOW + timedelta(minutes=1))
    status = _reread({"quarantines": quarantine_manifests((counted, drifted, active))})
    assert quarantines_of(status, "research") == (active, drifted, counted)


def test_an_unreadable_status_counts_as_empty() -> None:
    problems = Problems()
    assert parse_pool_status({"status": {"nodes": "many"}}, problems) == CapacityPoolStatus()
    assert [problem.field for problem in problems] == ["status.nodes"]


def _changed(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = deepcopy(manifest)
    *parents, last = path.split(".")
    inner: Any = changed
    for parent in parents:
        inner = inner[int(parent)] if parent.isdigit() else inner[parent]
    if value is DELETE:
        del inner[last]
    else:
        inner[last] = value
    return changed


DELETE = object()
POOL_MISTAKES = [
    ("spec.mode", "act", "spec.mode", "'act' is not one of Observe, Act", "did you mean 'Act'?"),
    ("spec.limits", DELETE, "spec.limits", "is required", "add `limits:` here"),
    ("spec.limits", {}, "spec.limits", "at least one of accelerators, nodes and usdPerHour", ""),
    (
        "spec.limits.usdPerHour",
        5.5,
        "spec.limits.usdPerHour",
        "a whole number or a string, found the number 5.5",
        "quo",
    ),
    (
        "spec.limits.usdPerHour",
        "1e3",
        "spec.limits.usdPerHour",
        "not an amount of dollars",
        'write it like 250 or "99.50"',
    ),
    ("spec.limits.nodes", -1, "spec.limits.nodes", "must be 0 or more, found the number -1", ""),
    ("spec.nodeTemplateRef", DELETE, "spec.nodeTemplateRef", "mode Act needs a nodeTemplateRef", ""),
    ("spec.weight", "5", "spec.weight", "expected a whole number, found the string '5'", "without quotes"),
    ("spec.weight", 101, "spec.weight", "must be 100 or less", ""),
    ("spec.capacityTypes", [], "spec.capacityTypes", "needs 1 or more entries, found 0", ""),
    (
        "spec.capacityTypes",
        ["Spot"],
        "spec.capacityTypes[0]",
        "not one of capacity-block, reserved",
        "did you mean 'spot'?",
    ),
    ("spec.capacityTypes", "spot", "spec.capacityTypes", "expected a list, found the string 'spot'", "start each"),
    ("spec.baseline", 2, "spec.baseline", "expected a list", "; it has the fields replicas, schedule, timeZone"),
    ("spec.drivers", "Auto", "spec.drivers", "expected an object", "`name: value` lines"),
    ("spec.drivers.profiles", ["Auto", "nvidia"], "spec.drivers.profiles", "Auto excludes other entries", ""),
    ("spec.labels", {"foreslice.dev/pool": "x"}, "spec.labels", "set by Foreslice itself", ""),
    ("spec.labels", {"team": 5}, "spec.labels.team", "expected a string, found the number 5", "quotes"),
    ("spec.requirements.0.operator", "in", "spec.requirements[0].operator", "not one of In", "did you mean 'In'?"),
    ("spec.requirements.1.values", ["x"], "spec.requirements[1].values", "exactly one integer", ""),
    ("spec.requirements.2.values", ["x"], "spec.requirements[2].values", "Exists and DoesNotExist take none", ""),
    ("spec.kubeletReserved.cpu", "much", "spec.kubeletReserved.cpu", "'much' is not a quantity", "500m"),
    ("spec.kubeletReserved.cpu", "-1", "spec.kubeletReserved.cpu", "negative", "zero or more"),
    ("spec.disruption.after", "5 min", "spec.disruption.after", "'5 min' is not a duration", "write it like 30m"),
    ("spec.disruption.budgets.0.nodes", "150%", "spec.disruption.budgets[0].nodes", "nor a percentage", '"10%"'),
    ("spec.baseline.0.timeZone", "not here", "spec.baseline[0].timeZone", "'not here' does not match", "Europe/Berlin"),
    ("spec.baseline.0.schedule", "often", "spec.baseline[0].schedule", "'often' does not match", "five cron fields"),
    ("spec.nodeTemplateRef.name", "A", "spec.nodeTemplateRef.name", "'A' does not match", "lower-case letters"),
    ("spec.taints.0.key", "", "spec.taints[0].key", "must have 1 or more characters", ""),
    ("metadata.name", "x" * 64, "metadata.name", "63", ""),
]


@pytest.mark.parametrize(
    ("path", "value", "field", "message", "step"), POOL_MISTAKES, ids=[m[3] for m in POOL_MISTAKES]
)
def test_a_mistake_in_a_pool_is_named_with_its_field(
    path: str, value: Any, field: str, message: str, step: str
) -> None:
    problems = Problems()
    assert parse_capacity_pool(_changed(write_capacity_pool(POOL), path, value), problems) is None
    (problem,) = problems
    assert problem.field == field
    assert message in problem.message
    assert step in problem.next_step
    assert problem.severity is Severity.ERROR


BLOCK_MISTAKES = [
    ("spec.endsAt", "2027-01-31T08:00:00Z", "spec.endsAt", "startsAt must be before endsAt", ""),
    ("spec.endsAt", "tomorrow", "spec.endsAt", "'tomorrow' is not a time", "2027-01-31T11:30:00Z"),
    ("spec.endsAt", "2027-02-05T08:00:00", "spec.endsAt", "is not a time with zone", ""),
    ("spec.endsAt", "2027-02-31T08:00:00Z", "spec.endsAt", "is not a time", ""),
    ("spec.reservation", "", "spec.reservation", "exactly one of reservation and reservationTags", ""),
    ("spec.reservationTags", {"a": "b"}, "spec.reservation", "exactly one of reservation and reservationTags", ""),
    ("spec.count", 0, "spec.count", "must be 1 or more", ""),
    ("spec.hold", "always", "spec.hold", "not one of Always, WhileNeeded", "did you mean 'Always'?"),
    ("spec.drain", 15, "spec.drain", "expected an object, found the number 15", ""),
    ("spec", "text", "spec", "expected an object, found the string 'text'", "`name: value`"),
]


@pytest.mark.parametrize(
    ("path", "value", "field", "message", "step"), BLOCK_MISTAKES, ids=[m[3] for m in BLOCK_MISTAKES]
)
def test_a_mistake_in_a_block_is_named_with_its_field(
    path: str, value: Any, field: str, message: str, step: str
) -> None:
    problems = Problems()
    assert parse_capacity_block(_changed(write_capacity_block(BLOCK), path, value), problems) is None
    (problem,) = problems
    assert problem.field == field
    assert message in problem.message
    assert step in problem.next_step


def test_an_unknown_field_is_a_warning_with_the_nearest_name() -> None:
    manifest = _changed(write_capacity_pool(POOL), "spec.disruption.aftr", "5m")
    manifest["spec"]["requirements"][0]["vals"] = []
    problems = Problems()
    assert parse_capacity_pool(manifest, problems) == POOL
    assert {(p.field, p.next_step, p.severity) for p in problems} == {
        ("spec.disruption.aftr", "did you mean 'after'?", Severity.UNKNOWN_FIELD),
        ("spec.requirements[0].vals", "did you mean 'values'?", Severity.UNKNOWN_FIELD),
    }


def test_an_unknown_field_does_not_hide_a_mistake() -> None:
    manifest = _changed(write_capacity_pool(POOL), "spec.limit", {})
    problems = Problems()
    assert parse_capacity_pool(_changed(manifest, "spec.weight", "5"), problems) is None
    assert [problem.field for problem in problems] == ["spec.limit", "spec.weight"]


def test_null_counts_as_absent() -> None:
    manifest = _changed(write_capacity_pool(POOL), "spec.weight", None)
    assert parse_capacity_pool(manifest) == replace(POOL, weight=0)


def test_a_block_is_tainted_with_its_name_unless_told_otherwise() -> None:
    block = parse_capacity_block(_changed(write_capacity_block(BLOCK), "spec.taint", DELETE))
    assert block is not None
    assert block.taint == Taint("foreslice.dev/capacity-block", "november", "NoSchedule")

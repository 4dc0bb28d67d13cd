"""The rights that `foreslice doctor` asks for are among those of the ClusterRoles, and about all that these name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from autoscaler.checks.rights import ACT, AWS, KWOK, OBSERVE, PAGE, Right, rights_needed
from autoscaler.cluster.resources import ALL, DEPLOYMENTS, NATIVE_POD_GROUPS
from autoscaler.kube.kinds import KINDS, PRIORITIES, SnapshotKind
from autoscaler.model.capacity import CapacityPool, Mode, NodeTemplateRef
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import fields, replace

CHART = Path(__file__).parents[3] / "deploy/charts/foreslice"
ELECTION = {Right("coordination.k8s.io", "leases", "create", "", "ns")} | {
    Right("coordination.k8s.io", "leases", verb, "lease", "ns") for verb in ("get", "update")
}


def granted(role: str) -> set[Right]:
    """What a ClusterRole of the chart grants."""
    roles = yaml.safe_load((CHART / "files/roles.yaml").read_text(encoding="utf-8"))["cluster"]
    return {
        Right(group, resource, verb, name)
        for rule in roles[role]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


@pytest.mark.parametrize(("role", "rights"), [("observe", OBSERVE), ("act", ACT), ("kwok", KWOK), ("aws", AWS)])
def test_the_table_follows_the_roles(role: str, rights: tuple[Right, ...]) -> None:
    assert set(rights) <= granted(role)
    assert {(right.group, right.resource) for right in rights} == {(r.group, r.resource) for r in granted(role)}


POOL = CapacityPool("p")
ACTING = replace(POOL, mode=Mode.ACT)


def made_from(kind: str) -> CapacityPool:
    """A pool that launches, with a node template of this kind."""
    return replace(ACTING, node_template=NodeTemplateRef(kind, "k"))


@pytest.mark.parametrize(
    ("pools", "needed"),
    [
        pytest.param([], {*OBSERVE}, id="none"),
        pytest.param([POOL], {*OBSERVE}, id="observing"),
        pytest.param([POOL, ACTING], {*OBSERVE, *ACT}, id="one-acts"),
        pytest.param(
            [made_from("KwokNodeTemplate")],
            {*OBSERVE, *ACT, *KWOK},
            id="kwok",
        ),
        pytest.param(
            [made_from(kind) for kind in ("AWSNodeTemplate", "AWSGroupNodeTemplate")],
            {*OBSERVE, *ACT, *AWS},
            id="aws",
        ),
    ],
)
def test_what_is_needed_follows_from_the_modes(pools: list[CapacityPool], needed: set[Right]) -> None:
    found = rights_needed(pools, lease="lease", namespace="ns")
    assert set(found) == needed | ELECTION | {*PAGE}
    assert len(found) == len(set(found))


def test_a_right_reads_like_kubectl() -> None:
    assert str(Right("", "pods/status", "patch")) == "patch pods/status"
    assert str(Right("coordination.k8s.io", "leases", "get", "a", "ns")) == "get leases.coordination.k8s.io/a in ns"
    assert str(Right("apps", "daemonsets", "list")) == "list daemonsets.apps"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_every_kind_of_the_table_may_be_watched_and_has_a_field(kind: SnapshotKind) -> None:
    assert {Right(kind.group, kind.plural, verb) for verb in ("list", "watch")} <= granted("observe")
    assert {(found.group, found.kind, found.plural) for found in (*ALL, DEPLOYMENTS, NATIVE_POD_GROUPS)} >= {
        (kind.group, kind.name, kind.plural)
    }
    known = {field.name for field in fields(Snapshot)} | {"volume_limits"}  # those become a part of the nodes
    assert kind is PRIORITIES or kind.field in known

"""The rights that `foreslice doctor` asks for are among those of the ClusterRoles, and about all that these name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from autoscaler.checks.rights import ACT, KWOK, OBSERVE, Right, rights_needed
from autoscaler.model.capacity import CapacityPool, Mode

MANIFEST = Path(__file__).parents[3] / "deploy/manifests/rbac.yaml"


def granted(role: str) -> set[Right]:
    """What a ClusterRole grants; rights on single named objects are left out, as nobody can be asked for them."""
    documents = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    (found,) = [d for d in documents if d["kind"] == "ClusterRole" and d["metadata"]["name"] == role]
    return {
        Right(group, resource, verb)
        for rule in found["rules"]
        if "resourceNames" not in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("role", "rights"), [("foreslice-observe", OBSERVE), ("foreslice-act", ACT), ("foreslice-kwok", KWOK)]
)
def test_the_table_follows_the_roles(role: str, rights: tuple[Right, ...]) -> None:
    assert set(rights) <= granted(role)
    assert {(right.group, right.resource) for right in rights} == {(r.group, r.resource) for r in granted(role)}


POOL = CapacityPool("p")


@pytest.mark.parametrize(
    ("pools", "needed"),
    [
        pytest.param([], {*OBSERVE}, id="none"),
        pytest.param([POOL], {*OBSERVE}, id="observing"),
        pytest.param([POOL, replace(POOL, mode=Mode.ACT)], {*OBSERVE, *ACT}, id="one-acts"),
        pytest.param(
            [replace(POOL, mode=Mode.ACT, node_template=("KwokNodeTemplate", "k"))], {*OBSERVE, *ACT, *KWOK}, id="kwok"
        ),
    ],
)
def test_what_is_needed_follows_from_the_modes(pools: list[CapacityPool], needed: set[Right]) -> None:
    assert set(rights_needed(pools)) == needed


def test_a_right_reads_like_kubectl() -> None:
    assert str(Right("", "pods/status", "patch")) == "patch pods/status"
    assert str(Right("apps", "daemonsets", "list")) == "list daemonsets.apps"

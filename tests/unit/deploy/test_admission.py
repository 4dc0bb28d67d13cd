"""The admission policies cover every right to write that the roles grant, and the threat model says what each one does.

That they refuse what they should is tried on a real API server, in tests/e2e.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from autoscaler.externalgrpc.exemplars import NAME
from instance_catalog.kubernetes.labels import (
    CA_SCALE_DOWN_DISABLED,
    CA_STATUS_TAINT,
    CAPACITY_ENDS_AT,
    DRAINING_TAINT,
    EXEMPLAR,
    HELD,
    POOL,
    PROVISIONED_NODE,
    PROVISIONING_REQUEST,
)

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "deploy/charts/foreslice"
ROLES: Final[dict[str, list[dict[str, Any]]]] = yaml.safe_load(
    (CHART / "files/roles.yaml").read_text(encoding="utf-8")
)["cluster"]
POLICIES: Final[dict[str, Any]] = yaml.safe_load((CHART / "files/admission.yaml").read_text(encoding="utf-8"))
READING: Final = {"get", "list", "watch"}
# Rights to write that no policy narrows, because the whole object is Foreslice's own, or a status that it alone writes.
OWN: Final = {
    ("foreslice.dev", "provisionednodes"),
    ("foreslice.dev", "provisionednodes/status"),
    ("foreslice.dev", "launchbatches"),
    ("foreslice.dev", "launchbatches/status"),
    ("foreslice.dev", "capacitypools/status"),
    ("foreslice.dev", "capacityblocks/status"),
    ("foreslice.dev", "instancetypeoverlays/status"),
    ("foreslice.dev", "awsnodetemplates/status"),
    ("foreslice.dev", "awsgroupnodetemplates/status"),
    ("foreslice.dev", "gcpnodetemplates/status"),
    # Statuses of the classes and strategies that it serves; those of others it reads.
    ("autoscaling.x-k8s.io", "provisioningrequests/status"),
    ("autoscaling.x-k8s.io", "capacitybuffers/status"),
    ("foreslice.dev", "spendings"),
    ("foreslice.dev", "spendings/status"),
    ("", "events"),
}
WRITES: Final = sorted(
    (group, resource, verb)
    for rules in ROLES.values()
    for rule in rules
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
    if verb not in READING
)


def covered(group: str, resource: str) -> bool:
    """Whether a policy judges every operation on a resource."""
    wanted = {resource, f"{resource.partition('/')[0]}/*"} if "/" in resource else {resource}
    return any(
        group in rule["apiGroups"] and wanted & set(rule["resources"]) and rule["operations"] == ["*"]
        for policy in POLICIES.values()
        for rule in policy["resourceRules"]
    )


@pytest.mark.parametrize(("group", "resource", "verb"), WRITES, ids=str)
def test_a_right_to_write_is_narrowed_or_concerns_own_objects(group: str, resource: str, verb: str) -> None:
    assert covered(group, resource) != ((group, resource) in OWN), verb


def test_what_is_named_as_own_is_granted() -> None:
    assert {(group, resource) for group, resource, _ in WRITES} >= OWN


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("pods", [CAPACITY_ENDS_AT]),
        (
            "nodes",
            [
                CAPACITY_ENDS_AT,
                HELD,
                CA_SCALE_DOWN_DISABLED,
                CA_STATUS_TAINT,
                DRAINING_TAINT,
                EXEMPLAR,
                NAME,
                POOL,
                PROVISIONING_REQUEST,
            ],
        ),
        ("slices", [EXEMPLAR, NAME, PROVISIONED_NODE]),
    ],
)
def test_the_policies_speak_of_the_keys_that_the_code_writes(policy: str, words: list[str]) -> None:
    text = yaml.safe_dump(POLICIES[policy], width=10000)
    assert [word for word in words if f"'{word}'" not in text.replace("''", "'")] == []


def test_every_refusal_says_what_foreslice_does_instead() -> None:
    for policy in POLICIES.values():
        assert all(one["message"] and one["reason"] == "Forbidden" for one in policy["validations"])


def test_the_threat_model_lists_every_right_to_write() -> None:
    text = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
    table = text.partition("<!-- rights: begin -->")[2].partition("<!-- rights: end -->")[0]
    told = {
        (resource.strip(" `"), verb.strip(" `"))
        for line in table.splitlines()
        if line.startswith("| `")
        for resource in line.split("|")[1].split(",")
        for verb in line.split("|")[2].split(",")
    }
    assert told == {(_written(group, resource), verb) for group, resource, verb in WRITES}


def _written(group: str, resource: str) -> str:
    """As kubectl takes it, such as capacitypools.foreslice.dev/status."""
    plural, slash, subresource = resource.partition("/")
    return f"{plural}.{group}{slash}{subresource}" if group else resource

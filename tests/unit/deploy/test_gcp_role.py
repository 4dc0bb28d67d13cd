"""The role of deploy/gcp allows what the adapter calls and nothing more; and the table of calls is what it calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.cluster.resources import GCP_NODE_TEMPLATES
from providers.gcp.calls import CALLS
from providers.gcp.session import UnlistedCallError
from tests.gcp import Rig, gcp

ROOT = Path(__file__).parents[3]


def test_the_role_allows_what_the_adapter_calls_and_nothing_else() -> None:
    role: dict[str, Any] = yaml.safe_load((ROOT / "deploy/gcp/controller-role.yaml").read_text(encoding="utf-8"))
    needed = {name for call in CALLS if not call.by_person for name in call.permissions}
    assert role["includedPermissions"] == sorted(needed)


def test_the_controller_cannot_make_or_delete_groups() -> None:
    changes = {call.method for call in CALLS if call.changes}
    of_groups = {f"instanceGroupManagers.{verb}" for verb in ("createInstances", "deleteInstances", "resize")}
    of_requests = {f"instanceGroupManagerResizeRequests.{verb}" for verb in ("insert", "cancel", "delete")}
    assert changes == of_groups | of_requests


def test_a_call_that_is_not_listed_is_refused() -> None:
    Rig()
    with pytest.raises(UnlistedCallError, match=r"instanceGroupManagers\.insert"):
        gcp().call("instanceGroupManagers.insert", zone="z")
    with pytest.raises(UnlistedCallError, match=r"resize to 1: Google would choose which machines end"):
        gcp().call("instanceGroupManagers.resize", zone="z", instance_group_manager="g", size=1)
    with pytest.raises(UnlistedCallError, match=r"container\.nodePools\.setSize"):
        gcp().container("container.nodePools.setSize", "x")


def test_every_listed_call_is_made_somewhere() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "providers/gcp").rglob("*.py"))
    for call in CALLS:
        assert len(re.findall(f'"{re.escape(call.method)}"', source)) >= 2, call.method


def test_the_controller_may_read_its_templates_and_say_what_they_come_to() -> None:
    roles = yaml.safe_load((ROOT / "deploy/charts/foreslice/files/roles.yaml").read_text(encoding="utf-8"))
    found = [(set(rule["resources"]), set(rule["verbs"])) for rule in roles["cluster"]["gcp"]]
    plural = GCP_NODE_TEMPLATES.plural
    assert found == [({plural}, {"get", "list"}), ({f"{plural}/status"}, {"patch"})]

"""Why nothing is launched in a group, and how a person mends that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from providers.gcp.node_template.template import GroupRef


@dataclass(frozen=True, slots=True)
class Refusal:
    """`why` ends a sentence about the group. `reason` is that of the condition. `step` is "" where the only way is to
    name another group."""

    why: str
    reason: str = "NotSupported"
    step: str = ""


def of_several_kinds(manager: Any) -> Refusal | None:
    """The refusal of a group that may start machines of more than one kind: which one a name gets, Google chooses.

    Source: InstanceGroupManager.instanceFlexibilityPolicy and .versions of Compute Engine's API.
    """
    if manager.instance_flexibility_policy.instance_selections:
        why = "its instance flexibility policy lets Google choose among machine types"
        return Refusal(why, "SeveralMachineTypes", "name a group without --instance-selection, or take the policy away")
    if len({one.instance_template for one in manager.versions}) > 1:
        why = "it has several versions (a canary update), and Google chooses which of their templates a machine gets"
        return Refusal(why, "SeveralVersions", "finish the update, so that the group has one instance template")
    return None


def in_bulk(manager: Any, ref: GroupRef, pool: str, template: str) -> Refusal | None:
    """The refusal of a group with the target size policy BULK; None of all others.

    It waits until it can start all machines up to its size, and gets names or a size only while it has none. It takes
    no resize requests, and keeps its mode. Source: Compute Engine documentation, bulk mode of managed instance groups.
    """
    if manager.target_size_policy.mode != "BULK":
        return None
    why = (
        "it starts its machines all at once (target size policy BULK), which is not supported yet and cannot be changed"
    )
    if pool:
        return Refusal(why, "BulkMode", f"name another node pool than {pool}: GKE has made its group so")
    policy = manager.resource_policies.workload_policy
    step = (
        f"make another group, and name it in the GCPNodeTemplate: gcloud compute instance-groups managed create NEW "
        f"--zone {ref.zone} --template {template[template.find('projects/') :]} --size 0 "
        "--target-size-policy-mode individual --default-action-on-vm-failure do-nothing"
    )
    return Refusal(
        why, "BulkMode", step + (f" --workload-policy {policy[policy.find('projects/') :]}" if policy else "")
    )

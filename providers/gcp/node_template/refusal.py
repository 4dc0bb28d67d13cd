"""The reasons why nothing is launched in a group, each with its correction."""

from __future__ import annotations

from typing import Any

from instance_catalog.dataclass import dataclass
from providers.gcp.node_template.template import GroupRef


@dataclass(frozen=True, slots=True)
class Refusal:
    """`why` ends a sentence about the group. `reason` is that of the condition. `step` is "" if the only correction
    is to name another group."""

    why: str
    reason: str = "NotSupported"
    step: str = ""


def of_several_kinds(manager: Any) -> Refusal | None:
    """The refusal of a group that may start several kinds of machines: Google chooses the kind of each name.

    Source: InstanceGroupManager.instanceFlexibilityPolicy and .versions of Compute Engine's API.
    """
    if manager.instance_flexibility_policy.instance_selections:
        why = "its instance flexibility policy lets Google choose among machine types"
        return Refusal(why, "SeveralMachineTypes", "name a group without --instance-selection, or take the policy away")
    if len({one.instance_template for one in manager.versions}) > 1:
        why = "it has several versions (a canary update), and Google chooses which of their templates a machine gets"
        return Refusal(why, "SeveralVersions", "finish the update, so that the group has one instance template")
    return None


def sized_by_google(manager: Any, ref: GroupRef, project: str) -> Refusal | None:
    """The refusal of a group that Google sizes as well: an autoscaler of Compute Engine ends machines that it chooses,
    and a standby pool starts other machines than the named ones.

    Source: InstanceGroupManager.status.autoscaler and .standbyPolicy of Compute Engine's API.
    """
    if manager.status.autoscaler:
        why = "an autoscaler of Compute Engine sizes it: two autoscalers would undo each other's work"
        return Refusal(why, "Autoscaling", _changed(ref, project, "stop-autoscaling"))
    if manager.standby_policy.mode == "SCALE_OUT_POOL":
        why = "its standby policy starts stopped or suspended machines in place of those that are asked for by name"
        step = f"{_changed(ref, project, 'update')} --standby-policy-mode manual"
        return Refusal(why, "StandbyPool", step)
    return None


def replaced(manager: Any, ref: GroupRef, project: str) -> str:
    """The command that prevents a group from replacing its machines after a change of its instance template; "" if
    it does not replace them."""
    proactive = manager.update_policy.type_ == "PROACTIVE"
    return f"{_changed(ref, project, 'update')} --update-policy-type opportunistic" if proactive else ""


def _changed(ref: GroupRef, project: str, verb: str) -> str:
    return f"gcloud compute instance-groups managed {verb} {ref.name} --zone {ref.zone} --project {project}"


def preemptible(scheduling: Any) -> Refusal | None:
    """The refusal of preemptible machines of the kind before Spot: Google stops each after a day at most.

    Source: Scheduling.preemptible and .provisioningModel of Compute Engine's API; Spot machines have both set.
    """
    if not scheduling.preemptible or scheduling.provisioning_model == "SPOT":
        return None
    why = "its machines are preemptible ones of the old kind, which Google stops after 24 hours"
    return Refusal(why, "Preemptible", "make the node pool with --spot in place of --preemptible")


def in_bulk(manager: Any, ref: GroupRef, pool: str, template: str) -> Refusal | None:
    """The refusal of a group with the target size policy BULK; None for all others.

    Such a group waits until it can start its whole size, and accepts names or a size only while it has none. It takes
    no resize requests, and its mode cannot be changed. Source: Compute Engine documentation, bulk mode of managed
    instance groups.
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

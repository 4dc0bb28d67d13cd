"""The state as Google's proto types, which refuse what they do not know."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from google.cloud import compute_v1

from tests.fakes.gce.deletion import queued
from tests.fakes.gce.state import NUMBER, PROJECT, Group, Machine, Member, Operation, Project

BASE: Final = "https://www.googleapis.com/compute/v1"
_PACIFIC: Final = timezone(-timedelta(hours=8))


def rendered(message: Any) -> Any:
    """JSON as the API writes it: 64-bit numbers as strings, nothing that is empty."""
    text = type(message).to_json(
        message, always_print_fields_with_no_presence=False, use_integers_for_enums=False, indent=None
    )
    return json.loads(text)


def zone_url(zone: str) -> str:
    """Of a zone."""
    return f"{BASE}/projects/{PROJECT}/zones/{zone}"


def moment(at: datetime) -> str:
    """RFC 3339, with Google's own offset: it is rarely UTC."""
    return at.astimezone(_PACIFIC).isoformat(timespec="milliseconds")


def instance(project: Project, machine: Machine) -> compute_v1.Instance:
    """A machine."""
    items = []
    if machine.group:
        value = f"projects/{NUMBER}/zones/{machine.zone}/instanceGroupManagers/{machine.group}"
        items.append(compute_v1.Items(key="created-by", value=value))
        of = project.groups.get((machine.zone, machine.group))
        if of is not None and of.kube_labels:
            items.append(compute_v1.Items(key="kube-labels", value=_labels(of)))
    status = compute_v1.ResourceStatus()
    if machine.maintenance is not None:
        status.upcoming_maintenance = compute_v1.UpcomingMaintenance(
            type_="SCHEDULED", maintenance_status="PENDING", window_start_time=moment(machine.maintenance)
        )
    holding = project.holding(machine.zone, machine.reservation)
    if holding is not None and holding.bound and holding.ends is not None:
        status.scheduling = compute_v1.ResourceStatusScheduling(termination_timestamp=moment(holding.ends))
    if machine.ends is not None:
        status.scheduling = compute_v1.ResourceStatusScheduling(termination_timestamp=moment(machine.ends))
    return compute_v1.Instance(
        id=machine.id,
        name=machine.name,
        zone=zone_url(machine.zone),
        machine_type=f"{zone_url(machine.zone)}/machineTypes/{machine.machine_type}",
        status=project.status(machine),
        creation_timestamp=moment(machine.created),
        labels=machine.labels,
        metadata=compute_v1.Metadata(items=items),
        scheduling=compute_v1.Scheduling(
            provisioning_model=machine.model,
            on_host_maintenance="TERMINATE",
            preemption_notice_duration=compute_v1.Duration(seconds=int(machine.warning.total_seconds())),
        ),
        reservation_affinity=_affinity(machine.reservation),
        resource_status=status,
    )


def _affinity(named: str, kind: str = "") -> compute_v1.ReservationAffinity:
    return compute_v1.ReservationAffinity(
        consume_reservation_type=kind or ("SPECIFIC_RESERVATION" if named else "NO_RESERVATION"),
        key="compute.googleapis.com/reservation-name" if named else "",
        values=[named] if named else [],
    )


def member(project: Project, group: Group, found: Member) -> compute_v1.ManagedInstance:
    """A managed instance."""
    machine = project.named(found.name, group.zone)
    errors = [compute_v1.Errors(code=code, message=message) for code, message in found.errors]
    attempt = compute_v1.ManagedInstanceLastAttempt(errors=compute_v1.ManagedInstanceLastAttemptErrors(errors=errors))
    return compute_v1.ManagedInstance(
        name=found.name,
        instance="" if queued(project, group, found) else f"{zone_url(group.zone)}/instances/{found.name}",
        current_action=found.action,
        id=machine.id if machine is not None else 0,
        instance_status=project.status(machine) if machine is not None else "",
        last_attempt=attempt if errors and not project.forgets else None,
    )


def manager(group: Group) -> compute_v1.InstanceGroupManager:
    """A group."""
    place = "regions/us-central1" if group.regional else "global"
    template = f"{BASE}/projects/{PROJECT}/{place}/instanceTemplates/{group.name}"
    action = "REPAIR" if group.repairs else "DO_NOTHING"
    return compute_v1.InstanceGroupManager(
        name=group.name,
        zone=zone_url(group.zone),
        base_instance_name=group.base,
        instance_template=template,
        target_size=sum(one.action != "DELETING" for one in group.members.values()),
        current_actions=compute_v1.InstanceGroupManagerActionsSummary(
            **{
                action.lower(): sum(one.action == action for one in group.members.values())
                for action in ("NONE", "CREATING", "RECREATING", "DELETING")
            }
        ),
        target_size_policy=compute_v1.InstanceGroupManagerTargetSizePolicy(mode="BULK" if group.bulk else "INDIVIDUAL"),
        list_managed_instances_results="PAGELESS" if group.pageless else "PAGINATED",
        instance_lifecycle_policy=compute_v1.InstanceGroupManagerInstanceLifecyclePolicy(
            default_action_on_failure=action
        ),
        resource_policies=compute_v1.InstanceGroupManagerResourcePolicies(
            workload_policy=f"{BASE}/projects/{PROJECT}/regions/us-central1/resourcePolicies/{group.policy}"
        )
        if group.policy
        else None,
        versions=[compute_v1.InstanceGroupManagerVersion(instance_template=template)],
    )


def _labels(group: Group) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(group.kube_labels.items()))


def template(group: Group) -> compute_v1.InstanceTemplate:
    """What a group makes its machines from."""
    labels = _labels(group)
    accelerator = compute_v1.AcceleratorConfig(accelerator_type=group.accelerator, accelerator_count=group.accelerators)
    return compute_v1.InstanceTemplate(
        name=group.name,
        properties=compute_v1.InstanceProperties(
            machine_type=group.machine_type,
            guest_accelerators=[accelerator],
            scheduling=compute_v1.Scheduling(provisioning_model=group.model),
            reservation_affinity=_affinity(group.reservation, group.affinity),
            metadata=compute_v1.Metadata(items=[compute_v1.Items(key="kube-labels", value=labels)] if labels else []),
        ),
    )


def operation(found: Operation, now: datetime) -> compute_v1.Operation:
    """An operation as it is by now."""
    over = now >= found.done
    shown = compute_v1.Operation(
        name=found.name,
        operation_type=found.kind,
        zone=zone_url(found.zone),
        status="DONE" if over else "RUNNING",
        insert_time=moment(found.began),
        target_id=found.target_id,
        target_link=f"{zone_url(found.zone)}/instances/{found.target}",
    )
    if over and found.error is not None:
        code, message, status = found.error
        shown.error = compute_v1.Error(errors=[compute_v1.Errors(code=code, message=message)])
        shown.http_error_status_code = status
        shown.http_error_message = message
    return shown


def failures(group: Group) -> Iterable[compute_v1.InstanceManagedByIgmError]:
    """What listErrors answers."""
    for at, name, (code, message) in group.history:
        yield compute_v1.InstanceManagedByIgmError(
            timestamp=moment(at),
            error=compute_v1.InstanceManagedByIgmErrorManagedInstanceError(code=code, message=message),
            instance_action_details=compute_v1.InstanceManagedByIgmErrorInstanceActionDetails(
                action="CREATING", instance=f"{zone_url(group.zone)}/instances/{name}"
            ),
        )

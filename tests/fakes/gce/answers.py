"""The state as the API shows it: made of Google's proto types, which refuse what they do not know.

Each function of the facts that an object shows is called once for the same facts, since thousands of answers repeat
them. What it returns is shared, and nobody changes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final

from google.cloud import compute_v1

from tests.fakes.gce.deletion import queued
from tests.fakes.gce.state import NUMBER, PROJECT, Error, Group, Machine, Member, Operation, Project

Json = Mapping[str, Any]

BASE: Final = "https://www.googleapis.com/compute/v1"
_PACIFIC: Final = timezone(-timedelta(hours=8))
# Shapes of lists that their proto type has accepted.
_SHAPES: Final[set[object]] = set()
_ACTIONS: Final = ("NONE", "CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING", "VERIFYING", "DELETING")
# So many answers are kept of each kind: those of some dozen schedules.
_remembered: Final = lru_cache(maxsize=5000)


def rendered(message: Any) -> Any:
    """JSON as the API writes it: 64-bit numbers as strings, nothing that is empty. What is JSON already stays so."""
    if isinstance(message, dict):
        return message
    text = type(message).to_json(
        message, always_print_fields_with_no_presence=False, use_integers_for_enums=False, indent=None
    )
    return json.loads(text)


def whole(kind: Any, **fields: Any) -> Json:
    """A list of what the functions below return, as the proto type `kind`, which must know every field of it."""
    found = {name: value for name, value in fields.items() if value}
    inner = found.get("items")
    scopes = [tuple(scope) for scope in inner.values()] if isinstance(inner, dict) else []
    shape = (kind, tuple(found), *sorted(set(scopes)))
    if shape not in _SHAPES:
        kind.from_json(json.dumps(found), ignore_unknown_fields=False)
        _SHAPES.add(shape)
    return found


def scoped(kind: str, rows: Iterable[tuple[str, Json]]) -> dict[str, dict[str, Any]]:
    """Objects of the field `kind`, each with its zone, as an aggregated list has them."""
    scopes: dict[str, dict[str, Any]] = {}
    for zone, row in rows:
        scopes.setdefault(f"zones/{zone}", {kind: []})[kind].append(row)
    return scopes


def _json(message: Any) -> Json:
    found: Json = rendered(message)
    return found


def zone_url(zone: str) -> str:
    """Of a zone."""
    return f"{BASE}/projects/{PROJECT}/zones/{zone}"


def moment(at: datetime) -> str:
    """RFC 3339, with Google's own offset: it is rarely UTC."""
    return at.astimezone(_PACIFIC).isoformat(timespec="milliseconds")


def instance(project: Project, machine: Machine) -> Json:
    """A machine."""
    of = project.groups.get((machine.zone, machine.group)) if machine.group else None
    holding = project.holding(machine.zone, machine.reservation)
    ends = holding.ends if holding is not None and holding.bound else None
    now, behaviour = project.clock.now(), project.behaviour
    return _instance(
        machine.id,
        (machine.name, machine.zone, machine.machine_type, machine.model, machine.group, machine.reservation),
        project.status(machine),
        (machine.created, machine.maintenance, machine.ends or ends),
        (machine.last_start(now, behaviour), machine.last_stop(now, behaviour)),
        (machine.warning, machine.restarts),
        tuple(machine.labels.items()),
        _labels(of) if of is not None else "",
    )


@_remembered
def _instance(
    number: int,
    terms: tuple[str, ...],
    shown: str,
    moments: tuple[datetime, datetime | None, datetime | None],
    last: tuple[datetime | None, datetime | None],
    terms_of_end: tuple[timedelta, bool],
    labels: tuple[tuple[str, str], ...],
    kube_labels: str,
) -> Json:
    name, zone, machine_type, model, group, reservation = terms
    created, maintenance, ends = moments
    started, stopped = last
    warning, restarts = terms_of_end
    items = []
    if group:
        value = f"projects/{NUMBER}/zones/{zone}/instanceGroupManagers/{group}"
        items.append(compute_v1.Items(key="created-by", value=value))
        if kube_labels:
            items.append(compute_v1.Items(key="kube-labels", value=kube_labels))
    status = compute_v1.ResourceStatus()
    if maintenance is not None:
        status.upcoming_maintenance = compute_v1.UpcomingMaintenance(
            type_="SCHEDULED", maintenance_status="PENDING", window_start_time=moment(maintenance)
        )
    if ends is not None:
        status.scheduling = compute_v1.ResourceStatusScheduling(termination_timestamp=moment(ends))
    found = compute_v1.Instance(
        id=number,
        name=name,
        zone=zone_url(zone),
        machine_type=f"{zone_url(zone)}/machineTypes/{machine_type}",
        status=shown,
        creation_timestamp=moment(created),
        last_start_timestamp=moment(started) if started is not None else None,
        last_stop_timestamp=moment(stopped) if stopped is not None else None,
        labels=dict(labels),
        metadata=compute_v1.Metadata(items=items),
        scheduling=compute_v1.Scheduling(
            provisioning_model=model,
            on_host_maintenance="TERMINATE",
            automatic_restart=restarts,
            preemption_notice_duration=compute_v1.Duration(seconds=int(warning.total_seconds())),
        ),
        reservation_affinity=_affinity(reservation),
        resource_status=status,
    )
    return _json(found)


def _affinity(named: str, kind: str = "") -> compute_v1.ReservationAffinity:
    return compute_v1.ReservationAffinity(
        consume_reservation_type=kind or ("SPECIFIC_RESERVATION" if named else "NO_RESERVATION"),
        key="compute.googleapis.com/reservation-name" if named else "",
        values=[named] if named else [],
    )


def member(project: Project, group: Group, found: Member) -> Json:
    """A managed instance."""
    machine = project.named(found.name, group.zone)
    errors = () if project.forgets else tuple(found.errors)
    has, status = (machine.id, project.status(machine)) if machine is not None else (0, "")
    tried = found.tries_at - project.behaviour.retry
    if group.undoes and errors and machine is None and project.clock.now() < tried + project.behaviour.provisioning:
        has, status, errors = 1, "STOPPING", ()
    url = "" if queued(project, group, found) else f"{zone_url(group.zone)}/instances/{found.name}"
    return _member(found.name, url, found.action, errors, has, status)


@_remembered
def _member(name: str, url: str, action: str, failures: tuple[Error, ...], number: int, status: str) -> Json:
    errors = [compute_v1.Errors(code=code, message=message) for code, message in failures]
    attempt = compute_v1.ManagedInstanceLastAttempt(errors=compute_v1.ManagedInstanceLastAttemptErrors(errors=errors))
    found = compute_v1.ManagedInstance(
        name=name,
        instance=url,
        current_action=action,
        id=number,
        instance_status=status,
        last_attempt=attempt if errors else None,
    )
    return _json(found)


def manager(project: Project, group: Group) -> Json:
    """A group."""
    actions = [one.action for one in group.members.values()]
    there = {one.name for one in project.machines.values() if one.zone == group.zone and project.status(one)}
    counts = tuple(actions.count(action) for action in _ACTIONS)
    terms = (group.name, group.zone, group.base, group.policy)
    return _manager(
        *terms,
        (group.template_of, group.standby, group.updates, group.autoscaled),
        counts,
        (len(actions), len(group.members.keys() - there)),
        (group.regional, group.repairs, group.bulk, group.pageless, group.flexible, group.canary),
    )


@_remembered
def _manager(
    name: str,
    zone: str,
    base: str,
    policy: str,
    more: tuple[str, str, str, bool],
    counts: tuple[int, ...],
    sizes: tuple[int, int],
    switches: tuple[bool, ...],
) -> Json:
    regional, repairs, bulk, pageless, flexible, canary = switches
    members, without_machine = sizes
    place = "regions/us-central1" if regional else "global"
    owner, standby, updates, autoscaled = more
    template = f"{BASE}/projects/{owner}/{place}/instanceTemplates/{name}"
    actions = dict(zip(_ACTIONS, counts, strict=True))
    versions = [template, f"{template}-next"] if canary else [template]
    selection = compute_v1.InstanceGroupManagerInstanceFlexibilityPolicyInstanceSelection(
        machine_types=["a2-highgpu-8g", "a3-highgpu-8g"]
    )
    found = compute_v1.InstanceGroupManager(
        name=name,
        zone=zone_url(zone),
        base_instance_name=base,
        instance_template=template,
        target_size=members - actions["DELETING"],
        current_actions=compute_v1.InstanceGroupManagerActionsSummary(
            **{action.lower(): count for action, count in actions.items()}
        ),
        target_size_policy=compute_v1.InstanceGroupManagerTargetSizePolicy(mode="BULK" if bulk else "INDIVIDUAL"),
        list_managed_instances_results="PAGELESS" if pageless else "PAGINATED",
        instance_lifecycle_policy=compute_v1.InstanceGroupManagerInstanceLifecyclePolicy(
            default_action_on_failure="REPAIR" if repairs else "DO_NOTHING"
        ),
        resource_policies=compute_v1.InstanceGroupManagerResourcePolicies(
            workload_policy=f"{BASE}/projects/{PROJECT}/regions/us-central1/resourcePolicies/{policy}"
        )
        if policy
        else None,
        update_policy=compute_v1.InstanceGroupManagerUpdatePolicy(type_=updates),
        status=compute_v1.InstanceGroupManagerStatus(
            autoscaler=f"{zone_url(zone)}/autoscalers/{name}" if autoscaled else None,
            current_instance_statuses=compute_v1.InstanceGroupManagerStatusInstanceStatusSummary(
                non_existent=without_machine
            ),
        ),
        standby_policy=compute_v1.InstanceGroupManagerStandbyPolicy(mode=standby) if standby else None,
        versions=[compute_v1.InstanceGroupManagerVersion(instance_template=one) for one in versions],
        instance_flexibility_policy=compute_v1.InstanceGroupManagerInstanceFlexibilityPolicy(
            instance_selections={"any": selection}
        )
        if flexible
        else None,
    )
    return _json(found)


def _labels(group: Group) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(group.kube_labels.items()))


def template(group: Group) -> Json:
    """What a group makes its machines from."""
    terms = (group.name, group.machine_type, group.model, group.reservation, group.affinity)
    return _template(*terms, (group.accelerator, group.accelerators), _labels(group), group.preemptible)


@_remembered
def _template(
    name: str,
    machine_type: str,
    model: str,
    reservation: str,
    affinity: str,
    accelerators: tuple[str, int],
    labels: str,
    preemptible: bool,
) -> Json:
    kind, count = accelerators
    found = compute_v1.InstanceTemplate(
        name=name,
        properties=compute_v1.InstanceProperties(
            machine_type=machine_type,
            guest_accelerators=[compute_v1.AcceleratorConfig(accelerator_type=kind, accelerator_count=count)],
            # Spot machines are preemptible as well.
            scheduling=compute_v1.Scheduling(provisioning_model=model, preemptible=preemptible or model == "SPOT"),
            reservation_affinity=_affinity(reservation, affinity),
            metadata=compute_v1.Metadata(items=[compute_v1.Items(key="kube-labels", value=labels)] if labels else []),
        ),
    )
    return _json(found)


def operation(found: Operation, now: datetime) -> Json:
    """An operation as it is by now."""
    over = now >= found.done
    error = found.error if over else None
    return _operation((found.name, found.kind, found.zone, found.target), found.target_id, found.began, over, error)


@_remembered
def _operation(
    terms: tuple[str, str, str, str], target: int, began: datetime, over: bool, error: tuple[str, str, int] | None
) -> Json:
    name, kind, zone, instance_name = terms
    shown = compute_v1.Operation(
        name=name,
        operation_type=kind,
        zone=zone_url(zone),
        status="DONE" if over else "RUNNING",
        insert_time=moment(began),
        target_id=target,
        target_link=f"{zone_url(zone)}/instances/{instance_name}",
    )
    if error is not None:
        code, message, status = error
        shown.error = compute_v1.Error(errors=[compute_v1.Errors(code=code, message=message)])
        shown.http_error_status_code = status
        shown.http_error_message = message
    return _json(shown)


def failures(group: Group) -> Iterable[compute_v1.InstanceManagedByIgmError]:
    """What listErrors answers."""
    for at, name, (code, message) in group.history:
        yield compute_v1.InstanceManagedByIgmError(
            timestamp=moment(at) if at is not None else None,
            error=compute_v1.InstanceManagedByIgmErrorManagedInstanceError(code=code, message=message),
            instance_action_details=compute_v1.InstanceManagedByIgmErrorInstanceActionDetails(
                action=group.history_of, instance=f"{zone_url(group.zone)}/instances/{name}"
            ),
        )

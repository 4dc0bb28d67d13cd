"""Writes decisions to the cluster: Events on pods and nodes, status of pools and blocks.

Nothing is written twice: an event's name is the hash of its content, and a status is compared with the last one
written. So a reconcile without changes writes nothing, and a restart repeats nothing. An object whose status cannot be
written does not delay the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.cluster.api import (
    ConflictError,
    InvalidError,
    KubernetesApi,
    NotFoundError,
    Object,
)
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.publishing.condition import TIME, Verdict, condition, shown
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.resources import (
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    INSTANCE_TYPE_OVERLAYS,
    PODS,
    Resource,
)
from autoscaler.kube.custom.instance_type_overlay import OVERLAY_LAYER
from autoscaler.lifecycle.capacity_block import phase_of
from autoscaler.lifecycle.provisioned_node import counts_against_limits, has_machine, may_take_pods
from autoscaler.model.capacity import CapacityBlock, CapacityPool, NodeTemplateRef
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import NO_SUBJECT, Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.checks_text import refusal_text, verdict_of
from autoscaler.report.events import Event, ObjectEvents, Subject, invalid_event, object_events
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.files.last_good import EffectiveCatalog
from instance_catalog.frozen_map import FrozenMap
from providers.at_once import each

# Of what cannot be read of an object; and of a condition, by its schema.
_LONGEST_MESSAGE = 1024
_MOST_PROPOSALS = 200
_LONGEST_NOTE = 4096
_NO_COUNTS: Mapping[str, int] = FrozenMap()
_NO_ZONES: Mapping[NodeTemplateRef, tuple[str, ...]] = FrozenMap()
_ACCEPTED = Verdict("True", "Accepted")
_APPLIED = Verdict("True", "Applied")
_EXPIRED = Verdict("False", "Expired", "it has expired; set a later expiresAt, or delete it")
_JUDGED = {resource.kind: resource for resource in (CAPACITY_POOLS, CAPACITY_BLOCKS)}


class Publisher:
    """Writes the output for users, `at_once` nominations at a time. Its memory only saves calls."""

    def __init__(self, api: KubernetesApi, *, at_once: int = 1, events: EventQueue | None = None) -> None:
        """`events`: a queue that another thread writes; without it events are written at once."""
        self._api = api
        self._at_once = at_once
        self._events = EventQueue(api) if events is None else events
        self._writes_events = events is None
        self._isolation = Isolation(api)
        self._troubles: list[Trouble] = []
        self._statuses: dict[tuple[Resource, str], dict[str, Any]] = {}
        self._conditions: dict[tuple[Resource, str, str], tuple[int, Verdict]] = {}
        self._shown: set[tuple[Resource, str]] = set()  # objects with a status or a condition in this reconcile

    def publish(
        self, plan: Plan, snapshot: Snapshot, now: datetime, *, accelerators: Mapping[str, int] = _NO_COUNTS
    ) -> None:
        """Events, nominations and statuses of one reconcile. `accelerators` of the nodes that each pool has, by its
        name."""
        for events in object_events(plan, snapshot):
            write_event = partial(self._write_events, events, now)
            self._attempt(events.about.kind, events.about.name, write_event, namespace=events.about.namespace)
        each(self._try_to_nominate, _nominations(snapshot), at_once=self._at_once)
        for pool in snapshot.pools:
            written = partial(_pool_status, pool, plan, snapshot, accelerators)
            self._attempt(CAPACITY_POOLS.kind, pool.name, partial(self._status, CAPACITY_POOLS, pool.name, written))
        for block in snapshot.blocks:
            written = partial(_block_status, block, snapshot, now)
            self._attempt(CAPACITY_BLOCKS.kind, block.name, partial(self._status, CAPACITY_BLOCKS, block.name, written))

    def take_troubles(self) -> tuple[Trouble, ...]:
        """The failed writes since the last call. The call ends a reconcile: objects that are gone are forgotten."""
        taken, self._troubles, self._isolation = tuple(self._troubles), [], Isolation(self._api)
        self._statuses = {key: written for key, written in self._statuses.items() if key in self._shown}
        self._conditions = {key: written for key, written in self._conditions.items() if key[:2] in self._shown}
        self._shown.clear()
        return taken

    def _attempt(self, kind: str, name: str, action: Callable[[], object], *, namespace: str = "") -> None:
        trouble = self._isolation.attempt(kind, name, action, namespace=namespace)
        if trouble is not None:
            self._troubles.append(trouble)

    def _write_events(self, found: ObjectEvents, now: datetime) -> None:
        for event in found.events():
            self.write_event(event, now)

    def judge(
        self,
        snapshot: Snapshot,
        problems: Iterable[tuple[str, str, Diagnostic]],
        now: datetime,
        *,
        zones: Mapping[NodeTemplateRef, tuple[str, ...]] = _NO_ZONES,
        objections: Iterable[Reason] = (),
    ) -> None:
        """Sets the condition Ready of blocks and of objects that cannot be read: usable, or the correction.

        `objections` are those of the plan. Objects without such a condition, and pods with an annotation that cannot be
        read, get an event.
        """
        wrong_blocks = {r.subject.name: r for r in objections if r.code is Code.UNUSABLE and r.subject.kind == "block"}
        templates = {pool.name: pool.node_template for pool in snapshot.pools}
        for block in snapshot.blocks:
            objection = wrong_blocks.get(block.name)
            judge = partial(self._judge_block, block, templates, zones, objection, now)
            self._attempt(CAPACITY_BLOCKS.kind, block.name, judge)
        wrong: dict[tuple[Resource, str], list[str]] = {}
        uids: dict[str, str] | None = None
        for kind, name, problem in problems:
            resource = _JUDGED.get(kind)
            if resource is not None and problem.severity is Severity.ERROR:
                line = f"{problem.field or kind}: {problem.message}; {problem.next_step}".removesuffix("; ")
                wrong.setdefault((resource, name), []).append(line)
            elif resource is None and _becomes_event(kind, problem.severity):
                uids = {pod.key: pod.uid for pod in snapshot.pods} if uids is None else uids
                self.write_event(
                    invalid_event(kind, name, uids.get(name, "") if kind == PODS.kind else "", problem), now
                )
        for (resource, name), lines in wrong.items():
            message = "\n".join(lines)[:_LONGEST_MESSAGE]
            verdict = Verdict("False", "Invalid", message)
            self._attempt(resource.kind, name, partial(self._condition, resource, name, verdict, now))
            self.write_event(Event(Subject(resource.kind, name), "Warning", "Invalid", message), now)

    def _judge_block(
        self,
        block: CapacityBlock,
        templates: Mapping[str, NodeTemplateRef],
        zones: Mapping[NodeTemplateRef, tuple[str, ...]],
        objection: Reason | None,
        now: datetime,
    ) -> None:
        verdict = _usable(block, templates, zones, now)
        if objection is not None:
            verdict = Verdict("False", objection.code.value, text_of(replace(objection, subject=NO_SUBJECT)))
        if not verdict.holds:
            kind = "Normal" if verdict.reason == "Ended" else "Warning"
            event = Event(Subject("CapacityBlock", block.name, uid=block.uid), kind, verdict.reason, verdict.message)
            self.write_event(event, now)
        self._condition(CAPACITY_BLOCKS, block.name, verdict, now, generation=block.generation)

    def check(self, found: Iterable[PoolCondition], snapshot: Snapshot, now: datetime) -> None:
        """The conditions of pools; one that is bad is an event, too."""
        pools = {pool.name: pool for pool in snapshot.pools}
        for finding in found:
            pool = pools[finding.pool]
            self._attempt(CAPACITY_POOLS.kind, pool.name, partial(self._check, finding, pool, now))

    def _check(self, finding: PoolCondition, pool: CapacityPool, now: datetime) -> None:
        verdict = Verdict(*verdict_of(finding))
        if not finding.good:
            about = Subject("CapacityPool", pool.name, uid=pool.uid)
            self.write_event(Event(about, "Warning", verdict.reason, verdict.message), now)
        kind = finding.type.value
        self._condition(CAPACITY_POOLS, pool.name, verdict, now, kind=kind, generation=pool.generation)

    def overlays(self, found: EffectiveCatalog, now: datetime) -> None:
        """Sets the condition Ready of the InstanceTypeOverlays: in force, or the fault."""
        verdicts = {layer.name: _APPLIED for layer in found.given}
        verdicts |= {layer.name: _EXPIRED for layer in found.expired}
        verdicts |= {wrong.layer: Verdict("False", "Refused", refusal_text(wrong)) for wrong in found.refused}
        for layer, verdict in verdicts.items():
            name = layer.removeprefix(OVERLAY_LAYER)
            if name != layer:
                written = partial(self._condition, INSTANCE_TYPE_OVERLAYS, name, verdict, now)
                self._attempt(INSTANCE_TYPE_OVERLAYS.kind, name, written)

    def _condition(
        self,
        resource: Resource,
        name: str,
        verdict: Verdict,
        now: datetime,
        *,
        kind: str = "Ready",
        generation: int = 0,
    ) -> None:
        """Sets the condition of type `kind`, unless it is set already.

        `generation` is that of the spec of the verdict, 0 if unknown: then that of the object is used when the verdict
        changes. Clients that wait for a condition ignore one about an older spec.
        """
        self._shown.add((resource, name))
        verdict = verdict._replace(message=shown(verdict.message))
        if self._conditions.get((resource, name, kind)) == (generation, verdict):
            return
        with suppress(NotFoundError, ConflictError):  # in both cases the next reconcile reads it again
            found = self._api.get(resource, name)
            conditions = _conditions(found)
            before: dict[str, Any] = next((entry for entry in conditions if entry["type"] == kind), {})
            written = (before.get("status"), before.get("reason"), before.get("message"))
            if written != tuple(verdict) or before.get("observedGeneration", 0) < generation:
                observed = generation or found["metadata"].get("generation", 1)
                entry = condition(kind, verdict, before=before, generation=observed, now=now)
                others = [other for other in conditions if other["type"] != kind]
                version = found["metadata"]["resourceVersion"]
                patch = {"metadata": {"resourceVersion": version}, "status": {"conditions": [*others, entry]}}
                self._api.patch(resource, name, patch, subresource="status")
            self._conditions[resource, name, kind] = (generation, verdict)

    def write_event(self, event: Event, now: datetime) -> None:
        """Have an event written, unless it has been before. Never fails."""
        self._events.offer(event, now)
        if self._writes_events:
            self._events.drain()

    def _try_to_nominate(self, nomination: tuple[Pod, str]) -> None:
        pod = nomination[0]
        self._attempt(PODS.kind, pod.name, lambda: self._nominate(nomination), namespace=pod.namespace)

    def _nominate(self, nomination: tuple[Pod, str]) -> None:
        """Write the node that a pod is planned on, for kube-scheduler and other autoscalers (KEP-5278)."""
        pod, node = nomination
        # InvalidError: the scheduler has bound it since it was seen, so the hint is not needed any more.
        with suppress(NotFoundError, InvalidError):
            patch = {"status": {"nominatedNodeName": node}}
            self._api.patch(PODS, pod.name, patch, namespace=pod.namespace, subresource="status")

    def _status(self, resource: Resource, name: str, made: Callable[[], dict[str, Any]]) -> None:
        self._shown.add((resource, name))
        status = made()
        if self._statuses.get((resource, name)) == status:
            return
        with suppress(NotFoundError):
            self._api.patch(resource, name, {"status": status}, subresource="status")
            self._statuses[resource, name] = status


def _becomes_event(kind: str, severity: Severity) -> bool:
    """True if a problem of an object without a condition becomes an Event: each error, and for pods each warning."""
    return severity is Severity.ERROR or (kind == PODS.kind and severity is Severity.WARNING)


def _nominations(snapshot: Snapshot) -> Iterator[tuple[Pod, str]]:
    """The pods without the name of their future node, and that name."""
    waiting = [pod for pod in snapshot.pods if pod.node_name is None and not pod.nominated_node]
    if not waiting:
        return
    planned = {pod: node for node in snapshot.provisioned if _accepted(node) for pod in node.pods}
    for pod in waiting:
        node = planned.get(pod.key)
        if node is None:
            continue
        # Cluster Autoscaler fails on nominated pods whose claims do not exist yet.
        if all(entry.claim is not None for entry in pod.claims):
            yield pod, node.node_name


def _conditions(found: Object) -> list[dict[str, Any]]:
    """The conditions of an object. Anything else in their place is overwritten."""
    status = found.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and "type" in entry]


def _accepted(node: ProvisionedNode) -> bool:
    """True if the node has a machine and is not leaving."""
    return has_machine(node) and may_take_pods(node)


def _pool_status(pool: CapacityPool, plan: Plan, snapshot: Snapshot, accelerators: Mapping[str, int]) -> dict[str, Any]:
    nodes = [node for node in snapshot.provisioned if node.pool == pool.name and counts_against_limits(node)]
    price = sum((node.offering.usd_per_hour or Decimal(0) for node in nodes), Decimal(0))
    proposed = [launch for launch in plan.launches if launch.pool == pool.name and not pool.acts]
    return {
        "observedGeneration": pool.generation,
        "nodes": len(nodes),
        "accelerators": accelerators.get(pool.name, 0),
        "usdPerHour": str(price),
        "proposedLaunches": _proposals(proposed),
    }


def _proposals(launches: list[PlannedNode]) -> list[dict[str, Any]]:
    """Equal proposals counted together."""
    groups: dict[object, list[PlannedNode]] = {}
    for launch in launches:
        groups.setdefault(launch.offering, []).append(launch)
    return [
        {
            "instanceType": group[0].offering.instance_type,
            "zone": group[0].offering.zone,
            "capacityType": group[0].offering.capacity_type.value,
            "count": len(group),
            "usdPerHour": None if group[0].usd_per_hour is None else str(group[0].usd_per_hour),
            "pods": sum(len(launch.pods) for launch in group),
        }
        for group in list(groups.values())[:_MOST_PROPOSALS]
    ]


def _usable(
    block: CapacityBlock,
    templates: Mapping[str, NodeTemplateRef],
    reach: Mapping[NodeTemplateRef, tuple[str, ...]],
    now: datetime,
) -> Verdict:
    """True if machines can be started in the block; by the node templates of pools, and the zones that these reach."""
    if block.pool not in templates:
        step = "create it, or name another one in spec.pool; if it is there, its condition Ready says what is wrong"
        return Verdict("False", "NoPool", f"there is no CapacityPool {block.pool} that can be used; {step}")
    zones = reach.get(templates[block.pool], ())
    if block.note:
        return Verdict("False", "ReservationNotUsable", block.note)
    if now >= block.reclaimed:
        step = "delete the object, or make another one for another reservation"
        return Verdict("False", "Ended", f"its machines were taken back; {step}")
    if zones and block.zone not in zones:
        step = f"create a subnet in {block.zone} that the node template of pool {block.pool} selects"
        return Verdict("False", "NoSubnetInZone", f"the pool's machines cannot start in {block.zone}; {step}")
    return _ACCEPTED


def _block_status(block: CapacityBlock, snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    nodes = [n for n in snapshot.provisioned if n.offering.block == block.name and counts_against_limits(n)]
    pods: dict[str, int] = {}
    for pod in snapshot.pods:
        if pod.bound and pod.node_name is not None:
            pods[pod.node_name] = pods.get(pod.node_name, 0) + 1
    return {
        "observedGeneration": block.generation,
        "phase": phase_of(block, now).value,
        "reservation": block.reservation if block.reservation_tags else "",
        "reclaimAt": None if block.reclaim_at is None else block.reclaim_at.strftime(TIME),
        "available": block.available,
        "note": block.note[:_LONGEST_NOTE],
        "nodes": [{"name": n.name, "phase": n.phase.value, "pods": pods.get(n.node_name, 0)} for n in nodes],
    }

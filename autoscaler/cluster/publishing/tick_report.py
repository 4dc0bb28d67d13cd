"""Everything that one reconcile publishes, and the one call that publishes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.publishing.capacity_answers import CapacityAnswers
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.publishing.publisher import Publisher
from autoscaler.cluster.publishing.template_status import TemplateStatuses
from autoscaler.model.capacity import NodeTemplateRef
from autoscaler.model.capacity_answers import BufferAnswer, RequestAnswer
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.events import Event, not_launched_event, trouble_event
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.last_good import EffectiveCatalog
from providers.contract import TemplateStatus


@dataclass(frozen=True, slots=True)
class TickReport:
    """`snapshot` has the nodes as they are recorded after the plan was carried out."""

    now: datetime
    snapshot: Snapshot
    plan: Plan
    conditions: tuple[PoolCondition, ...]
    templates: tuple[TemplateStatus, ...]  # the providers' verdicts on their node templates
    problems: tuple[tuple[str, str, Diagnostic], ...]  # problems of objects: kind, key, problem
    accelerators: Mapping[str, int]  # in use, by the name of the pool
    effective: EffectiveCatalog | None
    troubles: tuple[Trouble, ...]  # failures of this reconcile
    events: tuple[Event, ...]  # other events for users
    requests: tuple[RequestAnswer, ...] = ()
    buffers: tuple[BufferAnswer, ...] = ()


class TickPublisher:
    """Writes Events, conditions and statuses. Its memory only saves calls."""

    def __init__(self, api: KubernetesApi, *, at_once: int = 1, events: EventQueue | None = None) -> None:
        """`events`: a queue that another thread writes; without it events are written at once."""
        self._api = api
        self._publisher = Publisher(api, at_once=at_once, events=events)
        self._templates = TemplateStatuses(api)
        self._answers = CapacityAnswers(api)

    def newest(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the answers that were written and that no watch has shown yet."""
        return self._answers.newest(snapshot)

    def publish(self, report: TickReport) -> tuple[Trouble, ...]:
        """Writes all of it. Returns the failed writes; events about those are written, too."""
        now, after = report.now, report.snapshot
        self._publisher.publish(report.plan, after, now, accelerators=report.accelerators)
        named = ((verdict.template, verdict.zones) for verdict in report.templates)
        zones = {NodeTemplateRef(template.kind, template.name): found for template, found in named}
        self._publisher.judge(after, report.problems, now, zones=zones, objections=report.plan.warnings)
        self._publisher.check(report.conditions, after, now)
        if report.effective is not None:
            self._publisher.overlays(report.effective, now)
        answered = self._answers.write(report.requests, report.buffers, after, now)
        troubles = (*self._write_templates(report), *self._publisher.take_troubles(), *answered)
        self._write_troubles(report, (*report.troubles, *troubles))
        for event in report.events:
            self._publisher.write_event(event, now)
        return troubles

    def _write_templates(self, report: TickReport) -> tuple[Trouble, ...]:
        """The statuses and events of node templates; which could not be written."""
        isolation = Isolation(self._api)

        def write(verdict: TemplateStatus) -> None:
            for event in self._templates.write(verdict, report.now):
                self._publisher.write_event(event, report.now)

        attempts = (isolation.attempt(v.template.kind, v.template.name, partial(write, v)) for v in report.templates)
        return tuple(trouble for trouble in attempts if trouble is not None)

    def _write_troubles(self, report: TickReport, troubles: tuple[Trouble, ...]) -> None:
        """Events on what could not be done, and on the pods that wait for it."""
        # `kubectl describe` shows the events of a pod's uid.
        uids = {pod.key: pod.uid for pod in report.snapshot.pods} if troubles else {}
        for trouble in troubles:
            uid = uids.get(f"{trouble.namespace}/{trouble.name}", "") if trouble.namespace else ""
            about = trouble_event(
                trouble.kind, trouble.namespace, trouble.name, uid, reason=trouble.reason, text=trouble.text
            )
            self._publisher.write_event(about, report.now)
            for pod in trouble.pods:
                event = not_launched_event(pod, uids.get(pod, ""), trouble.name, trouble.reason)
                self._publisher.write_event(event, report.now)

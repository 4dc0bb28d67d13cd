"""Writes the answers to ProvisioningRequests and CapacityBuffers: labels of nodes first, then the status.

Every write has the resourceVersion that the answer was made from. If another client was faster, nothing is written, and
the next reconcile answers the new object. A write counts before a watch shows it: otherwise capacity that a request has
been given would be bought for it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

from autoscaler.cluster.api import ConflictError, KubernetesApi, NotFoundError
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.publishing.condition import TIME, shown
from autoscaler.cluster.resources import CAPACITY_BUFFERS, NODES, PROVISIONING_REQUESTS
from autoscaler.kube.workloads.requested_capacity import parse_provisioning_request
from autoscaler.model.capacity_answers import AnswerCondition, BufferAnswer, RequestAnswer, Why
from autoscaler.model.requested_capacity import CapacityBuffer, Condition, ProvisioningRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.capacity_answers import buffer_message, request_message
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels

_LONGEST_DETAIL: Final = 32768


class CapacityAnswers:
    """The writer. It remembers only what a watch has not shown yet."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._written: dict[str, ProvisioningRequest] = {}

    def newest(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with this process's writes that are newer than what was read."""
        seen = {request.key: request for request in snapshot.provisioning_requests}
        self._written = {
            key: mine
            for key, mine in self._written.items()
            if key in seen and seen[key].uid == mine.uid and _version(mine) > _version(seen[key])
        }
        if not self._written:
            return snapshot
        merged = tuple(self._written.get(key, request) for key, request in seen.items())
        return replace(snapshot, provisioning_requests=merged)

    def write(
        self, requests: Iterable[RequestAnswer], buffers: Iterable[BufferAnswer], snapshot: Snapshot, now: datetime
    ) -> tuple[Trouble, ...]:
        """Writes all answers that differ from the objects. Returns those that could not be written."""
        isolation = Isolation(self._api)
        marked = {node.name: node.labels.get(labels.PROVISIONING_REQUEST, "") for node in snapshot.nodes}
        return tuple(
            trouble
            for kind, name, namespace, action in self._actions(requests, buffers, marked, now)
            if (trouble := isolation.attempt(kind, name, action, namespace=namespace)) is not None
        )

    def _actions(
        self, requests: Iterable[RequestAnswer], buffers: Iterable[BufferAnswer], marked: dict[str, str], now: datetime
    ) -> Iterator[tuple[str, str, str, Callable[[], object]]]:
        for answer in requests:
            about = answer.request
            action = partial(self._answer_request, answer, marked, now)
            yield PROVISIONING_REQUESTS.kind, about.name, about.namespace, action
        for found in buffers:
            buffer = found.buffer
            yield CAPACITY_BUFFERS.kind, buffer.name, buffer.namespace, partial(self._answer_buffer, found, now)

    def _answer_request(self, answer: RequestAnswer, marked: dict[str, str], now: datetime) -> None:
        request = answer.request
        expected = [(each, shown(request_message(answer, each))) for each in answer.conditions]
        if _agrees(request.conditions, expected) and answer.spares == request.spares:
            return
        with suppress(NotFoundError, ConflictError):  # in both cases the next reconcile sees it anew
            for node in answer.nodes:
                if marked.get(node) != request.node_label:
                    marks = {"metadata": {"labels": {labels.PROVISIONING_REQUEST: request.node_label}}}
                    self._api.patch(NODES, node, marks)
            status: dict[str, Any] = {"conditions": _merged(request, expected, now)}
            if answer.nodes or answer.spares:
                status["provisioningClassDetails"] = _details(answer)
            patch = {"metadata": {"resourceVersion": request.resource_version}, "status": status}
            written = self._api.patch(
                PROVISIONING_REQUESTS, request.name, patch, namespace=request.namespace, subresource="status"
            )
            self._written[request.key] = parse_provisioning_request(written)

    def _answer_buffer(self, answer: BufferAnswer, now: datetime) -> None:
        buffer = answer.buffer
        expected = [(each, shown(buffer_message(answer, each))) for each in answer.conditions]
        texts = {"provisioningStrategy": buffer.strategy, "replicas": str(answer.replicas)}
        if answer.template:
            texts |= {"podTemplateRef": answer.template, "podTemplateGeneration": str(answer.generation)}
        if _agrees(buffer.conditions, expected) and buffer.status == texts:
            return
        status: dict[str, Any] = {
            "provisioningStrategy": buffer.strategy,
            "replicas": answer.replicas,
            "podTemplateRef": {"name": answer.template} if answer.template else None,
            "podTemplateGeneration": answer.generation if answer.template else None,
            "conditions": _merged(buffer, expected, now),
        }
        patch = {"metadata": {"resourceVersion": buffer.resource_version}, "status": status}
        with suppress(NotFoundError, ConflictError):
            self._api.patch(CAPACITY_BUFFERS, buffer.name, patch, namespace=buffer.namespace, subresource="status")


def _details(answer: RequestAnswer) -> dict[str, str]:
    """The details that Kueue copies into node selectors, and the names of the nodes; other keys stay."""
    details = dict(answer.request.details)
    if answer.spares:
        details[labels.SPARE_PODS] = ",".join(
            f"{template}={count}" for template, count in sorted(answer.spares.items())
        )
    if answer.nodes:
        details[labels.PROVISIONING_REQUEST] = answer.request.node_label
        names = ",".join(answer.nodes)
        details |= {labels.REQUEST_NODES: names} if len(names) <= _LONGEST_DETAIL else {}
    return details


_Texts = list[tuple[AnswerCondition, str]]


def _status(condition: AnswerCondition) -> str:
    return "True" if condition.true else "False"


def _agrees(conditions: Iterable[Condition], expected: _Texts) -> bool:
    """True if the object has all these conditions already. Acceptance is written once, with any text."""
    found = {entry.type: entry for entry in conditions}
    for each, text in expected:
        before = found.get(each.type)
        if before is None or before.status != _status(each):
            return False
        if each.why is not Why.ACCEPTED and (before.reason, before.message) != (each.why.value, text):
            return False
    return True


def _merged(about: ProvisioningRequest | CapacityBuffer, expected: _Texts, now: datetime) -> list[dict[str, Any]]:
    """All conditions: the new ones in place of those of their types, and the others unchanged."""
    found = {entry.type: entry for entry in about.conditions}
    for each, text in expected:
        before = found.get(each.type)
        if before is not None and each.why is Why.ACCEPTED and before.status == "True":
            continue
        since = before.since if before is not None and before.status == _status(each) and before.since else now
        found[each.type] = Condition(str(each.type), _status(each), each.why.value, text, since, about.generation)
    return [_written(entry, now) for entry in found.values()]


def _written(entry: Condition, now: datetime) -> dict[str, Any]:
    return {
        "type": entry.type,
        "status": entry.status,
        "reason": entry.reason,
        "message": entry.message,
        "lastTransitionTime": (entry.since or now).strftime(TIME),
        **({"observedGeneration": entry.generation} if entry.generation else {}),
    }


def _version(request: ProvisioningRequest) -> int:
    return int(request.resource_version or 0)

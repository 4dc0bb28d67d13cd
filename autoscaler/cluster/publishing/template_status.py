"""Writes the statuses of node templates: their resolved resources, and whether they can be used.

The provider judges; this module only writes the verdict if it has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from autoscaler.cluster.api import ConflictError, KubernetesApi, NotFoundError
from autoscaler.cluster.publishing.condition import Verdict, condition
from autoscaler.cluster.resources import BY_KIND
from autoscaler.report.events import Event, Subject
from providers.contract import TemplateFault, TemplateStatus

_LONGEST_MESSAGE: Final = 4096


class TemplateStatuses:
    """The statuses as last written. Its memory only saves calls."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._written: dict[tuple[str, str], TemplateStatus] = {}

    def write(self, verdict: TemplateStatus, now: datetime) -> tuple[Event, ...]:
        """Write a verdict that is new; the answer is its Events. Kinds of third parties are not written."""
        kind, name = verdict.template.kind, verdict.template.name
        resource = BY_KIND.get(kind)
        if resource is None or self._written.get((kind, name)) == verdict:
            return ()
        with suppress(NotFoundError, ConflictError):  # in both cases the next reconcile sees it anew
            found = self._api.get(resource, name)
            before = found.get("status", {})
            status = _status(verdict, before, now)
            if not all(fault.certain for fault in verdict.faults):
                status = {**_without_empty(before), **status}  # the status of a resource that could not be read is kept
            if status != _without_empty(before):
                gone = dict.fromkeys(before.keys() - status.keys())
                about = {"resourceVersion": found["metadata"]["resourceVersion"]}
                patch = {"metadata": about, "status": {**gone, **status}}
                self._api.patch(resource, name, patch, subresource="status")
            self._written[kind, name] = verdict
            return tuple(_events(verdict, str(found["metadata"].get("uid", ""))))
        return ()


def _without_empty(status: Mapping[str, Any]) -> dict[str, Any]:
    """Without the empty fields that the API server fills in."""
    return {key: value for key, value in status.items() if value not in ("", [])}


def _status(verdict: TemplateStatus, before: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    earlier = {condition["type"]: condition for condition in before.get("conditions", ())}
    generation = verdict.template.generation
    conditions = [
        condition(kind, found, before=earlier.get(kind, {}), generation=generation, now=now)
        for kind, found in _verdicts(verdict)
    ]
    return {"observedGeneration": generation, "conditions": conditions, **verdict.resolved}


def _verdicts(verdict: TemplateStatus) -> Iterator[tuple[str, Verdict]]:
    """The verdict of each condition, with its type."""
    certain = [fault for fault in verdict.faults if fault.certain]
    message = "\n".join(map(_line, verdict.faults))[:_LONGEST_MESSAGE]
    if certain:
        yield "Ready", Verdict("False", certain[0].kind, message)
    elif verdict.faults:
        yield "Ready", Verdict("Unknown", verdict.faults[0].kind, message)
    else:
        yield "Ready", Verdict("True", "Resolved")
    if verdict.drift:
        yield "UpToDate", Verdict("False", "Drifted", verdict.drift[:_LONGEST_MESSAGE])
    elif verdict.drift is not None:
        yield "UpToDate", Verdict("True", "UpToDate")


def _events(verdict: TemplateStatus, uid: str) -> Iterator[Event]:
    about = Subject(verdict.template.kind, verdict.template.name, uid=uid)
    for fault in verdict.faults:
        yield Event(about, "Warning", fault.kind, _line(fault))
    if verdict.drift:
        yield Event(about, "Normal", "Drifted", verdict.drift)


def _line(fault: TemplateFault) -> str:
    field = "" if fault.field in fault.message else f"{fault.field}: "  # nothing is in everything
    return f"{field}{fault.message}; {fault.next_step}"

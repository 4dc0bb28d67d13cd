"""Writes the statuses of node templates: what was resolved, and whether they can be used.

The provider judges; this module only writes the verdict, and only when it has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from autoscaler.cluster.api import ConflictError, KubernetesApi, NotFoundError
from autoscaler.cluster.resources import BY_KIND
from autoscaler.report.events import Event
from providers.contract import TemplateFault, TemplateStatus

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_LONGEST_MESSAGE: Final = 4096


class TemplateStatuses:
    """The statuses as last written. What it remembers only saves calls."""

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
                status = {**_told(before), **status}  # what could not be looked at may be as it was
            if status != _told(before):
                gone = dict.fromkeys(before.keys() - status.keys())
                about = {"resourceVersion": found["metadata"]["resourceVersion"]}
                patch = {"metadata": about, "status": {**gone, **status}}
                self._api.patch(resource, name, patch, subresource="status")
            self._written[kind, name] = verdict
            return tuple(_events(verdict, str(found["metadata"].get("uid", ""))))
        return ()


def _told(status: Mapping[str, Any]) -> dict[str, Any]:
    """Without the empty fields that the API server fills in."""
    return {key: value for key, value in status.items() if value not in ("", [])}


def _status(verdict: TemplateStatus, before: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    earlier = {condition["type"]: condition for condition in before.get("conditions", ())}
    conditions = []
    for kind, status, reason, message in _verdicts(verdict):
        same = earlier.get(kind, {}).get("status") == status
        conditions.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message[:_LONGEST_MESSAGE],
                "observedGeneration": verdict.template.generation,
                "lastTransitionTime": earlier[kind]["lastTransitionTime"] if same else now.strftime(_TIME),
            }
        )
    return {"observedGeneration": verdict.template.generation, "conditions": conditions, **verdict.resolved}


def _verdicts(verdict: TemplateStatus) -> Iterator[tuple[str, str, str, str]]:
    """Type, status, reason and message of each condition."""
    certain = [fault for fault in verdict.faults if fault.certain]
    if certain:
        yield "Ready", "False", certain[0].kind, "\n".join(map(_line, verdict.faults))
    elif verdict.faults:
        yield "Ready", "Unknown", verdict.faults[0].kind, "\n".join(map(_line, verdict.faults))
    else:
        yield "Ready", "True", "Resolved", ""
    if verdict.drift is not None:
        yield ("UpToDate", "False", "Drifted", verdict.drift) if verdict.drift else ("UpToDate", "True", "UpToDate", "")


def _events(verdict: TemplateStatus, uid: str) -> Iterator[Event]:
    kind, name = verdict.template.kind, verdict.template.name
    for fault in verdict.faults:
        yield Event(kind, "", name, uid, "Warning", fault.kind, _line(fault))
    if verdict.drift:
        yield Event(kind, "", name, uid, "Normal", "Drifted", verdict.drift)


def _line(fault: TemplateFault) -> str:
    field = "" if fault.field in fault.message else f"{fault.field}: "  # nothing is in everything
    return f"{field}{fault.message}; {fault.next_step}"

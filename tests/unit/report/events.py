"""All events of a plan, in one list."""

from __future__ import annotations

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.events import Event, object_events


def events_of(plan: Plan, snapshot: Snapshot) -> list[Event]:
    """The events of a plan, object after object."""
    return [event for about in object_events(plan, snapshot) for event in about.events()]

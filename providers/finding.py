"""The findings of a preflight: one result for each thing that a launch needs."""

from __future__ import annotations

from enum import Enum

from instance_catalog.dataclass import dataclass


class FindingTopic(Enum):
    """The subject of a Finding, if another finding depends on it."""

    NO_NODE_TEMPLATES = "no-node-templates"  # no template for single machines exists
    NODE_GROUPS = "node-groups"  # a template of node groups that a person created
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a preflight: the subject, whether it is right, and the correction if not.

    Not a Diagnostic, because a right result is a finding as well. `required` False: launches work without it, but
    worse.
    """

    subject: str
    passed: bool
    message: str
    next_step: str = ""
    required: bool = True
    topic: FindingTopic = FindingTopic.OTHER


def ok(subject: str, message: str) -> Finding:
    return Finding(subject, passed=True, message=message)


def missing(subject: str, message: str, next_step: str, *, topic: FindingTopic = FindingTopic.OTHER) -> Finding:
    """A finding that prevents all launches."""
    return Finding(subject, passed=False, message=message, next_step=next_step, topic=topic)


def note(subject: str, message: str, next_step: str) -> Finding:
    """Launches work all the same, but worse."""
    return Finding(subject, passed=False, message=message, next_step=next_step, required=False)

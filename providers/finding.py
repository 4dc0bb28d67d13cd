"""The topics of preflight findings that other findings depend on."""

from __future__ import annotations

from enum import Enum


class FindingTopic(Enum):
    """What a Finding is about, where another one depends on it."""

    NO_NODE_TEMPLATES = "no-node-templates"  # there is no template for single machines
    NODE_GROUPS = "node-groups"  # a template of node groups of a person
    OTHER = "other"

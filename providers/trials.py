"""Common parts of trials on a real account or project: an outcome, and the redaction of reports."""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.dataclass import dataclass

_SECRETS: Final = (
    (re.compile(r"Encoded authorization failure message: \S+"), "(encoded message left out)"),
    (re.compile(r"\b\d{12}\b"), "(account)"),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{12,}\b"), "(key)"),
    (re.compile(r"arn:[\w-]+:(sts|iam)::\S+"), "(identity)"),
    (re.compile(r"\b[\w.+-]+@[\w.-]+\.\w+"), "(identity)"),
    (re.compile(r"\bprojects/[\w.:-]+"), "projects/(project)"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one check of a trial. `passed` None: it could not be checked."""

    name: str
    passed: bool | None
    message: str
    seconds: float = 0.0


def without_secrets(text: str) -> str:
    """Without account, project, identity, keys and encoded messages, so that a report can be attached to a bug."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text

"""Findings as SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format), for code scanning.

One run with the whole table of rules. Fingerprints leave out lines, so that a finding stays the same if the file above
it changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from autoscaler.lint.rules import RULES, Finding, Rule
from instance_catalog.diagnostic import Diagnostic

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_INDEX: Final = {rule.id: position for position, rule in enumerate(RULES)}


def sarif_of(findings: Sequence[Finding], version: str) -> dict[str, Any]:
    """The log; `version` is Foreslice's own."""
    driver = {"name": "foreslice", "version": version, "rules": [_rule(rule) for rule in RULES]}
    results = [_result(finding) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.why},
        "defaultConfiguration": {"level": rule.level.value},
    }


def _result(finding: Finding) -> dict[str, Any]:
    found = finding.diagnostic
    message = f"{found.message} (and {found.others} more)" if found.others else found.message
    text = f"{message}\n{found.next_step}" if found.next_step else message
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": _INDEX[finding.rule.id],
        "level": finding.level.value,
        "message": {"text": text},
        "partialFingerprints": {"foresliceFinding/v1": _fingerprint(finding)},
    }
    location: dict[str, Any] = {}
    if found.file:
        location["physicalLocation"] = _physical(found)
    if found.subject:
        name = f"{found.subject}: {found.field}" if found.field else found.subject
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "object"}]
    return result | ({"locations": [location]} if location else {})


def _physical(found: Diagnostic) -> dict[str, Any]:
    path = PurePath("stdin" if found.file == "-" else found.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if found.line:
        place["region"] = {"startLine": found.line}
    return place


def _fingerprint(finding: Finding) -> str:
    found = finding.diagnostic
    parts = (finding.rule.id, found.file, found.subject, found.field)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()

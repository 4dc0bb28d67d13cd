"""The output of `foreslice lint`: lines that editors can jump to, and plain data for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from autoscaler.lint.rules import Finding, Level
from autoscaler.report.words import counted


def lines_of(findings: Sequence[Finding]) -> Iterator[str]:
    """`file:line: level: object: field: message [rule]`, the fix indented below; counts at the end."""
    for finding in findings:
        found = finding.diagnostic
        parts = (found.place, finding.level.value, found.about, found.field, found.message)
        yield f"{': '.join(part for part in parts if part)} [{finding.rule.id}]"
        yield from (f"  {line}" for line in found.next_step.splitlines())
    if findings:
        yield ""
    yield summary_of(findings)


def summary_of(findings: Sequence[Finding]) -> str:
    """ "2 errors, 1 warning"."""
    counts = Counter(finding.level for finding in findings)
    counted_levels = [counted(counts[level], level.value) for level in Level if counts[level]]
    return ", ".join(counted_levels) or "nothing found"


def document_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """Plain data: {"findings": […], "summary": {"error": n, "warning": n, "note": n}}."""
    counts = Counter(finding.level for finding in findings)
    return {
        "findings": [_entry(finding) for finding in findings],
        "summary": {level.value: counts[level] for level in Level},
    }


def _entry(finding: Finding) -> dict[str, Any]:
    found = finding.diagnostic
    return {
        "rule": finding.rule.id,
        "level": finding.level.value,
        "file": found.file,
        "line": found.line,
        "object": found.subject,
        **({"others": found.others} if found.others else {}),
        "field": found.field,
        "message": found.message,
        "fix": found.next_step,
    }

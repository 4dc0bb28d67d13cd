"""A finding: a Diagnostic with the rule that found it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autoscaler.lint.rules import Level, Rule
from instance_catalog.diagnostic import Diagnostic, Path


@dataclass(frozen=True, slots=True)
class Finding:
    """Beside the Diagnostic because a rule says more than a severity: a level with notes, an id that users suppress,
    a title and a reason for code scanning. Its place is added by whoever knows the file.
    """

    rule: Rule
    diagnostic: Diagnostic

    @classmethod
    def of(cls, rule: Rule, subject: str, path: Path, message: str, next_step: str = "") -> Finding:
        """`subject` as "ResourceClaim default/gpu", `path` the field inside it, () for the whole object."""
        return cls(rule, Diagnostic(message, next_step, path, subject))

    @property
    def level(self) -> Level:
        return self.rule.level

    def at(self, file: str, line: int) -> Finding:
        return replace(self, diagnostic=replace(self.diagnostic, file=file, line=line))

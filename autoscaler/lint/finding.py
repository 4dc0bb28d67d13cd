"""A finding: which rule, where, what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.kube.problem import Path, path_text
from autoscaler.lint.rules import Level, Rule
from autoscaler.model.origin import CLUSTER, Origin


@dataclass(frozen=True, slots=True)
class Finding:
    """`object` as "ResourceClaim default/gpu", `path` the field inside it, () for the whole object.

    `origin` is the line of the field once manifests/ has found it, until then that of the object. `written` is the
    field as text where a path is not known.
    """

    rule: Rule
    object: str
    path: Path
    message: str
    fix: str = ""
    origin: Origin = field(default=CLUSTER, compare=False)
    written: str = ""

    @property
    def level(self) -> Level:
        """How bad it is."""
        return self.rule.level

    @property
    def field(self) -> str:
        """The path as people write it."""
        return self.written or path_text(self.path)

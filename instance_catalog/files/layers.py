"""The layers of a catalog: files, and InstanceTypeOverlay objects with the same content.

A layer is one of them, read and of the right shape, or the reasons why it is not. Overlays are layers with a priority,
a reason or an expiry. Pure: loader.py reads text and mappings from files and from the cluster; merging.py combines the
layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from instance_catalog.dataclass import dataclass, field
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.findings import Findings, expected
from instance_catalog.files.schema import CatalogFile
from instance_catalog.files.yaml_text import YamlTextError, read

SHIPPED: Final = "shipped"


@dataclass(frozen=True, slots=True)
class Corrections:
    """The content of a catalog file from another source (an InstanceTypeOverlay), which `name` and `line` identify."""

    name: str
    line: int
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """One file. `file` is None if it cannot be used, and `problems` has the reasons.

    Files of one `group` (a directory) that are no overlays must not describe the same entry twice.
    """

    name: str
    group: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    file: CatalogFile | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    line: int = 1
    problems: tuple[Diagnostic, ...] = ()

    @property
    def shipped(self) -> bool:
        """True if it ships with the package; such layers lie below all others."""
        return self.group == SHIPPED

    @property
    def priority(self) -> int:
        """Layers of higher priority override those of lower; among equals the later one wins."""
        return self.file.priority if self.file is not None else 0

    @property
    def reason(self) -> str:
        """The reason that its author gives."""
        return self.file.reason if self.file is not None else ""

    @property
    def expires(self) -> datetime | None:
        """From then on it does not count."""
        return self.file.expires if self.file is not None else None

    @property
    def is_overlay(self) -> bool:
        """True if it may repeat values of another file of its group."""
        return bool(self.priority or self.reason or self.expires)


def text_layer(name: str, group: str, text: str) -> Layer:
    """A layer from YAML text. Never raises: defects are in its `problems`."""
    findings = Findings()
    try:
        raw = read(text)
    except YamlTextError as error:
        allowed = "YAML, every key once and fields of one mapping indented alike"
        findings.add_at(name, error.line, found=str(error), allowed=allowed)
        return Layer(name, group, text=text, problems=findings.problems)
    findings.remember(name, text)
    file = findings.checked_file(CatalogFile, {} if raw is None else raw, name)
    return Layer(name, group, raw or {}, file, text, problems=findings.problems)


def content_layer(corrections: Corrections) -> Layer:
    """A layer from a source without text; it is its own group. Never raises."""
    findings = Findings()
    findings.remember_line(corrections.name, corrections.line)
    file = findings.checked_file(CatalogFile, corrections.content, corrections.name)
    return Layer(
        corrections.name,
        corrections.name,
        corrections.content,
        file,
        line=corrections.line,
        problems=findings.problems,
    )


def unreadable(name: str, *, found: str, allowed: str, group: str = "") -> Layer:
    return Layer(name, group or name, problems=(Diagnostic(expected(found, allowed), file=name, line=1),))


def in_force(layers: Iterable[Layer], now: datetime | None) -> tuple[Layer, ...]:
    """The layers that have not expired at `now` (None: none has), lowest first: shipped ones, then by priority."""
    alive = [layer for layer in layers if now is None or layer.expires is None or layer.expires > now]
    return tuple(sorted(alive, key=lambda layer: (not layer.shipped, 0 if layer.shipped else layer.priority)))


def problems_of(layers: Sequence[Layer]) -> tuple[Diagnostic, ...]:
    return tuple(problem for layer in layers for problem in layer.problems)

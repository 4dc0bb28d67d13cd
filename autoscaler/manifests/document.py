"""One object of a file, and the places of its parts in the file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata, header, parse_metadata
from autoscaler.model.origin import Origin
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Path, Severity

Json: TypeAlias = Any


class Locator(Protocol):
    """Knows where the parts of a value stand in the text."""

    def __call__(self, path: Path) -> int:
        """The 1-based line of a field path, or of what encloses it. May be slow: only problems ask."""
        ...

    def items(self, name: str) -> Sequence[Locator]:
        """Locators of the entries of the list in field `name`."""
        ...


class UnreadableError(ValueError):
    """Text that is neither YAML nor JSON, with the 1-based line where that shows."""

    def __init__(self, message: str, line: int, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.next_step = next_step


@dataclass(frozen=True)
class Document:
    """An object, or what claims to be one; `line` is where it starts. `twice` are warnings of fields that are given
    again in it. `written` is the object in the file, where `value` is what a controller makes of it. It has fields of
    the object `around` it at the paths `given`. `creator`: the kind whose controller creates it; "" of an object that
    the file has itself."""

    file: str
    line: int
    value: Json
    locate: Locator
    twice: tuple[Diagnostic, ...] = ()
    written: Json = None
    around: Document | None = None
    given: tuple[Path, ...] = ()
    creator: str = ""

    @property
    def origin(self) -> Origin:
        """The origin of models that are made from it."""
        return Origin(self.file, self.line)

    @cached_property
    def metadata(self) -> Metadata:
        """Read once; the reader of the kind reports what is wrong with it."""
        return parse_metadata(Fields(self.value))

    @property
    def name(self) -> str:
        """ "Pod default/main", as far as the object in the file says so."""
        value = self.value if self.written is None else self.written
        _, kind = header(value)
        metadata = value.get("metadata") if isinstance(value, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        name = metadata.get("name") or metadata.get("generateName") or ""
        key = f"{metadata['namespace']}/{name}" if metadata.get("namespace") else str(name)
        return " ".join(part for part in (kind, key) if part)

    def located(self, problem: Diagnostic, *, strict: bool = False) -> Diagnostic:
        """The problem with its place; unknown fields are errors when `strict`."""
        if self.around is not None and problem.path in self.given:
            return self.around.located(problem, strict=strict)
        severity = problem.severity
        if strict and severity is Severity.UNKNOWN_FIELD:
            severity = Severity.ERROR
        line = self.locate(problem.path) if problem.path else self.line
        made = self.written is not None and not _has(self.written, problem.path)
        subject = f"{self.name} (its {header(self.value)[1]})" if made else self.name
        return replace(problem, file=self.file, line=line, subject=subject, severity=severity)


def _has(value: Json, path: Path) -> bool:
    """True if the field is in the value."""
    for part in path:
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and part in range(len(value))
        if not inside:
            return False
        value = value[part]
    return True

"""Problems found while an API object is read: where inside the object, what is wrong, what to do next.

They are collected instead of raised, so that a person sees all of them at once. Files and lines are added by
manifests/, which knows where the object came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from instance_catalog.spelling import did_you_mean

Path: TypeAlias = tuple[str | int, ...]
UNREPLACED: Final = "it looks like a variable that was not replaced: run envsubst, sed or the template's own tool first"
# ${NAME}, $NAME, {{ .Values.x }}, __INDEX__, PLACEHOLDER_X, <name>
_PLACEHOLDER: Final = re.compile(r"\$\{?[A-Za-z_]|\{\{|__[A-Z]+|PLACEHOLDER|<[\w.-]+>")


def is_placeholder(value: object) -> bool:
    """Whether a value is one of a template that nobody has filled in."""
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


class Severity(Enum):
    """An ERROR stops the plan. An UNKNOWN_FIELD is a warning that `--strict` turns into an error."""

    ERROR = "error"
    UNKNOWN_FIELD = "unknown field"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` is the field inside the object, () for the object itself."""

    path: Path
    message: str
    next_step: str = ""
    severity: Severity = Severity.ERROR

    @property
    def field(self) -> str:
        """The path as people write it: spec.devices.requests[0].exactly."""
        return path_text(self.path)

    def __str__(self) -> str:
        """spec.limits: is required; add a limit."""
        where = f"{self.field}: " if self.path else ""
        return f"{where}{self.message}; {self.next_step}".removesuffix("; ")

    def below(self, prefix: Path) -> Problem:
        """The same problem seen from an object that holds this one at `prefix`."""
        return replace(self, path=(*prefix, *self.path))


class Problems:
    """Collects the problems of one object."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def error(self, path: Path, message: str, next_step: str = "") -> None:
        """Something that must be corrected before a plan can be trusted."""
        self._found.append(Problem(path, message, next_step))

    def warn(self, path: Path, message: str, next_step: str = "") -> None:
        """Something a person should know; the object is used."""
        self._found.append(Problem(path, message, next_step, Severity.WARNING))

    def unknown_field(self, path: Path, known: Iterable[str]) -> None:
        """A field that neither Kubernetes 1.37 nor Foreslice knows at this place."""
        step = did_you_mean(str(path[-1]), known, "remove it, or check how it is spelled and indented")
        self._found.append(Problem(path, f"unknown field {path[-1]!r}", step, Severity.UNKNOWN_FIELD))

    @property
    def errors(self) -> bool:
        """Whether any of them is an error."""
        return any(problem.severity is Severity.ERROR for problem in self._found)


def path_text(path: Path) -> str:
    """spec.devices.requests[0].exactly; keys with dots are quoted in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part or "/" in part or not part:
            text += f"[{part!r}]"
        else:
            text += f".{part}" if text else part
    return text

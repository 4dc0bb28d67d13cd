"""Collects the Diagnostics of one API object while it is read.

They are collected instead of raised, so that a person sees all of them at once. manifests/ adds files and lines,
because it knows the source of the object.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final

from instance_catalog.diagnostic import Diagnostic, Path, Severity, unbroken
from instance_catalog.spelling import did_you_mean

UNREPLACED: Final = "it looks like a variable that was not replaced: run envsubst, sed or the template's own tool first"
PLACEHOLDER: Final = "it looks like a placeholder: write the value that belongs there"
# <name>, {name}, [name], FILLED BY THE OPERATOR, FILLED_BY_IT, YOUR_BUCKET, REPLACE_ME, CHANGEME, PLACEHOLDER_X,
# IGHS-DUMMY-VAL
_PLACEHOLDER: Final = re.compile(
    r"<[^<>]+>|^[\[{]\w[\w .-]*[\]}]|PLACEHOLDER|(?i:filled[ _](?:in[ _])?by)"
    r"|(?i:(?:change|replace|fill)[ _-]?(?:me|this)\b)|(?i:(?<![^\W_])dummy(?![^\W_]))"
    r"|^(?i:(?:your|insert|enter|replace|change|fill)[ _-]|(?:todo|tbd|fixme)\b)|^[A-Z][A-Z0-9]*(?: [A-Z0-9]+)+$"
)
# ${NAME}, $NAME, {{ .Values.x }}, {% if x %}, __INDEX__, KSA_NAME
_VARIABLE: Final = re.compile(r"\$\{?[A-Za-z_]|\{\{|\{%|__[A-Z]+|^[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)+$")
# The folder of a patch often has no kustomization, and `kubectl kustomize` fails there.
RENDER_OVERLAY: Final = (
    "`kubectl kustomize DIR | foreslice plan -f -`, where DIR is the folder with the kustomization.yaml that uses it"
)
_WITHOUT_QUOTES: Final = re.compile(r"[+-]?\d+(?:\.0*)?|true|false")


def left_by_template(value: object) -> str:
    """The next step for an invalid value that a template or an example left for users to replace; "" for others."""
    if isinstance(value, dict):  # {name} is an object to YAML
        return PLACEHOLDER if len(value) == 1 and next(iter(value.values())) is None else ""
    if not isinstance(value, str):
        return ""
    variable = UNREPLACED if _VARIABLE.search(value) else ""
    return PLACEHOLDER if _PLACEHOLDER.search(value) and "$" not in value and "{{" not in value else variable


def unquoted(value: object, kind: str) -> str:
    """The next step for a value that has to be a `kind` ("a whole number", "true or false"): only text that reads like
    one is in quotes by mistake."""
    left = left_by_template(value)
    if left or not isinstance(value, str):
        return left
    if _WITHOUT_QUOTES.fullmatch(value.strip()):
        return "write it without quotes"
    return f"write {kind}; if a tool fills it in, run that tool first"


def in_shell(name: str) -> str:
    """A name of an object as a word of a command, on one line."""
    return shlex.quote(unbroken(name))


def render_command(file: str) -> str:
    """The command that renders what a file has a part of, in the folder of the file; DIR for "-" and ""."""
    folder = "DIR" if file in ("", "-") else shlex.quote(str(PurePath(file).parent))
    return f"`kubectl kustomize {folder} | foreslice plan -f -`"


class Problems:
    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def error(self, path: Path, message: str, next_step: str = "") -> None:
        """Add a defect that must be corrected before a plan can be trusted."""
        self._found.append(Diagnostic(message, next_step, path))

    def warn(self, path: Path, message: str, next_step: str = "") -> None:
        """Add a note for people; the object is used."""
        self._found.append(Diagnostic(message, next_step, path, severity=Severity.WARNING))

    def unknown_field(self, path: Path, known: Iterable[str]) -> None:
        """Add a field that neither Kubernetes 1.37 nor Foreslice supports at this place."""
        step = did_you_mean(str(path[-1]), known, "remove it, or check how it is spelled and indented")
        found = f"unknown field {path[-1]!r}"
        self._found.append(Diagnostic(found, step, path, severity=Severity.UNKNOWN_FIELD))

    @property
    def errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self._found)

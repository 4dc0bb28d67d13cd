"""CEL selectors of claims and classes, compiled once: one that does not compile is an error at its place."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import compile_selector
from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document
from instance_catalog.kubernetes.profile import KubernetesProfile


def check_selectors(document: Document, profile: KubernetesProfile, problems: Problems) -> None:
    """Compile every selector of the object as an API server would: stricter for objects that none has accepted yet."""
    fields = Fields(document.value)
    for cel in _expressions(fields):
        expression = cel.raw("expression")
        if not isinstance(expression, str):
            continue
        view = View.STORED if document.metadata.uid else View.NEW
        failure = compile_selector(expression, profile, view=view)
        if isinstance(failure, CompileFailure):
            step = failure.hint or f"correct the expression; the error is at {_caret(failure)}"
            message = f"does not compile at {_place(failure)}: {failure.message}"
            problems.error((*cel.path, "expression"), message, step)


def _expressions(fields: Fields) -> Iterator[Fields]:
    spec = fields.child("spec")
    match fields.text("kind"):
        case "DeviceClass":
            yield from _selectors(spec)
        case "ResourceClaim":
            yield from _requests(spec)
        case "ResourceClaimTemplate":
            yield from _requests(spec.child("spec"))


def _requests(spec: Fields) -> Iterator[Fields]:
    for request in spec.child("devices").children("requests"):
        for holder in (request, request.child("exactly"), *request.children("firstAvailable")):
            yield from _selectors(holder)


def _selectors(holder: Fields) -> Iterator[Fields]:
    return (entry.child("cel") for entry in holder.children("selectors"))


def _place(failure: CompileFailure) -> str:
    several = "\n" in failure.expression.strip()
    return f"line {failure.line}, column {failure.column}" if several else f"column {failure.column}"


def _caret(failure: CompileFailure) -> str:
    """The text from where the error is."""
    line = failure.expression.split("\n")[failure.line - 1]
    rest = line[failure.column - 1 :].strip()
    return f"{rest[:40]!r}" if rest else "the end"

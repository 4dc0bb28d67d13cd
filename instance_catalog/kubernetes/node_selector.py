"""Kubernetes node selectors: values and matching.

Used by ResourceSlices (which nodes can reach a device), allocation results, node affinity and volumes. Matching follows
k8s.io/component-helpers scheduling/corev1/nodeaffinity (v1.36): terms are ORed, an empty term matches nothing, one
unparsable term makes the whole selector an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from instance_catalog.dataclass import dataclass

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


class BadSelectorError(ValueError):
    """A node selector that upstream refuses to parse; the message has the requirement and the reason."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `key operator values` line. `values` keep their order in the manifest; matching ignores it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Expressions (labels) and fields (`metadata.name`), all of which must match."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    @staticmethod
    def for_node(name: str) -> NodeSelector:
        return NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (name,)),)),))


def matches(selector: NodeSelector, *, name: str, labels: Mapping[str, str]) -> bool:
    """True if a node with this name and these labels matches; raises BadSelectorError if any term cannot be parsed."""
    for term in selector.terms:
        _check(term)
    return any(term_matches(term, name=name, labels=labels) for term in selector.terms)


def term_matches(term: NodeSelectorTerm, *, name: str, labels: Mapping[str, str]) -> bool:
    """True if one (parsable) term matches. An empty term matches nothing; without a name, fields are not checked.

    Source: component-helpers scheduling/corev1/nodeaffinity, v0.36.3.
    """
    if not term.match_expressions and not term.match_fields:
        return False
    if name and not all(_field_matches(r, name) for r in term.match_fields):
        return False
    return all(requirement_matches(r, labels) for r in term.match_expressions)


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """True if the labels meet one requirement (label-selector semantics, plus Gt and Lt on integers)."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or not _INTEGER.match(value):
                return False
            bound = int(requirement.values[0])
            return int(value) > bound if requirement.operator == "Gt" else int(value) < bound
        case other:
            raise BadSelectorError(
                f"operator {other!r} of key {requirement.key!r} is not one of {', '.join(OPERATORS)}"
            )


def _field_matches(requirement: Requirement, name: str) -> bool:
    return (name in requirement.values) == (requirement.operator == "In")


def _check(term: NodeSelectorTerm) -> None:
    for requirement in term.match_expressions:
        check_requirement(requirement)
    for requirement in term.match_fields:
        if requirement.key != "metadata.name":
            raise BadSelectorError(f"field {requirement.key!r} is not supported: only metadata.name is")
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            raise BadSelectorError("a field requirement needs operator In or NotIn with exactly one value")


def check_requirement(requirement: Requirement) -> None:
    """Raise BadSelectorError if the operator and the number or form of the values do not fit."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    match operator:
        case "In" | "NotIn" if not values:
            raise BadSelectorError(f"operator {operator} of key {key!r} needs at least one value")
        case "Exists" | "DoesNotExist" if values:
            raise BadSelectorError(f"operator {operator} of key {key!r} takes no values")
        case "Gt" | "Lt" if len(values) != 1 or not _INTEGER.match(values[0]):
            raise BadSelectorError(f"operator {operator} of key {key!r} needs exactly one integer value")
        case _ if operator not in OPERATORS:
            raise BadSelectorError(f"operator {operator!r} of key {key!r} is not one of {', '.join(OPERATORS)}")

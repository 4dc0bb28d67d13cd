"""Finds labels that a pod requires and that no offered node has. Pure.

A label that users set on their nodes excludes a pod from every type. Then it is no news that most types also lack the
label of one machine type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.scheduling.node_filters import as_written
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import (
    BadSelectorError,
    NodeSelectorTerm,
    check_requirement,
    requirement_matches,
)

_SHOWN = 3  # a message with more labels is not clearer


def missing_labels(pod: Pod, nodes: Collection[FrozenMap[str, str]]) -> Reason | None:
    """The labels of nodeSelector and of required node affinity that none of the nodes has, given as their labels; None
    if some node has each of them.

    Terms of node affinity are alternatives: only a single term must hold completely.
    """
    unmet = [(k, v) for k, v in pod.node_selector.items() if not any(labels.get(k) == v for labels in nodes)]
    terms = pod.affinity.terms if pod.affinity else ()
    wanted = tuple(_unmet(terms[0], nodes))[:_SHOWN] if len(terms) == 1 else ()
    subject = Subject("pod", pod.key)
    if not unmet:
        keys = tuple(sorted({text.partition(" ")[0] for text in wanted}))
        return Reason.of(Code.NODE_AFFINITY_MISMATCH, subject, keys=keys, wanted=wanted) if wanted else None
    if len(unmet) == 1 and not wanted:
        ((key, value),) = unmet
        return Reason.of(Code.NODE_SELECTOR_MISMATCH, subject, key=key, wanted=value, found="")
    selected = tuple(f"{key}={value}" for key, value in unmet[:_SHOWN])
    return Reason.of(Code.NODE_SELECTOR_MISMATCH, subject, labels=selected, affinity=wanted)


def _unmet(term: NodeSelectorTerm, nodes: Collection[Mapping[str, str]]) -> list[str]:
    """The requirements on labels that no node meets, as written in manifests. Lint reports terms that cannot be
    parsed."""
    try:
        for requirement in term.match_expressions:
            check_requirement(requirement)
        lacking = [r for r in term.match_expressions if not any(requirement_matches(r, labels) for labels in nodes)]
    except BadSelectorError:
        return []
    return [as_written(requirement) for requirement in lacking]

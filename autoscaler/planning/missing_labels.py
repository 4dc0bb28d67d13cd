"""What pods ask of a node's labels and no node that could be bought has. Pure.

A label that people give their nodes keeps a pod from every type; that most types also lack the label of one machine is
no news beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import (
    BadSelectorError,
    NodeSelectorTerm,
    Requirement,
    requirement_matches,
)

_SHOWN = 3  # more make no better sentence


def missing_labels(pod: Pod, nodes: Collection[FrozenMap[str, str]]) -> Reason | None:
    """The labels of nodeSelector and of required node affinity that none of the nodes has, given as their labels; None
    where each is on some node. Terms of node affinity are alternatives: only where there is one, must all of it hold.
    """
    unmet = [(k, v) for k, v in pod.node_selector.items() if not any(labels.get(k) == v for labels in nodes)]
    terms = pod.affinity.terms if pod.affinity else ()
    wanted = tuple(_unmet(terms[0], nodes))[:_SHOWN] if len(terms) == 1 else ()
    subject = f"pod {pod.key}"
    if not unmet:
        keys = tuple(sorted({text.partition(" ")[0] for text in wanted}))
        return Reason.of(Code.NODE_AFFINITY_MISMATCH, subject, keys=keys, wanted=wanted) if wanted else None
    if len(unmet) == 1 and not wanted:
        ((key, value),) = unmet
        return Reason.of(Code.NODE_SELECTOR_MISMATCH, subject, key=key, wanted=value, found="")
    selected = tuple(f"{key}={value}" for key, value in unmet[:_SHOWN])
    return Reason.of(Code.NODE_SELECTOR_MISMATCH, subject, labels=selected, affinity=wanted)


def _unmet(term: NodeSelectorTerm, nodes: Collection[Mapping[str, str]]) -> list[str]:
    """The requirements on labels that no node meets, as people write them. Lint reports what cannot be parsed."""
    try:
        lacking = [r for r in term.match_expressions if not any(requirement_matches(r, labels) for labels in nodes)]
    except BadSelectorError:
        return []
    return [_text(requirement) for requirement in lacking]


def _text(requirement: Requirement) -> str:
    values = f" [{', '.join(requirement.values[:_SHOWN])}]" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"

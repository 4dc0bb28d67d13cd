"""Labels of other clouds and systems whose value names an accelerator: the pod may select it by a label of Foreslice.

`machine.cluster.vke.volcengine.com/gpu-name In [Tesla-V100]` matches no node of AWS or Google Cloud, but says which GPU
its author wants; without the requirement the pod would get any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.situation import Situation
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator

# Of the catalog's clouds: what such a label says is predicted, or names a group of nodes that somebody makes.
OWN_DOMAINS: Final = ("cloud.google.com/", "eks.amazonaws.com/", "karpenter.k8s.aws/")
_WORDS: Final = re.compile(r"[a-z]+[0-9]+[a-z]*|[a-z]+|[0-9]+[a-z]*")
_MEMORY: Final = re.compile(r"([0-9]+)g(b|i|ib)?")
# What shows that a label speaks of an accelerator: "l4" alone may be a rack.
_ABOUT: Final = ("gpu", "accelerator", "nvidia", "tesla", "cuda", "device", "card")


def accelerators_named(key: str, value: str, catalog: Catalog) -> tuple[str, ...]:
    """The catalog's accelerators that the value of a node label names, by key: of one model, and of the memory that
    the value names where one of them has it."""
    if not any(word in f"{key} {value}".lower() for word in _ABOUT):
        return ()
    words = frozenset(_WORDS.findall(value.lower()))
    whole = {one.accelerator for one in catalog if one.accelerator is not None and not one.accelerator.virtual}
    found = [card for card in whole if _WORDS.findall(card.model.lower()) and _named(card, words)]
    sized = [card for card in found if _sizes(words) & _sizes(_WORDS.findall(card.key))]
    return tuple(sorted(card.key for card in sized or found))


def _named(card: Accelerator, words: Collection[str]) -> bool:
    return all(word in words for word in _WORDS.findall(card.model.lower()))


def _sizes(words: Collection[str]) -> set[str]:
    return {found[1] for word in words if (found := _MEMORY.fullmatch(word))}


def renamed_models(asked: Situation) -> Iterator[Change]:
    """For each label by which the pod selects such an accelerator: foreslice.dev/accelerator instead."""
    if not asked.codes & {Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH}:
        return
    for key, values in _selected(asked.pod).items():
        named = {card for value in values for card in accelerators_named(key, value, asked.catalog)}
        if key == labels.ACCELERATOR or key.startswith(OWN_DOMAINS) or not named:
            continue
        wanted = Requirement(labels.ACCELERATOR, "In", tuple(sorted(named)))
        edit = on_pods(asked.keys, partial(_selecting, key=key, wanted=wanted))
        subject = f"pod {asked.pod.key}"
        yield Change.of(
            ChangeKind.REWRITE_LABEL, subject, edit, key=key, was=values, label=wanted.key, accelerators=wanted.values
        )


def _selected(pod: Pod) -> dict[str, tuple[str, ...]]:
    """The values that the pod wants of labels, by key."""
    terms = pod.affinity.terms if pod.affinity else ()
    required = [r for term in terms for r in term.match_expressions if r.operator == "In"]
    return {key: (value,) for key, value in pod.node_selector.items()} | {r.key: tuple(r.values) for r in required}


def _selecting(pod: Pod, key: str, wanted: Requirement) -> Pod:
    """The pod with the requirement in the place of all that it says about the key."""
    terms = pod.affinity.terms if pod.affinity else (NodeSelectorTerm(()),)
    if key not in pod.node_selector:
        terms = tuple(_with(term, key, wanted) for term in terms)
    else:
        terms = tuple(replace(term, match_expressions=(*term.match_expressions, wanted)) for term in terms)
    selector = {name: value for name, value in pod.node_selector.items() if name != key}
    return replace(pod, node_selector=FrozenMap(selector), affinity=NodeSelector(terms))


def _with(term: NodeSelectorTerm, key: str, wanted: Requirement) -> NodeSelectorTerm:
    return replace(term, match_expressions=tuple(wanted if r.key == key else r for r in term.match_expressions))

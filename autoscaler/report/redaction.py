"""Reasons for readers who may not read every pod: without the names of the others.

A reason may name another pod (its devices would make that pod's selector fail), and findings about equal pods name the
first of them. Codes and amounts stay. serve/access.py decides who may read what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Reason, Subject
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap

Readable: TypeAlias = Callable[[str], bool]
"""True if the name (namespace/name) of a pod, claim or gang may be shown."""

# Kinds of namespaced objects in subjects, with the text for one that may not be named.
_UNNAMED = {"pod": "a pod like it", "claim": "its claim", "gang": "its gang", "PodGroup": "its PodGroup"}
# Facts that are names of such objects.
_NAMES = frozenset({"pod", "claim"})


def everything(key: str) -> bool:
    """For readers of all pods."""
    return True


def of_namespace(namespace: str) -> Readable:
    """For readers of the pods of a namespace; "" is all of them."""
    return everything if not namespace else lambda key: key.partition("/")[0] == namespace


def of_pod(pod: Pod) -> Readable:
    """For readers of this pod, and perhaps no other."""
    own = {pod.key, *claim_keys(pod), *([pod.gang.key] if pod.gang else [])}
    return own.__contains__


def redacted(reasons: Iterable[Reason], readable: Readable) -> tuple[Reason, ...]:
    """The same reasons, without the names that are not readable."""
    return tuple(_without_names(reason, readable) for reason in reasons)


def _without_names(reason: Reason, readable: Readable) -> Reason:
    detail = {key: fact for key, fact in reason.detail.items() if key not in _NAMES or _may_show(fact, readable)}
    return Reason(reason.code, _subject(reason.subject, readable), FrozenMap(detail))


def _may_show(fact: object, readable: Readable) -> bool:
    return not isinstance(fact, str) or "/" not in fact or readable(fact)


def _subject(subject: Subject, readable: Readable) -> Subject:
    """ "claim default/other, request gpu" becomes "its claim, request gpu"."""
    hidden = subject.kind in _UNNAMED and "/" in subject.name and not readable(subject.name)
    own = replace(subject, kind=_UNNAMED[subject.kind], name="") if hidden else subject
    return replace(own, part=_subject(own.part, readable)) if own.part else own

"""Required terms of pod affinity that no pod in sight meets, so that no node can."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.labelled_pods import LabelledPods
from instance_catalog.frozen_map import FrozenMap

_NO_LABELS = FrozenMap[str, str]()


def unmet_terms(pods: Iterable[Pod], snapshot: Snapshot) -> tuple[PodAffinityTerm, ...]:
    """The required terms of these pods that no pod of the snapshot meets: neither one that runs, nor one that waits,
    nor one of a DaemonSet."""
    terms = dict.fromkeys(term for pod in pods for term in pod.pod_affinity)
    if not terms:
        return ()
    there = LabelledPods((*snapshot.pods, *(found.pod for found in snapshot.daemon_sets)))
    return tuple(
        term
        for term in terms
        if term.selector is not None
        and not any(_meets(pod, term, term.selector, snapshot) for pod in there.perhaps(term.selector))
    )


def _meets(pod: Pod, term: PodAffinityTerm, selector: LabelSelector, snapshot: Snapshot) -> bool:
    scope = term.namespace_selector
    labels = snapshot.namespaces.get(pod.namespace, _NO_LABELS)
    here = pod.namespace in term.namespaces or (scope is not None and scope.matches(labels))
    return here and not pod.finished and selector.matches(pod.labels)


def wanted_pods(term: PodAffinityTerm) -> str:
    """The pods that a term selects: "pod with app=a in namespace b"."""
    selector = str(term.selector or LabelSelector())
    names = [f"in namespace {' or '.join(term.namespaces)}"] if term.namespaces else []
    if term.namespace_selector is not None:
        scope = str(term.namespace_selector)
        names.append(f"in a namespace with {scope}" if scope else "in any namespace")
    return " ".join(("pod", *([f"with {selector}"] if selector else []), " or ".join(names))).rstrip()

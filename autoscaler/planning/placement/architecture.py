"""Which processor architecture a pod is offered without having asked for one.

kube-scheduler would bind a pod to a node of any architecture, and an image that lacks it would crash there. A pool
that admits arm64 was written by somebody who knows; the implicit pool of `foreslice plan` knows nothing of images.
"""

from __future__ import annotations

from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.kubernetes import labels

ASSUMED: Final = "amd64"


def offered_unasked(candidate: Candidate) -> bool:
    """Whether pods that name no architecture are offered it."""
    return not candidate.pool.implicit or candidate.instance_type.architecture == ASSUMED


def asks_for_architecture(bundle: Bundle) -> bool:
    """Whether every pod names an architecture: by selector, by affinity, or by tolerating the taint that GKE sets."""
    return all(_asks(pod) for pod in bundle.pods)


def _asks(pod: Pod) -> bool:
    terms = pod.affinity.terms if pod.affinity else ()
    keys = {
        *pod.node_selector,
        *(requirement.key for term in terms for requirement in term.match_expressions),
        *(toleration.key for toleration in pod.tolerations),
    }
    return labels.ARCHITECTURE in keys

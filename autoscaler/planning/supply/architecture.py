"""Decides which processor architectures are offered to pods that name none.

kube-scheduler would bind a pod to a node of any architecture, and an image without that architecture would crash there,
also the image of a DaemonSet. A pool that names an architecture, a type or an accelerator was written for it. A pool
without restrictions is no evidence about images.
"""

from __future__ import annotations

from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes import labels

LACKING: Final = "an image that lacks this architecture does not start"
ASSUMED: Final = "amd64"
_NAMING: Final = frozenset({labels.ARCHITECTURE, labels.INSTANCE_TYPE, labels.ACCELERATOR})


def offered_unasked(candidate: Candidate) -> bool:
    """True if the candidate is offered to pods that name no architecture."""
    named = any(r.operator == "In" and r.key in _NAMING for r in candidate.pool.requirements)
    return candidate.instance_type.architecture == ASSUMED or candidate.block is not None or named


def asks_for_architecture(bundle: Bundle) -> bool:
    """True if every pod names an architecture: by selector, by affinity, or by tolerating the taint that GKE sets."""
    return all(_asks(pod) for pod in bundle.pods)


def _asks(pod: Pod) -> bool:
    terms = pod.affinity.terms if pod.affinity else ()
    keys = {
        *pod.node_selector,
        *(requirement.key for term in terms for requirement in term.match_expressions),
        *(toleration.key for toleration in pod.tolerations),
    }
    return labels.ARCHITECTURE in keys


@dataclass(frozen=True, slots=True)
class Unaware:
    """A pod that names no architecture, and the machine of another one that the plan gives it."""

    pod: Pod
    machine: str
    architecture: str

    @property
    def text(self) -> str:
        """The architecture of the machine, and its consequence."""
        return f"{self.machine} is {self.architecture}: {LACKING}"


def unaware(snapshot: Snapshot, plan: Plan) -> Unaware | None:
    """The first such pod."""
    pods = {pod.key: pod for pod in snapshot.pods}
    for node in plan.launches:
        architecture = node.node.labels.get(labels.ARCHITECTURE)
        found = [pods[key] for key in node.pods if key in pods and not _names_architecture(pods[key])]
        if architecture not in (None, ASSUMED) and found:
            return Unaware(found[0], node.offering.instance_type, architecture)
    return None


def _names_architecture(pod: Pod) -> bool:
    terms = pod.affinity.terms if pod.affinity else ()
    keys = {*pod.node_selector, *(r.key for term in terms for r in term.match_expressions)}
    return labels.ARCHITECTURE in keys or labels.INSTANCE_TYPE in keys

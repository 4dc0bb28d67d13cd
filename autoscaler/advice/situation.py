"""The start of a search for changes: the pods without a place, their claims, and the reasons why they were left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from autoscaler.lint.tpu_advice import part_of_slice
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import Considered, LeftOut, Plan, Target
from autoscaler.model.pod import Pod, PodAffinityTerm, WhenUnsatisfiable
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys, uses_channel
from autoscaler.planning.demand.mounted import clouds_of_storage_names, clouds_of_volumes
from autoscaler.planning.demand.scope import asks_for_no_device, pools_of
from autoscaler.planning.policy import Where
from autoscaler.planning.supply.simulated_nodes import wants_simulated_node
from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.facts import gpudirect_protocols
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import EFA
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, cloud_of_name, clouds_of_labels

# Labels that name a group of nodes, of which the nodes of one pool are one.
NAMES_OF_POOLS: Final = frozenset({labels.KARPENTER_NODE_POOL}).union(
    *(facts.pool_labels for facts in cloud_facts().values())
)
_ANYWHERE = Where()
# Labels that Kubernetes makes anew for each copy of a workload, and those of its admission.
_OF_ONE_COPY: Final = (labels.POD_TEMPLATE_HASH, "controller-uid", "controller-revision-hash", "pod-name", "index")
_OF_QUEUES: Final = "kueue.x-k8s.io/"
# YAML reads it as a string without quotes.
_PLAIN_WORD: Final = re.compile(r"(?i)(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9._-]*")
_NUMBER_AT_END: Final = re.compile(r"-?[0-9]+$")


@dataclass(frozen=True)
class Situation:
    """`pods` share one fate: they belong to one workload or gang, or share a claim. The first was asked about."""

    snapshot: Snapshot
    catalog: Catalog
    plan: Plan
    pods: tuple[Pod, ...]
    where: Where = _ANYWHERE

    @staticmethod
    def of(pod: Pod, snapshot: Snapshot, catalog: Catalog, plan: Plan, where: Where = _ANYWHERE) -> Situation | None:
        """The pod with those that are left out like it; None when the plan leaves it nothing to ask for."""
        # A pod that no pool serves does not share the fate of one that found no place: other changes help it.
        # Nor does one that any node runs share that of one that wants a device: no pool takes it in.
        served = {entry.pod for entry in plan.outside if worth_serving(entry)}
        groups = ({entry.pod for entry in plan.left_out}, served, {entry.pod for entry in plan.outside})
        left = next((keys for keys in groups if pod.key in keys), None)
        if left is None:
            return None
        others = (p for p in snapshot.pods if p.key in left and p.key != pod.key and _same_fate(pod, p, snapshot))
        return Situation(snapshot, catalog, plan, (pod, *others), where)

    @cached_property
    def pod(self) -> Pod:
        """The pod that was asked about."""
        return self.pods[0]

    @cached_property
    def subject(self) -> str:
        """The pods that a change edits, as reasons name them."""
        return f"pod {self.pod.key}{f' and {len(self.pods) - 1} more' if len(self.pods) > 1 else ''}"

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(pod.key for pod in self.pods)

    @cached_property
    def left_out(self) -> LeftOut:
        return next(e for e in (*self.plan.left_out, *self.plan.outside) if e.pod == self.pod.key)

    @cached_property
    def considered(self) -> tuple[Considered, ...]:
        """The offerings that were looked at for the pod."""
        return self.considered_in(self.plan)

    def considered_in(self, plan: Plan) -> tuple[Considered, ...]:
        """Those that another plan considered for the pod."""
        return tuple(entry for d in plan.demands if self.pod.key in d.pods for entry in d.considered)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Everything that kept the pod from a place, once each."""
        left = self.left_out
        found = [*left.reasons, *(miss.reason for miss in left.near_misses)]
        return tuple(dict.fromkeys([*found, *(reason for entry in self.considered for reason in entry.reasons)]))

    @cached_property
    def codes(self) -> frozenset[Code]:
        return frozenset(reason.code for reason in self.reasons)

    @cached_property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """The claims of the pod that have no devices yet."""
        found = (self.snapshot.claims.get(key) for key in claim_keys(self.pod))
        return tuple(claim for claim in found if claim is not None and claim.allocation is None)

    @property
    def of_others(self) -> bool:
        """True if no machine is what the pods want: GKE's slice controller has to form their slice, their node is
        simulated, or another pod has their volume (plans with changes leave out pods with a place)."""
        formed = any("formed" in reason.detail for reason in self.left_out.reasons)
        return formed or Code.VOLUME_IN_USE in self.codes or bool(wants_simulated_node(self.pod, self.snapshot))

    @cached_property
    def beside_others(self) -> bool:
        """True if the domain of another pod, which gets a new node, decides where these may run: left out of a plan, it
        would attract and repel nothing. Two pods on different nodes never share a host."""
        new = {placement.pod for placement in self.plan.placements if placement.target is Target.NEW}
        others = [pod for pod in self.snapshot.pods if pod.key in new]
        return any(_is_related(pod, other) for pod in self.pods for other in others)

    @cached_property
    def pools(self) -> tuple[CapacityPool, ...]:
        """The pools that may launch; the implicit one if there is none."""
        return pools_of(self.snapshot)

    @cached_property
    def clouds(self) -> frozenset[str]:
        """The clouds whose machines the pod means, by labels that only those have, volumes that only those mount or
        that their names mean, and images that only run there or are in a registry of that cloud. What is given up of
        them is no reason to look elsewhere."""
        images = {container.image for container in self.pod.containers}
        direct = {
            self.catalog.types[name].cloud
            for protocol in gpudirect_protocols()
            if any(part in image for part in protocol.images for image in images)
            for name in protocol.types
            if name in self.catalog.types
        }
        volumes = clouds_of_volumes(self.pods, self.snapshot) | clouds_of_storage_names(self.pods, self.snapshot)
        return clouds_of_labels(self.pod.selected_labels) | direct | volumes.keys() | self.registries

    @cached_property
    def linked(self) -> bool:
        """True if one of the pods uses an IMEX channel, which only machines with multi-node NVLink have."""
        return any(uses_channel(pod, self.snapshot) for pod in self.pods)

    @cached_property
    def registries(self) -> frozenset[str]:
        """The clouds in whose registries the images of the pod are."""
        return frozenset(cloud_of_name(container.image) for container in self.pod.containers) - {""}

    @cached_property
    def own_label(self) -> tuple[str, str] | None:
        """A label of these pods, if possible of all pods with devices, that no ignored pod without a device has; None
        where there is no such pod, or no such label."""
        ignored = {entry.pod for entry in self.plan.outside} - self.keys
        plain = [pod for pod in self.snapshot.pods if pod.key in ignored and asks_for_no_device(pod)]
        devices = [pod for pod in self.snapshot.pods if not (pod.bound or asks_for_no_device(pod))]
        theirs = {label for pod in plain for label in pod.labels.items()}
        for pods in (devices, self.pods) if plain else ():
            shared = set(self.pod.labels.items()).intersection(*(pod.labels.items() for pod in pods)) - theirs
            own = [(k, v) for k, v in sorted(shared) if not k.endswith(_OF_ONE_COPY) and _PLAIN_WORD.fullmatch(v)]
            if own:
                return min(own, key=lambda label: label[0].startswith(_OF_QUEUES))
        return None

    def like(self, claim: ResourceClaim) -> frozenset[str]:
        """Keys of the claims of these pods that ask for the same: those made from one template change together."""
        return frozenset(_alike(claim, self.pods, self.snapshot))


def workload_of(pod: Pod, snapshot: Snapshot) -> tuple[object, ...]:
    """The same for pods that one change should place: of one workload, or one JobSet, for the same kind of nodes.

    The head of a Ray cluster and its workers have one owner, and no pool has nodes for both. Pods that nothing owns are
    copies if only the number at the end of their names differs.
    """
    owner: object = pod.labels.get(labels.JOBSET_NAME) or pod.owner or _copied(pod, snapshot)
    return (pod.namespace, owner, pod.node_selector, pod.scheduler_name, group_of_its_own(pod, snapshot))


def group_of_gang(pod: Pod, snapshot: Snapshot) -> str:
    """The label of a group of nodes, such as a node pool, that the pod's gang shares; "" for none. A TPU slice of
    several hosts is a group by itself, which no label of a pool makes."""
    gang = snapshot.gangs.get(pod.gang.key) if pod.gang is not None else None
    key = gang.topology_key if gang is not None else None
    return key if key in NAMES_OF_POOLS and not (key == labels.GKE_NODE_POOL and part_of_slice(pod)) else ""


def group_of_its_own(pod: Pod, snapshot: Snapshot) -> str:
    """The gang of a pod that keeps others out of its group of nodes: no pool that is one group serves two of them."""
    key = group_of_gang(pod, snapshot)
    return pod.gang.key if key and pod.gang and any(term.topology_key == key for term in pod.pod_anti_affinity) else ""


def _copied(pod: Pod, snapshot: Snapshot) -> tuple[object, ...]:
    claims = [snapshot.claims.get(key) for key in claim_keys(pod)]
    return (
        _NUMBER_AT_END.sub("", pod.name),
        tuple(container.requests for container in (*pod.containers, *pod.init_containers)),
        tuple(claim and claim.spec_key() for claim in claims),
    )


def _same_fate(pod: Pod, other: Pod, snapshot: Snapshot) -> bool:
    if pod.namespace != other.namespace:
        return False
    if workload_of(pod, snapshot) == workload_of(other, snapshot):
        return True
    if pod.gang is not None and pod.gang == other.gang:
        return True
    return bool(set(claim_keys(pod)) & set(claim_keys(other)))


def _alike(claim: ResourceClaim, pods: Iterable[Pod], snapshot: Snapshot) -> Iterable[str]:
    wanted = claim.spec_key()
    for pod in pods:
        for key in claim_keys(pod):
            found = snapshot.claims.get(key)
            if found is not None and found.allocation is None and found.spec_key() == wanted:
                yield key


def _is_related(pod: Pod, other: Pod) -> bool:
    """True if the pod needs the other in its domain, or one of them must not have the other there."""
    hard = (one for one in pod.topology_spread if one.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE)
    wanted = [term.selector for term in (*pod.pod_affinity, *_of_domains(pod))] + [one.selector for one in hard]
    repelling = [term.selector for term in _of_domains(other)]
    return any(_selects(one, other) for one in wanted) or any(_selects(one, pod) for one in repelling)


def _of_domains(pod: Pod) -> list[PodAffinityTerm]:
    return [term for term in pod.pod_anti_affinity if term.topology_key != labels.HOSTNAME]


def _selects(selector: LabelSelector | None, pod: Pod) -> bool:
    return selector is not None and selector.matches(pod.labels)


def worth_serving(entry: LeftOut) -> bool:
    """True if the pod is left to others and worth a node: it claims devices, or asks for what device plugins hand out.

    No machine with an accelerator is advice for a pod that asks for no device, whichever scheduler it names. Nobody
    wants a network card alone: such a pod has lost its accelerators.
    """
    reasons = {reason.code: reason for reason in entry.reasons}
    if Code.OUT_OF_SCOPE not in reasons:
        return Code.OTHER_SCHEDULER in reasons
    resources = reasons[Code.OUT_OF_SCOPE].detail.get("resources")
    return bool(resources) and resources != (EFA,)

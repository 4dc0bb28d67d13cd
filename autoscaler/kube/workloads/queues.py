"""The additions that Kueue makes to pods when it admits them: node labels and tolerations of the ResourceFlavors of
their queue.

Kueue documentation, "Resource Flavor" and "Cluster Queue" (0.19): the nodeLabels of the flavor that it assigns join the
nodeSelector of the pods, its tolerations their tolerations. Of the flavors of a resource group it takes the first that
does not contradict what the pods select and that has quota. Quota is not counted here.

A workload with a resource that no group covers is not admitted ("resource … unavailable in ClusterQueue",
pkg/scheduler/flavorassigner), unless Kueue's Configuration leaves the resource out (excludeResourcePrefixes) or makes
another one of it (transformations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_pod_toleration
from autoscaler.model.pod import Pod
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Toleration

# The LocalQueue of jobs that name none, in its namespace. Kueue documentation, "Setup a default LocalQueue" (0.19).
DEFAULT_QUEUE: Final = "default"
# The controller of AdmissionChecks that writes a ProvisioningRequest for each workload, with the workload's annotations
# of this prefix as parameters. Kueue documentation, "ProvisioningRequest" admission check (0.19).
_WRITES_REQUESTS: Final = "kueue.x-k8s.io/provisioning-request"
# None of Kueue's annotations, as the name of the queue is none: on pods of a plan, the check of their queue.
_CHECK: Final = f"{labels.PROVREQ_PREFIX}admission-check"
_STEP: Final = "give its LocalQueue, ClusterQueue and ResourceFlavors as well (kubectl get -o yaml)"


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """`node_labels` and `tolerations` are what admitted pods get."""

    name: str
    node_labels: FrozenMap[str, str]
    tolerations: tuple[Toleration, ...]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that one of the flavors, by name and in order of preference, provides."""

    resources: frozenset[str]
    flavors: tuple[str, ...]


@dataclass(slots=True)
class Queues:
    """Kueue's objects: flavors and cluster queues by name, local queues by namespace/name with their cluster queue.
    `checks` are the AdmissionChecks of cluster queues, `served` those that write ProvisioningRequests of a class of
    Foreslice, and `requesting` those that write others; `request_classes` are the classes by ProvisioningRequestConfig.
    `missing` are the queues and flavors of workloads that were not given, `uncovered` the ClusterQueues with resources
    of workloads that no group covers."""

    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    cluster_queues: dict[str, tuple[ResourceGroup, ...]] = field(default_factory=dict)
    local_queues: dict[str, str] = field(default_factory=dict)
    checks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    request_classes: dict[str, str] = field(default_factory=dict)
    served: set[str] = field(default_factory=set)
    requesting: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    uncovered: set[tuple[str, str]] = field(default_factory=set)

    def requested(self, pods: tuple[Pod, ...], name: str, annotations: Mapping[str, str]) -> tuple[Pod, ...]:
        """The pods of one workload with annotations of their queue, and where Kueue asks another autoscaler for their
        machines: those that the workload has, and the check of its queue."""
        if not pods or not name:
            return pods
        cluster_queue = self.local_queues.get(f"{pods[0].namespace}/{name}", "")
        checks = self.checks.get(cluster_queue, ())
        check = next((one for one in checks if one in self.requesting), "")
        ours = not self.served.isdisjoint(checks)
        given = {} if ours else annotations
        found = {key: value for key, value in given.items() if key.startswith(labels.PROVREQ_PREFIX)}
        found |= {labels.KUEUE_QUEUE: name} | ({_CHECK: check} if check else {})
        return tuple(replace(pod, annotations=pod.annotations.with_items(found)) for pod in pods)

    def admitted(self, pods: tuple[Pod, ...], name: str, problems: Problems) -> tuple[Pod, ...]:
        """The pods of one workload as the queue of their namespace lets them start."""
        if not pods or not name:
            return pods
        queue = f"{pods[0].namespace}/{name}"
        cluster_queue = self.local_queues.get(queue, "")
        groups = self.cluster_queues.get(cluster_queue)
        if groups is not None:
            self._tell_of_flavors(pods, name, groups, problems)
            self._tell_of_resources(pods, cluster_queue, groups, problems)
            return tuple(_admitted(pod, groups, self.flavors) for pod in pods)
        if queue not in self.missing and any(pod.asks_for_devices for pod in pods):
            self.missing.add(queue)
            message = (
                f"waits in Kueue's queue {name}, which is not given: the plan takes its pods as admitted, and without "
                "the node labels and tolerations that Kueue adds to them from a ResourceFlavor"
            )
            problems.warn(("metadata", "labels", labels.KUEUE_QUEUE), message, _STEP)
        return pods

    def _tell_of_flavors(
        self, pods: tuple[Pod, ...], name: str, groups: tuple[ResourceGroup, ...], problems: Problems
    ) -> None:
        """Warns of flavors of the queue that were not given: Kueue may assign one of them."""
        absent = sorted({flavor for group in groups for flavor in group.flavors} - self.flavors.keys() - self.missing)
        if absent and any(pod.asks_for_devices for pod in pods):
            self.missing.update(absent)
            message = (
                f"waits in Kueue's queue {name}, of which ResourceFlavor {', '.join(absent)} is not given: the plan "
                "takes its pods as admitted without the node labels and tolerations that Kueue adds from it"
            )
            problems.warn(("metadata", "labels", labels.KUEUE_QUEUE), message, _STEP)

    def _tell_of_resources(
        self, pods: tuple[Pod, ...], cluster_queue: str, groups: tuple[ResourceGroup, ...], problems: Problems
    ) -> None:
        """Warns of resources that no group of the ClusterQueue covers: Kueue does not admit the workload."""
        covered = frozenset[str]().union(*(group.resources for group in groups))
        absent = sorted(
            name
            for name in {name for pod in pods for name in _requested(pod)} - covered
            if (cluster_queue, name) not in self.uncovered
        )
        if absent and any(pod.asks_for_devices for pod in pods):
            self.uncovered.update((cluster_queue, name) for name in absent)
            names = ", ".join(absent)
            message = (
                f"Kueue does not admit it: no resourceGroup of ClusterQueue {cluster_queue} covers {names} (resource "
                f"{absent[0]} unavailable in ClusterQueue); the plan takes its pods as admitted"
            )
            step = (
                f"add {names} to coveredResources of a resourceGroup there, and to the resources of its flavors; "
                "leave it if Kueue's Configuration has the resource in excludeResourcePrefixes or transformations"
            )
            problems.warn(("metadata", "labels", labels.KUEUE_QUEUE), message, step)


def parse_flavor(raw: object, problems: Problems) -> ResourceFlavor:
    """ResourceFlavor, as far as pods get something of it."""
    fields = Fields(raw, problems)
    spec = fields.child("spec")
    tolerations = tuple(parse_pod_toleration(entry)[0] for entry in spec.children("tolerations"))
    return ResourceFlavor(parse_metadata(fields).name, spec.text_map("nodeLabels"), tolerations)


def parse_cluster_queue(raw: object, problems: Problems) -> tuple[str, tuple[ResourceGroup, ...]]:
    """(name, resource groups) of a ClusterQueue; its quota is not counted."""
    fields = Fields(raw, problems)
    groups = tuple(
        ResourceGroup(
            frozenset(group.texts("coveredResources")),
            tuple(flavor.text("name") for flavor in group.children("flavors")),
        )
        for group in fields.child("spec").children("resourceGroups")
    )
    several = any(len(group.flavors) > 1 for group in groups)
    first = ", with the first flavor that does not contradict what they select" if several else ""
    problems.warn((), f"its quota is not counted: the plan takes the pods of its queues as admitted{first}")
    return parse_metadata(fields).name, groups


def parse_checks(raw: object) -> tuple[str, ...]:
    """The AdmissionChecks that a ClusterQueue names: of all flavors (v1beta1) or with a strategy."""
    spec = Fields(raw).child("spec")
    strategy = spec.child("admissionChecksStrategy").children("admissionChecks")
    return (*spec.texts("admissionChecks"), *(check.text("name") for check in strategy))


def writes_requests(raw: object) -> bool:
    """True if the AdmissionCheck is one that writes ProvisioningRequests."""
    return Fields(raw).child("spec").text("controllerName") == _WRITES_REQUESTS


def _admitted(pod: Pod, groups: tuple[ResourceGroup, ...], flavors: dict[str, ResourceFlavor]) -> Pod:
    """The pod as Kueue lets it start: with the first flavor of each group whose resources it asks for."""
    for flavor in _assigned(pod, groups, flavors):
        selector = flavor.node_labels.with_items(pod.node_selector)
        given = pod.flavor_labels.with_items(dict.fromkeys(flavor.node_labels, flavor.name))
        tolerations = (*pod.tolerations, *flavor.tolerations)
        pod = replace(pod, node_selector=selector, tolerations=tolerations, flavor_labels=given)
    return pod


def _assigned(
    pod: Pod, groups: tuple[ResourceGroup, ...], flavors: dict[str, ResourceFlavor]
) -> Iterator[ResourceFlavor]:
    asked = _requested(pod)
    for group in groups:
        # Of claims it depends on Kueue's configuration which resource they count as; one group has to cover them.
        if asked & group.resources or (pod.claims and len(groups) == 1):
            known = [flavors[name] for name in group.flavors if name in flavors]
            yield from [flavor for flavor in known if _agrees(flavor, pod)][:1]


def _requested(pod: Pod) -> frozenset[str]:
    """The resources that its containers request, of which it may be none: Kueue takes 0 as no request."""
    amounts = (found for container in (*pod.containers, *pod.init_containers) for found in container.requests.items())
    return frozenset(name for name, amount in amounts if amount.milli())


def _agrees(flavor: ResourceFlavor, pod: Pod) -> bool:
    """True if a node with the flavor's labels can have what the pod selects."""
    return all(
        any(value in values for values in wanted)
        for key, value in flavor.node_labels.items()
        if (wanted := pod.required_values({key}))
    )

"""One reader per kind: hands an object to its converter and puts the result where it belongs."""

from __future__ import annotations

from autoscaler.kube.autoscalers.karpenter import parse_node_pool
from autoscaler.kube.fields import Fields
from autoscaler.kube.kinds import SnapshotKind
from autoscaler.kube.metadata import header, parse_metadata
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.priority import parse_priority_class
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim_template
from autoscaler.kube.selectors import parse_selection
from autoscaler.kube.storage import (
    ephemeral_volume_claims,
)
from autoscaler.kube.workloads.compute_domain import parse_compute_domain
from autoscaler.kube.workloads.controllers import Expand
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.kube.workloads.gang import parse_workload
from autoscaler.kube.workloads.queues import (
    DEFAULT_QUEUE,
    parse_checks,
    parse_cluster_queue,
    parse_flavor,
    writes_requests,
)
from autoscaler.kube.workloads.requested_capacity import (
    parse_capacity_buffer,
    parse_pod_template_object,
    parse_provisioning_request,
)
from autoscaler.kube.workloads.serving.hardware_profile import tell_of_profile
from autoscaler.kube.workloads.stamping import Expansion, TooManyEmptyPartsError, limited
from autoscaler.manifests.document import Document
from autoscaler.manifests.manifest_set import ManifestSet, Reader
from autoscaler.manifests.names import check_made_names
from autoscaler.manifests.plan_context import parse_plan_context
from autoscaler.model.capacity import NodeTemplateRef
from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import QUEUED_CLASS, RequestClass
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels

_SCALABLE = ("Deployment", "StatefulSet")  # what a CapacityBuffer may refer to
# kube-scheduler spreads the pods of these by default; a Deployment stands for the ReplicaSet that it makes.
_SPREAD = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


def workload(expand: Expand) -> Reader:
    """The reader of a workload that `expand` turns into pods."""

    def read(manifests: ManifestSet, document: Document, problems: Problems) -> None:
        try:
            with limited(manifests.empty_parts):
                found = expand(document.value, problems, origin=document.origin, priorities=manifests.priorities)
        except TooManyEmptyPartsError:
            step = "remove the roles that have 0 replicas, or plan for fewer groups at a time"
            problems.error((), "the files have too many roles without pods, counted in each of their groups", step)
            return
        if not check_made_names((pod.name for pod in found.pods), document.metadata.name, problems):
            return
        _, kind = header(document.value)
        default = "" if kind in _SPREAD else DEFAULT_QUEUE
        tell_of_profile(document.value, found.pods, problems)
        manifests.add(replace(found, pods=_admitted(manifests, document, found.pods, problems, default)))
        if kind in _SPREAD:
            _select(manifests, document, kind)
        if kind in _SCALABLE:
            manifests.scalables.append((kind, document.value))

    return read


def of_snapshot(kind: SnapshotKind) -> Reader:
    """The reader of a kind whose values go into the Snapshot as they are."""

    def read(manifests: ManifestSet, document: Document, problems: Problems) -> None:
        origin = {"origin": document.origin} if kind.origin else {}
        found = kind.parse(document.value, problems, **origin)
        if found is not None:
            manifests.put(kind, found)

    return read


def read_service(manifests: ManifestSet, document: Document, _: Problems) -> None:
    """Service: its pods spread."""
    _select(manifests, document, "Service")


def _select(manifests: ManifestSet, document: Document, kind: str) -> None:
    found = parse_selection(document.value, kind, origin=document.origin)
    if found is not None:
        manifests.selections.append(found)


def read_plan_context(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    context = parse_plan_context(document.value, problems)
    if manifests.contexts and context != manifests.contexts[0]:
        problems.error((), "contradicts an earlier PlanContext", "plan for one set of manifests at a time")
    manifests.contexts.append(context)


def read_priority_class(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """PriorityClass; read before everything that may name one."""
    found = parse_priority_class(document.value, problems)
    manifests.priorities[found.name] = found


def read_pod(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """Pod. One that has finished occupies nothing and asks for nothing."""
    pod = parse_pod(document.value, problems, origin=document.origin, priorities=manifests.priorities)
    if pod.phase in ("Succeeded", "Failed"):
        return
    spec = Fields(document.value).child("spec")
    claims = ephemeral_volume_claims(spec, namespace=pod.namespace, pod_name=pod.name, origin=document.origin)
    pods = (pod,) if pod.bound else _admitted(manifests, document, (pod,), problems)
    manifests.add(Expansion(pods, volume_claims=claims))


def _admitted(
    manifests: ManifestSet, document: Document, pods: tuple[Pod, ...], problems: Problems, default: str = ""
) -> tuple[Pod, ...]:
    """As Kueue lets them start, where the object or its pods name a queue, or their namespace has the one of the name
    `default`."""
    metadata = Fields(document.value).child("metadata")
    own = metadata.child("labels").text(labels.KUEUE_QUEUE)
    queue = own or (pods[0].labels.get(labels.KUEUE_QUEUE, "") if pods else "")
    if pods and default and not queue and f"{pods[0].namespace}/{default}" in manifests.queues.local_queues:
        queue = default
    admitted = manifests.queues.admitted(pods, queue, problems)
    return manifests.queues.requested(admitted, queue, metadata.text_map("annotations"))


def read_resource_flavor(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """ResourceFlavor of Kueue."""
    found = parse_flavor(document.value, problems)
    manifests.queues.flavors[found.name] = found


def read_cluster_queue(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """ClusterQueue of Kueue."""
    name, groups = parse_cluster_queue(document.value, problems)
    manifests.queues.cluster_queues[name] = groups
    manifests.queues.checks[name] = parse_checks(document.value)


def read_request_config(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """ProvisioningRequestConfig of Kueue: whom its requests ask."""
    fields = Fields(document.value, problems)
    manifests.queues.request_classes[document.metadata.name] = fields.child("spec").text("provisioningClassName")


def read_admission_check(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """AdmissionCheck of Kueue: the plan takes the pods as admitted, but may have to say who asks for their machines."""
    problems.warn((), "it is taken as passed: the plan takes every pending pod as admitted")
    if writes_requests(document.value):
        config = Fields(document.value).child("spec").child("parameters").text("name")
        ours = manifests.queues.request_classes.get(config, "") in set(RequestClass)
        (manifests.queues.served if ours else manifests.queues.requesting).add(document.metadata.name)


def read_local_queue(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """LocalQueue of Kueue."""
    fields = Fields(document.value, problems)
    metadata = parse_metadata(fields)
    cluster_queue = fields.child("spec").required("clusterQueue")
    manifests.queues.local_queues[f"{metadata.namespace}/{metadata.name}"] = cluster_queue


def read_resource_claim_template(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    found = parse_resource_claim_template(document.value, problems, origin=document.origin)
    manifests.templates[f"{found.namespace}/{found.name}"] = found


def read_pod_template(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """PodTemplate: pods come of it where a ProvisioningRequest or a CapacityBuffer names it."""
    found = parse_pod_template_object(document.value, problems, origin=document.origin, priorities=manifests.priorities)
    manifests.pod_templates[found.key] = found


def read_provisioning_request(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """ProvisioningRequest: one of our classes stands for pods."""
    found = parse_provisioning_request(document.value, problems, origin=document.origin)
    if found.served is None and found.class_name:
        ours = ", ".join(RequestClass)
        message = f"ignored: class {found.class_name} belongs to another autoscaler; those of Foreslice are {ours}"
        step = (
            "that autoscaler serves it as it is; to see which machines its pods need, plan a copy with "
            f"spec.provisioningClassName: {RequestClass.ATOMIC}"
        )
        if found.class_name == QUEUED_CLASS:
            step += "; its prices are on-demand, and queued provisioning is paid for as flex-start"
        problems.warn(("spec", "provisioningClassName"), message, step)
    manifests.provisioning_requests.append(found)


def read_capacity_buffer(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """CapacityBuffer: one of our strategy stands for pods."""
    found = parse_capacity_buffer(document.value, problems, origin=document.origin)
    if found.strategy != labels.ACTIVE_CAPACITY:
        message = f"ignored: another autoscaler serves this strategy; that of Foreslice is {labels.ACTIVE_CAPACITY}"
        problems.warn(("spec", "provisioningStrategy"), message)
    manifests.capacity_buffers.append(found)


def read_compute_domain(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """ComputeDomain: its channel template, unless the files hold the one that the controller made."""
    found = parse_compute_domain(document.value, problems, origin=document.origin)
    if found is not None:
        manifests.templates.setdefault(f"{found.namespace}/{found.name}", found)


def read_workload(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """Workload of scheduling.k8s.io."""
    manifests.gangs.update(
        (gang.key, gang) for gang in parse_workload(document.value, problems, origin=document.origin)
    )


def read_daemon_set(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    found = parse_daemon_set(document.value, problems, origin=document.origin, priorities=manifests.priorities)
    manifests.daemon_sets.append(found)


def read_node_pool(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """NodePool of Karpenter: a pool of the plan where Foreslice has none of its own in the files."""
    if manifests.pools:
        problems.warn((), "ignored: it belongs to Karpenter, and a plan with CapacityPools launches for these alone")
    elif (found := parse_node_pool(document.value, problems, origin=document.origin)) is not None:
        manifests.node_pools[found.name] = found


def read_overlay(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """InstanceTypeOverlay: the catalog gets those that can be used."""
    from autoscaler.kube.custom.instance_type_overlay import parse_instance_type_overlay

    if parse_instance_type_overlay(document.value, problems) is not None:
        manifests.overlays.append(document)


def read_node_template(manifests: ManifestSet, document: Document, problems: Problems) -> None:
    """A node template: its provider gets it. Those of providers in the cloud are checked by the provider."""
    from autoscaler.kube.custom.aws_node_template import parse_aws_group_node_template, parse_aws_node_template
    from autoscaler.kube.custom.gcp_node_template import nodes_of, parse_gcp_node_template
    from autoscaler.kube.custom.node_template import parse_kwok_node_template, parse_simulated_node_template

    match header(document.value)[1]:
        case "SimulatedNodeTemplate":
            parse_simulated_node_template(document.value, problems)
        case "KwokNodeTemplate":
            parse_kwok_node_template(document.value, problems)
        case "AWSNodeTemplate":
            parse_aws_node_template(document.value, problems)
        case "AWSGroupNodeTemplate":
            parse_aws_group_node_template(document.value, problems)
        case "GCPNodeTemplate":
            spec = parse_gcp_node_template(document.value, problems)
            name = Fields(document.value).child("metadata").text("name")
            manifests.registers[NodeTemplateRef("GCPNodeTemplate", name)] = nodes_of(spec) if spec is not None else ()
    manifests.node_templates.append(document)

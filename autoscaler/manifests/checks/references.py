"""Names in objects that must be names of other objects: claims, templates, classes, volumes and gangs.

The raw objects are walked again, because a message must point at the field in the file, whatever the object was
expanded to. What an API server would only find out later, when a pod stays pending, is found here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, in_shell, left_by_template
from autoscaler.kube.workloads.pod_templates import CONTAINERS, FINISHED, pods_in
from autoscaler.kube.workloads.serving.kserve import model_claims
from autoscaler.kube.workloads.serving.nim import claims_named
from autoscaler.manifests.checks.patches import check_complete
from autoscaler.manifests.checks.uses import GET_SLICES
from autoscaler.manifests.document import Document
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.capacity import KNOWN_SCHEDULERS
from autoscaler.planning.demand.scope import IMPLICIT
from instance_catalog.diagnostic import Diagnostic, Path, Severity
from instance_catalog.drivers.class_hints import class_hints, ended_classes
from instance_catalog.kubernetes import labels as keys
from instance_catalog.spelling import did_you_mean, nearest

_LIKE = 0.75
# What decides where the pod can run: the class of a claim that is not bound, and the volume of one that is.
_WITH_VOLUME: Final = (
    "add it with its StorageClass, of volumeBindingMode WaitForFirstConsumer or of a file system such as EFS, or bound "
    "with its PersistentVolume (`kubectl get pvc,pv,sc -o yaml`): without them the pod's zone is not known"
)
_SLICES: Final = (
    f"; unless its driver is predicted, give also a Node that runs it, with its ResourceSlices ({GET_SLICES})"
)
# Words in the names of templates for the channels of a ComputeDomain.
_OF_DOMAIN: Final = re.compile(r"channel|compute-?domain|imex", re.IGNORECASE)
_HANDLER: Final = "create it, and see that new nodes get its handler as well, which a plan takes for granted"
# RuntimeClasses that an operator creates, with the handler: NVIDIA GPU Operator documentation, "Container Runtimes".
_HANDLERS: Final = {
    "nvidia": "NVIDIA's GPU Operator creates it, and its handler on each new node; without the operator, create both"
}


def check_references(document: Document, manifests: ManifestSet, problems: Problems) -> None:
    """Report every name in the object that leads nowhere.

    A warning where the object is from an API server (it has a uid): what it names may have been deleted, or is yet to
    come. Its pods wait then, as in a cluster, and say for what; the pods of everybody else are planned.
    """
    fields, found = Fields(document.value), Problems()
    metadata = document.metadata
    check_complete(fields, found)
    _check_object(fields, metadata.namespace, manifests, found)
    for problem in found:
        report = problems.warn if metadata.uid or problem.severity is Severity.WARNING else problems.error
        report(problem.path, problem.message, problem.next_step)


def _check_object(fields: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    for pod in pods_in(fields):
        _check_pod(pod, namespace, manifests, problems)
        if not fields.child("metadata").text("uid"):  # an API server that has stored it knows its RuntimeClass
            _check_runtime(pod.child("spec"), manifests, problems)
        if "nodeName" not in pod.child("spec"):  # one that has its node waits for no group
            _check_gang(pod, namespace, manifests, problems)
    match fields.text("kind"):
        case "Pod":
            _check_generated(fields, namespace, manifests, problems)
        case "ProvisioningRequest" | "CapacityBuffer":
            spec = fields.child("spec")
            for holder in (spec, *spec.children("podSets")):
                reference = holder.child("podTemplateRef")
                _check(reference, "name", f"{namespace}/", manifests.pod_templates, problems, what="PodTemplate")
        case "InferenceService" | "LLMInferenceService":
            for path, name in model_claims(fields):
                _check_volume(path, namespace, name, manifests, problems)
        case "NIMService" | "NIMPipeline":
            for path, name in claims_named(fields):
                _check_volume(path, namespace, name, manifests, problems)
        case "ResourceSlice":
            _check_node(fields.child("spec"), manifests, problems)
        case "ResourceClaim":
            _check_classes(fields.child("spec"), manifests, problems)
        case "ResourceClaimTemplate":
            _check_classes(fields.child("spec").child("spec"), manifests, problems)


def check_ray_cluster(document: Document, there: Container[tuple[str, str, str, str]], problems: Problems) -> None:
    """Warn about a RayJob or RayCronJob on a RayCluster that is not among the keys of objects `there`."""
    spec = Fields(document.value).child("spec")
    path = spec if header(document.value)[1] == "RayJob" else spec.child("jobTemplate")
    name = path.child("clusterSelector").text("ray.io/cluster")
    if "clusterSelector" in path and ("ray.io", "RayCluster", document.metadata.namespace, name) not in there:
        called = f" {name}" if name else ""
        step = f"give RayCluster{called} to plan for its pods"
        problems.warn((*path.path, "clusterSelector"), "runs on an existing RayCluster", step)


def _check_gang(pod: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    spec, metadata = pod.child("spec"), pod.child("metadata")
    places = (
        (spec.child("schedulingGroup"), "podGroupName"),
        (metadata.child("labels"), keys.COSCHEDULING_POD_GROUP),
        (metadata.child("annotations"), keys.VOLCANO_POD_GROUP),
        (metadata.child("annotations"), keys.VOLCANO_POD_GROUP_NEW),
        (metadata.child("annotations"), keys.KAI_POD_GROUP),
    )
    found = Problems()
    for fields, name in places:
        _check(fields, name, f"{namespace}/", manifests.gangs, found, what="PodGroup")
    reference = spec.child("workloadRef")
    prefix = f"{namespace}/{reference.text('name')}/"
    _check(reference, "podGroup", prefix, manifests.gangs, found, what="pod group in that Workload")
    scheduler = spec.text("schedulerName") or KNOWN_SCHEDULERS[0]
    own = scheduler not in KNOWN_SCHEDULERS  # it may need no more than the name
    for problem in found:
        if scheduler in _schedulers(manifests):
            more = f"; if {scheduler} needs no such object, write one for the plan alone" if own else ""
            problems.error(problem.path, problem.message, f"{problem.next_step}{more}")
        else:  # nothing is planned for the pod
            left = (
                f"leave it if {scheduler} needs no such object, until a pool serves its pods: a plan of them needs it"
            )
            step = f"{problem.next_step}; {left}"
            problems.warn(problem.path, f"{problem.message} in the files", step)


def _schedulers(manifests: ManifestSet) -> set[str]:
    """Those whose pods a plan is for."""
    pools = (*manifests.pools.values(), *manifests.node_pools.values()) or (IMPLICIT,)
    return {name for pool in pools for name in pool.scope.schedulers}


def _check_pod(pod: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    spec, entries = pod.child("spec"), set()
    generated = {entry.text("name") for entry in pod.child("status").children("resourceClaimStatuses")}
    for entry in spec.children("resourceClaims"):
        entries.add(entry.text("name"))
        _check(entry, "resourceClaimName", f"{namespace}/", manifests.claims, problems, what="ResourceClaim")
        if entry.text("name") not in generated:
            name = "resourceClaimTemplateName"
            _check(entry, name, f"{namespace}/", manifests.templates, problems, what="ResourceClaimTemplate")
    for part in CONTAINERS:
        for container in spec.children(part):
            for claim in container.child("resources").children("claims"):
                name = claim.text("name")
                if name not in entries:
                    step = did_you_mean(name, entries, "add it to the pod's spec.resourceClaims")
                    message = f"the pod has no resource claim {name!r}"
                    problems.error((*claim.path, "name"), message, step)
    for volume in spec.children("volumes"):
        claim = volume.child("persistentVolumeClaim")
        _check_volume((*claim.path, "claimName"), namespace, claim.text("claimName"), manifests, problems)


def _check_node(spec: Fields, manifests: ManifestSet, problems: Problems) -> None:
    """Warn about the first slice of each node that is not in the files."""
    name = spec.text("nodeName")
    if name and name not in manifests.nodes and name not in manifests.absent_nodes:
        manifests.absent_nodes.add(name)
        message = f"Node {name} is not in the files, so no pod gets devices of it"
        problems.warn((*spec.path, "nodeName"), message, "give it, too: `kubectl get nodes,resourceslices -o yaml`")


def _check_runtime(spec: Fields, manifests: ManifestSet, problems: Problems) -> None:
    """Warn about a RuntimeClass that is not in the files, once for each."""
    name = spec.text("runtimeClassName")
    if name and name not in manifests.runtime_classes:
        manifests.runtime_classes.add(name)
        message = (
            f"there is no RuntimeClass {name!r} in the files: the API server refuses the pod without it, and it starts "
            "only on nodes whose container runtime has the class's handler"
        )
        problems.warn((*spec.path, "runtimeClassName"), message, _HANDLERS.get(name, _HANDLER))


def _check_volume(path: Path, namespace: str, name: str, manifests: ManifestSet, problems: Problems) -> None:
    if name and f"{namespace}/{name}" not in manifests.volume_claims:
        no_volume(path, name, problems)


def no_volume(path: Path, name: str, problems: Problems) -> None:
    """Warn about a PersistentVolumeClaim that is not in the files."""
    step = left_by_template(name) or _WITH_VOLUME
    problems.warn(path, f"there is no PersistentVolumeClaim {name!r} in the files", step)


def _check_generated(fields: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    """Claims that a cluster has generated for a pod must come with it: they may be allocated."""
    if fields.child("status").raw("phase") in FINISHED:
        return
    for entry in fields.child("status").children("resourceClaimStatuses"):
        _check(entry, "resourceClaimName", f"{namespace}/", manifests.claims, problems, what="ResourceClaim")


def _check_classes(spec: Fields, manifests: ManifestSet, problems: Problems) -> None:
    """Report the DeviceClasses that are not there; one warning for all that nothing shows to be misspelt."""
    unknown: dict[str, Diagnostic] = {}
    for request in spec.child("devices").children("requests"):
        for holder in (request, request.child("exactly"), *request.children("firstAvailable")):
            _check(holder, "deviceClassName", "", manifests.classes, found := Problems(), what="DeviceClass")
            for problem in found:
                if problem.severity is Severity.WARNING:
                    unknown.setdefault(holder.text("deviceClassName"), problem)
                else:
                    problems.error(problem.path, problem.message, problem.next_step)
    if unknown:
        first, names = next(iter(unknown.values())), list(unknown)
        listed = " and ".join(map(repr, names))
        message = f"there are no DeviceClasses {listed} in the files" if names[1:] else first.message
        hints = [class_hints()[name] for name in names if name in class_hints()]
        others = [name for name in names if name not in class_hints()]
        problems.warn(first.path, message, "; ".join([_add("DeviceClass", others, "")] * bool(others) + hints))


def _add(what: str, names: Sequence[str], prefix: str) -> str:
    """How to get objects that are not in the files; `prefix` begins with their namespace, if they have one."""
    if " " in what:  # a part of another object
        return f"add the {what} to the files, or correct the name"
    space = prefix.partition("/")[0]
    where = f" -n {in_shell(space)}" if space not in ("", "default") else ""
    command = f"kubectl get {what.lower()} {' '.join(map(in_shell, names))}{where} -o yaml"
    more = _SLICES if what == "DeviceClass" else ""
    if what == "ResourceClaimTemplate" and any(map(_OF_DOMAIN.search, names)):
        more = "; a ComputeDomain with it in spec.channel.resourceClaimTemplate makes it: that is enough"
    it, name = (f"the {what}es", "names") if names[1:] else (f"the {what}", "name")
    return f"add {it} to the files (`{command}`), or correct the {name}{more}"


def _alike(written: str, known: str) -> bool:
    """True if one class may be a misspelling of another: those of one vendor resemble each other anyway, so what comes
    before the domain must be the same, or the domain."""
    first, _, domain = written.partition(".")
    other, _, of = known.partition(".")
    return first == other or (domain == of and bool(nearest(first, [other], equivalence_key=_LIKE)))


def _check(fields: Fields, name: str, prefix: str, known: Collection[str], problems: Problems, *, what: str) -> None:
    value = fields.raw(name)
    if isinstance(value, str) and value and f"{prefix}{value}" not in known:
        missing((*fields.path, name), value, prefix, known, problems, what=what)


def missing(path: Path, value: str, prefix: str, known: Collection[str], problems: Problems, *, what: str) -> None:
    """Report a name that nothing in the files has, with what it may mean; `prefix` begins with its namespace."""
    here = [key.removeprefix(prefix) for key in known if key.startswith(prefix)]
    step = did_you_mean(value, [one for one in here if _alike(value, one)] if what == "DeviceClass" else here)
    elsewhere = [key for key in known if prefix and key.endswith(f"/{value}")]
    if elsewhere and not step:
        step = f"{elsewhere[0]} exists in another namespace; a pod uses those of its own"
    left = left_by_template(value)
    if what == "DeviceClass":
        step = class_hints().get(value, step)
        if not left and value not in ended_classes() and (not step or value in class_hints()):
            # Nothing shows that the name is wrong: the plan tells what else stands in the way.
            problems.warn(path, f"there is no DeviceClass {value!r} in the files", step or _add(what, [value], prefix))
            return
    step = left or step or _add(what, [value], prefix)
    problems.error(path, f"there is no {what} {value!r}", step)

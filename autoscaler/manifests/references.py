"""Names in objects that must be names of other objects: claims, templates, classes, volumes and gangs.

The raw objects are walked again, because a message must point at the field in the file, whatever the object was
expanded to. What an API server would only find out later, when a pod stays pending, is found here.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, left_by_template
from autoscaler.kube.workloads.selector import selector_to_add
from autoscaler.kube.workloads.training import TRAINING_JOBS
from autoscaler.manifests.document import Document
from autoscaler.manifests.manifest_set import ManifestSet
from instance_catalog.diagnostic import Path, Severity
from instance_catalog.drivers.facts import class_hints
from instance_catalog.kubernetes import labels as keys
from instance_catalog.spelling import did_you_mean, nearest

_LIKE = 0.75
_FINISHED = ("Succeeded", "Failed")


def check_references(document: Document, manifests: ManifestSet, problems: Problems) -> None:
    """Report every name in the object that leads nowhere.

    A warning where the object is from an API server (it has a uid): what it names may have been deleted, or is yet to
    come. Its pods wait then, as in a cluster, and say for what; the pods of everybody else are planned.
    """
    fields, found = Fields(document.value), Problems()
    metadata = document.metadata
    _check_object(fields, metadata.namespace, manifests, found)
    for problem in found:
        report = problems.warn if metadata.uid or problem.severity is Severity.WARNING else problems.error
        report(problem.path, problem.message, problem.next_step)


def _check_object(fields: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    _check_complete(fields, problems)
    for pod in pods_in(fields):
        _check_pod(pod, namespace, manifests, problems)
        _check_gang(pod, namespace, manifests, problems)
    match fields.text("kind"):
        case "Pod":
            _check_generated(fields, namespace, manifests, problems)
        case "ProvisioningRequest" | "CapacityBuffer":
            spec = fields.child("spec")
            for holder in (spec, *spec.children("podSets")):
                reference = holder.child("podTemplateRef")
                _check(reference, "name", f"{namespace}/", manifests.pod_templates, problems, what="PodTemplate")
        case "ResourceClaim":
            _check_classes(fields.child("spec"), manifests, problems)
        case "ResourceClaimTemplate":
            _check_classes(fields.child("spec").child("spec"), manifests, problems)


def _check_complete(fields: Fields, problems: Problems) -> None:
    """A patch of Kustomize has the kind of what it changes, and a template of Spark or Argo that of a pod. Either lacks
    the image of a container, or both the selector and the labels of its pods: it is planned with a warning. Labels and
    images without a selector are a whole object, of a version that set the selector by itself."""
    patch = False
    for pod in pods_in(fields):
        spec = pod.child("spec")
        if "containers" not in spec:
            return  # an error already
        names = [container.text("name") for container in spec.children("containers") if not container.text("image")]
        if names:
            patch = True
            _looks_like_a_patch((*spec.path, "containers"), f"container {names[0]} has no image", problems)
    if patch or not (selector := selector_to_add(fields, fields.text("kind"))):
        return
    if fields.child("spec").child("template").child("metadata").text_map("labels"):
        step = f"add `{selector}` below spec"
        problems.error(("spec", "selector"), "is required: the API server refuses the workload without it", step)
    else:
        _looks_like_a_patch(("spec",), "its pods have no labels, and it has no selector", problems)


def _looks_like_a_patch(path: Path, lacks: str, problems: Problems) -> None:
    message = (
        f"{lacks}, so the API server refuses it: this looks like a patch, or a template "
        "that a tool completes; it is planned as it is, and what it lacks is not known"
    )
    step = "give what `kubectl kustomize DIR` renders, or the pods that the tool makes (`kubectl get pods -o yaml`)"
    problems.warn(path, message, step)


def check_ray_cluster(document: Document, there: Container[tuple[str, str, str, str]], problems: Problems) -> None:
    """Warn about a RayJob or RayCronJob on a RayCluster that is not among the keys of objects `there`."""
    spec = Fields(document.value).child("spec")
    path = spec if header(document.value)[1] == "RayJob" else spec.child("jobTemplate")
    name = path.child("clusterSelector").text("ray.io/cluster")
    if "clusterSelector" in path and ("ray.io", "RayCluster", document.metadata.namespace, name) not in there:
        called = f" {name}" if name else ""
        step = f"give RayCluster{called} to plan for its pods"
        problems.warn((*path.path, "clusterSelector"), "runs on a RayCluster that is there", step)


def check_use(document: Document, manifests: ManifestSet, problems: Problems) -> None:
    """Warn about a claim that waits for devices while no pod waits for it: nothing is planned for it."""
    if header(document.value)[1] != "ResourceClaim":
        return
    metadata = document.metadata
    claim = manifests.claims.get(f"{metadata.namespace}/{metadata.name}")
    if claim is None or claim.allocation is not None or claim.key in manifests.used_claims():
        return
    problems.warn((), "no pod uses this claim, so nothing is planned for it", "add the pod that names it")


def pods_in(fields: Fields) -> Iterator[Fields]:
    """The pods and pod templates inside an object of any kind, with their paths."""
    spec = fields.child("spec")
    match fields.text("kind"):
        case "Pod" if fields.child("status").raw("phase") not in _FINISHED:
            yield fields
        case "PodTemplate":
            yield fields.child("template")
        case "CronJob":
            yield spec.child("jobTemplate").child("spec").child("template")
        case "JobSet":
            for entry in spec.children("replicatedJobs"):
                yield entry.child("template").child("spec").child("template")
        case "LeaderWorkerSet":
            for name in ("leaderTemplate", "workerTemplate"):
                yield spec.child("leaderWorkerTemplate").child(name)
        case "RayCluster":
            yield from _ray_pods(spec)
        case "RayJob":
            yield spec.child("submitterPodTemplate")
            yield from _ray_pods(spec.child("rayClusterSpec"))
        case "RayService":
            yield from _ray_pods(spec.child("rayClusterConfig"))
        case kind if kind in TRAINING_JOBS:
            replicas = spec.child(TRAINING_JOBS[kind])
            for name in replicas.names():
                yield replicas.child(name).child("template")
        case "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet" | "DaemonSet" | "Job":
            yield spec.child("template")


def _ray_pods(spec: Fields) -> Iterator[Fields]:
    for group in (spec.child("headGroupSpec"), *spec.children("workerGroupSpecs")):
        yield group.child("template")


def _check_gang(pod: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    spec, metadata = pod.child("spec"), pod.child("metadata")
    places = (
        (spec.child("schedulingGroup"), "podGroupName"),
        (metadata.child("labels"), keys.COSCHEDULING_POD_GROUP),
        (metadata.child("annotations"), keys.VOLCANO_POD_GROUP),
        (metadata.child("annotations"), keys.VOLCANO_POD_GROUP_NEW),
        (metadata.child("annotations"), keys.KAI_POD_GROUP),
    )
    for fields, name in places:
        _check(fields, name, f"{namespace}/", manifests.gangs, problems, what="PodGroup")
    reference = spec.child("workloadRef")
    prefix = f"{namespace}/{reference.text('name')}/"
    _check(reference, "podGroup", prefix, manifests.gangs, problems, what="pod group in that Workload")


def _check_pod(pod: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    spec, entries = pod.child("spec"), set()
    generated = {entry.text("name") for entry in pod.child("status").children("resourceClaimStatuses")}
    for entry in spec.children("resourceClaims"):
        entries.add(entry.text("name"))
        _check(entry, "resourceClaimName", f"{namespace}/", manifests.claims, problems, what="ResourceClaim")
        if entry.text("name") not in generated:
            name = "resourceClaimTemplateName"
            _check(entry, name, f"{namespace}/", manifests.templates, problems, what="ResourceClaimTemplate")
    for part in ("initContainers", "containers"):
        for container in spec.children(part):
            for claim in container.child("resources").children("claims"):
                name = claim.text("name")
                if name not in entries:
                    step = did_you_mean(name, entries, "add it to the pod's spec.resourceClaims")
                    message = f"the pod has no resource claim {name!r}"
                    problems.error((*claim.path, "name"), message, step)
    for volume in spec.children("volumes"):
        claim = volume.child("persistentVolumeClaim")
        name = claim.text("claimName")
        if name and f"{namespace}/{name}" not in manifests.volume_claims:
            step = left_by_template(name) or "add it, or the pod's zone cannot be known"
            problems.warn((*claim.path, "claimName"), f"there is no PersistentVolumeClaim {name!r} in the files", step)


def _check_generated(fields: Fields, namespace: str, manifests: ManifestSet, problems: Problems) -> None:
    """Claims that a cluster has generated for a pod must come with it: they may be allocated."""
    if fields.child("status").raw("phase") in _FINISHED:
        return
    for entry in fields.child("status").children("resourceClaimStatuses"):
        _check(entry, "resourceClaimName", f"{namespace}/", manifests.claims, problems, what="ResourceClaim")


def _check_classes(spec: Fields, manifests: ManifestSet, problems: Problems) -> None:
    for request in spec.child("devices").children("requests"):
        for holder in (request, request.child("exactly"), *request.children("firstAvailable")):
            _check(holder, "deviceClassName", "", manifests.classes, problems, what="DeviceClass")


def _alike(written: str, known: str) -> bool:
    """Whether one class may be a misspelling of another: those of one vendor resemble each other anyway, so what comes
    before the domain must be the same, or the domain."""
    first, _, domain = written.partition(".")
    other, _, of = known.partition(".")
    return first == other or (domain == of and bool(nearest(first, [other], equivalence_key=_LIKE)))


def _check(fields: Fields, name: str, prefix: str, known: Collection[str], problems: Problems, *, what: str) -> None:
    value = fields.raw(name)
    if not isinstance(value, str) or not value or f"{prefix}{value}" in known:
        return
    here = [key.removeprefix(prefix) for key in known if key.startswith(prefix)]
    step = did_you_mean(value, [one for one in here if _alike(value, one)] if what == "DeviceClass" else here)
    elsewhere = [key for key in known if prefix and key.endswith(f"/{value}")]
    if elsewhere and not step:
        step = f"{elsewhere[0]} exists in another namespace; a pod uses those of its own"
    if what == "DeviceClass":
        step = class_hints().get(value, step)
    step = step or f"add the {what} to the files, or correct the name"
    problems.error((*fields.path, name), f"there is no {what} {value!r}", step)

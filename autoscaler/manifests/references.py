"""Names in objects that must be names of other objects: claims, templates, classes, volumes and gangs.

The raw objects are walked again, because a message must point at the field in the file, whatever the object was
expanded to. What an API server would only find out later, when a pod stays pending, is found here.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Container, Iterator, Sequence
from functools import cached_property
from typing import Final

from autoscaler.cel.program import demands_of
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, left_by_template, render_overlay
from autoscaler.kube.workloads.kserve import model_claims
from autoscaler.kube.workloads.selector import selector_to_add
from autoscaler.kube.workloads.training import TRAINING_JOBS
from autoscaler.manifests.document import Document
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Diagnostic, Path, Severity
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import class_hints, driver_facts
from instance_catalog.kubernetes import labels as keys
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import did_you_mean, nearest

_LIKE = 0.75
# The fields whose problems a patch has only because it is read as a whole object.
_OF_OBJECT: Final = (("metadata", "name"), ("apiVersion",))
_ANY_NAME: Final = "*"  # a patch with a target needs no name of its own
# By which a pod says which machine it needs.
_CHOOSING: Final = ("nodeSelector", "affinity", "nodeName", "resourceClaims")
_NO_RUNTIME: Final = "its model has neither modelFormat nor runtime"
# Workloads whose pods are all of spec.template: those of Kubernetes, OpenKruise, Argo, Kubeflow and Agones.
_OF_ONE_TEMPLATE: Final = frozenset(
    {
        *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"),
        *("CloneSet", "GameServer", "Notebook", "Rollout"),
    }
)
# What decides where the pod can run: the class of a claim that is not bound, and the volume of one that is.
_WITH_VOLUME: Final = (
    "add it with its StorageClass, or bound with its PersistentVolume (`kubectl get pvc,pv,sc -o yaml`): without them "
    "the pod's zone is not known"
)
_GET_SLICES: Final = "`kubectl get nodes,resourceslices -o yaml`"
_SLICES: Final = (
    f"; unless its driver is predicted, give also a Node that runs it, with its ResourceSlices ({_GET_SLICES})"
)
_HANDLER: Final = "create it, and see that new nodes get its handler as well, which a plan takes for granted"
# RuntimeClasses that an operator creates, with the handler: NVIDIA GPU Operator documentation, "Container Runtimes".
_HANDLERS: Final = {
    "nvidia": "NVIDIA's GPU Operator creates it, and its handler on each new node; without the operator, create both"
}
_FINISHED = ("Succeeded", "Failed")
_CONTAINERS: Final = ("initContainers", "containers")


def check_references(document: Document, manifests: ManifestSet, problems: Problems) -> None:
    """Report every name in the object that leads nowhere.

    A warning where the object is from an API server (it has a uid): what it names may have been deleted, or is yet to
    come. Its pods wait then, as in a cluster, and say for what; the pods of everybody else are planned.
    """
    fields, found = Fields(document.value), Problems()
    metadata = document.metadata
    _check_complete(fields, found, document.file)
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
        case "ResourceSlice":
            _check_node(fields.child("spec"), manifests, problems)
        case "ResourceClaim":
            _check_classes(fields.child("spec"), manifests, problems)
        case "ResourceClaimTemplate":
            _check_classes(fields.child("spec").child("spec"), manifests, problems)


def lacking(fields: Fields) -> tuple[Path, str] | None:
    """The field that an object lacks, and its name, if only a patch of Kustomize may lack it, or a template that a tool
    such as Spark or Argo completes: the image of a container, both the selector and the labels of its pods, or what
    chooses the runtime of an InferenceService (pkg/controller/v1beta1/inferenceservice/components/predictor.go of
    kserve v0.20)."""
    predictor = _predictor(fields)
    model = predictor.child("model")
    if "model" in predictor and "modelFormat" not in model and "runtime" not in model:
        return (*predictor.path, "model"), _NO_RUNTIME
    for pod in pods_in(fields):
        spec = pod.child("spec")
        names = [container.text("name") for container in spec.children("containers") if not container.text("image")]
        if names:
            return (*spec.path, "containers"), f"container {names[0]} has no image"
        if "containers" not in spec:
            return None  # an error already
    labels = fields.child("spec").child("template").child("metadata").text_map("labels")
    if labels or not selector_to_add(fields, fields.text("kind")):
        return None
    return ("spec",), "its pods have no labels, and it has no selector"


def patch(fields: Fields, problems: Problems, file: str) -> Diagnostic | None:
    """The message for a patch, instead of errors of its name or version, because a patch is neither renamed nor
    converted. None for other objects, whose name has to be filled in, and for pods, which people write."""
    name = fields.child("metadata").text("name")
    lacks = lacking(fields)
    signs = [lacks[1]] if lacks else []
    if name == _ANY_NAME:
        signs.insert(0, f"its name is {name!r}")
        said = "is a patch of Kustomize, and no whole object"
    else:
        wrong = [one for one in problems if one.path in _OF_OBJECT and one.severity is Severity.ERROR]
        if not signs or not wrong or left_by_template(name) or fields.text("kind") == "Pod":
            return None
        signs += [one.message for one in wrong]
        said = "looks like a patch of Kustomize, and no whole object"
    return Diagnostic(f"{said}: {', and '.join(signs)}", _rendered(file), ("metadata", "name"))


def half(fields: Fields, file: str) -> Diagnostic | None:
    """The message for a patch whose pods ask for devices and do not say which: the object that it changes, or another
    patch, may name them, so the cheapest machine would be a guess. None for pods, for DaemonSets, for which nothing is
    bought, and for objects that name a machine or claim devices."""
    lacks = lacking(fields)
    if lacks is None or fields.text("kind") in ("Pod", "DaemonSet"):
        return None
    specs = [pod.child("spec") for pod in pods_in(fields)] or [_predictor(fields)]
    found = [(spec, name) for spec in specs for name in _devices(spec)]
    if not found or any(name in spec for spec, _ in found for name in _CHOOSING):
        return None
    said = (
        f"looks like a patch of Kustomize, or a template that a tool completes: {lacks[1]}, so {_without(lacks[1])}. "
        f"It asks for {found[0][1]}, and which one its program needs is in what it changes, or in another file of its "
        "kustomization: nothing is planned for it"
    )
    return Diagnostic(said, f"{_rendered(file)}; --skip-unknown plans for the rest of the files", lacks[0])


def _rendered(file: str) -> str:
    return f"give what Kustomize makes of it: {render_overlay(file)}"


def _without(lacks: str) -> str:
    """The effect if an object lacks this."""
    return "KServe finds no runtime for it" if lacks == _NO_RUNTIME else "the API server refuses it"


def _predictor(fields: Fields) -> Fields:
    """Of an InferenceService of KServe, with the fields of a pod's spec; empty for every other object."""
    group = fields.text("apiVersion").partition("/")[0]
    return fields.child("spec").child("predictor") if group == "serving.kserve.io" else Fields({})


def _devices(spec: Fields) -> Iterator[str]:
    """The extended resources of the containers of a pod, or of the model server of a predictor."""
    for container in (spec.child("model"), *(one for part in _CONTAINERS for one in spec.children(part))):
        for amounts in ("limits", "requests"):
            yield from (name for name in container.child("resources").child(amounts).names() if "/" in name)


def _check_complete(fields: Fields, problems: Problems, file: str) -> None:
    """An object that looks like a patch is planned with a warning. Labels and images without a selector are a whole
    object, of a version that set the selector by itself."""
    if found := lacking(fields):
        path, lacks = found
        message = (
            f"{lacks}, so {_without(lacks)}: this looks like a patch of Kustomize, or a template that a tool "
            "completes, and what it lacks is not known"
        )
        problems.warn(path, message, f"{_rendered(file)}, or the pods that the tool makes (`kubectl get pods -o yaml`)")
    elif all("containers" in pod.child("spec") for pod in pods_in(fields)) and (
        selector := selector_to_add(fields, fields.text("kind"))
    ):
        step = f"add `{selector}` below spec"
        problems.error(("spec", "selector"), "is required: the API server refuses the workload without it", step)


def check_ray_cluster(document: Document, there: Container[tuple[str, str, str, str]], problems: Problems) -> None:
    """Warn about a RayJob or RayCronJob on a RayCluster that is not among the keys of objects `there`."""
    spec = Fields(document.value).child("spec")
    path = spec if header(document.value)[1] == "RayJob" else spec.child("jobTemplate")
    name = path.child("clusterSelector").text("ray.io/cluster")
    if "clusterSelector" in path and ("ray.io", "RayCluster", document.metadata.namespace, name) not in there:
        called = f" {name}" if name else ""
        step = f"give RayCluster{called} to plan for its pods"
        problems.warn((*path.path, "clusterSelector"), "runs on an existing RayCluster", step)


@dataclass(frozen=True)
class Uses:
    """The claims and templates that something in the files names, and the drivers of which a plan knows devices."""

    manifests: ManifestSet
    profile: KubernetesProfile
    read: Sequence[object]  # documents of every kind: a workload that is suspended, or unknown, names templates, too
    described: Sequence[CustomDriver]  # by the catalog's files
    planned: bool  # or only checked: templates alone are a whole input then

    @cached_property
    def claims(self) -> frozenset[str]:
        return frozenset(self.manifests.used_claims())

    @cached_property
    def templates(self) -> frozenset[str]:
        """Names alone: the namespace of what an unknown controller makes is not known."""
        return frozenset(name for one in self.read if isinstance(one, Document) for name in _templates_named(one.value))

    @cached_property
    def drivers(self) -> frozenset[str]:
        shipped = {facts.driver for facts in driver_facts().values()}
        given = (*(one.driver for one in self.described), *(one.driver for one in self.manifests.slices))
        return frozenset(shipped.union(given))

    def unknown_driver(self, claim: ResourceClaim) -> tuple[str, str]:
        """The first DeviceClass of the claim that selects devices of an unknown driver, and the driver; or nothing."""
        for request in claim.exact_requests:
            found = self.manifests.classes.get(request.device_class)
            for selector in (*request.selectors, *(found.selectors if found else ())):
                for demand in demands_of(selector.expression or "true", self.profile):
                    if demand.path[0] == "driver" and demand.wanted not in self.drivers:
                        return request.device_class, demand.wanted
        return "", ""


def _templates_named(value: object) -> Iterator[str]:
    """The values of all fields resourceClaimTemplateName inside a value."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, dict):
            name = found.get("resourceClaimTemplateName")
            yield from (name,) if isinstance(name, str) else ()
            stack += found.values()
        elif isinstance(found, list):
            stack += found


def check_use(document: Document, uses: Uses, problems: Problems) -> None:
    """Warn about a claim that waits for devices, or a template, that no pod uses: nothing is planned for it. A template
    of an API server waits for pods that its workload makes later."""
    metadata, kind = document.metadata, header(document.value)[1]
    key, manifests = f"{metadata.namespace}/{metadata.name}", uses.manifests
    if kind == "ResourceClaim":
        claim = manifests.claims.get(key)
        if claim is None or claim.allocation is not None or key in uses.claims:
            return
    elif uses.planned and kind == "ResourceClaimTemplate" and not metadata.uid and key in manifests.templates:
        claim = manifests.templates[key].spec
        if metadata.name in uses.templates:
            return
    else:
        return
    message = f"no pod uses this {'claim' if kind == 'ResourceClaim' else 'template'}, so nothing is planned for it"
    step = "add the pod that names it"
    device_class, driver = uses.unknown_driver(claim)
    if driver:
        message += f"; DeviceClass {device_class} selects devices of driver {driver}, which Foreslice does not predict"
        step += f", and the ResourceSlices of nodes that run the driver ({_GET_SLICES}): no new node has its devices"
    problems.warn((), message, step)


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
        case "HyperPodPyTorchJob":
            for entry in spec.children("replicaSpecs"):
                yield entry.child("template")
        case "ModelServing":
            for entry in spec.child("template").children("roles"):
                yield from (entry.child(name) for name in ("entryTemplate", "workerTemplate") if name in entry)
        case "Fleet":
            yield spec.child("template").child("spec").child("template")
        case kind if kind in _OF_ONE_TEMPLATE or (kind == "Service" and "template" in spec):  # the latter of Knative
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
    for part in _CONTAINERS:
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
        step = left_by_template(name) or _WITH_VOLUME
        problems.warn(path, f"there is no PersistentVolumeClaim {name!r} in the files", step)


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


def _add(what: str, name: str, prefix: str) -> str:
    """How to get an object that is not in the files; `prefix` begins with its namespace, if it has one."""
    if " " in what:  # a part of another object
        return f"add the {what} to the files, or correct the name"
    space = prefix.partition("/")[0]
    where = f" -n {shlex.quote(space)}" if space not in ("", "default") else ""
    command = f"kubectl get {what.lower()} {shlex.quote(name)}{where} -o yaml"
    more = _SLICES if what == "DeviceClass" else ""
    return f"add the {what} to the files (`{command}`), or correct the name{more}"


def _alike(written: str, known: str) -> bool:
    """True if one class may be a misspelling of another: those of one vendor resemble each other anyway, so what comes
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
    left = left_by_template(value)
    if what == "DeviceClass" and not (left or step):
        # Nothing shows that the name is wrong: the plan tells what else stands in the way.
        problems.warn(
            (*fields.path, name), f"there is no DeviceClass {value!r} in the files", _add(what, value, prefix)
        )
        return
    step = left or step or _add(what, value, prefix)
    problems.error((*fields.path, name), f"there is no {what} {value!r}", step)

"""ProvisioningRequests of Google's class for workloads in files: what GKE's autoscaler serves in pools that it owns.

One request for each workload, or for the pods of a gang: it gets all of its machines or none. The pod templates are
those of the files. What such a request cannot say is an error. Sources: documentation of GKE, flex-start
with queued provisioning; cluster-autoscaler/apis, provisioningrequest autoscaling.x-k8s.io/v1 (2026-08).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.workloads.pod_templates import pods_in
from autoscaler.manifests.document import Document
from autoscaler.manifests.kinds import KINDS
from autoscaler.manifests.load import Loaded
from autoscaler.manifests.names import refused_name
from autoscaler.manifests.queued.templates import alike, templates_of
from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import QUEUED_CLASS, consumed_request
from autoscaler.planning.demand.mounted import clouds_of_volumes
from instance_catalog.dataclass import dataclass, field
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes import labels

LONGEST: Final = timedelta(days=7)  # GKE's default as well
# The run of a machine begins before its pods do: it boots, installs drivers and pulls images.
STARTING: Final = timedelta(minutes=30)
_MOST_POD_SETS: Final = 32
_LONGEST_NAME: Final = 59  # of a request, so that "-NN" and "-" fit into the name of its PodTemplates
_REQUEST: Final = "ProvisioningRequest"
_TEMPLATE: Final = "PodTemplate"
_DURATION: Final = "maxRunDurationSeconds"
# Kinds whose pods run once, as the machines of a request do.
_KINDS: Final = ("Pod", "Job", "JobSet")
_OTHER_WORKLOADS: Final = frozenset(kind.name for kind in KINDS if kind.expands) - {*_KINDS}


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request, and what belongs to it. `namespace` is "" where its workloads name none: kubectl puts all of them into
    the same one then. `workloads` are the objects whose pods need `annotations`; `seconds` is how long its machines
    run, None where not all pods say it or a Job starts them one after another. `kueue`: Kueue admits some of them."""

    namespace: str
    name: str
    templates: tuple[Mapping[str, Any], ...]
    counts: tuple[int, ...]
    workloads: tuple[str, ...]
    seconds: int | None = None
    kueue: bool = False

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of its pods, with which they use its machines and nothing else starts machines for them."""
        return {labels.CONSUME_PROVISIONING_REQUEST: self.name, labels.PROVISIONING_CLASS_NAME: QUEUED_CLASS}

    @property
    def template_names(self) -> list[str]:
        """Those of its PodTemplates, in order."""
        many = len(self.counts) > 1
        return [f"{self.name}-{index}" if many else self.name for index in range(len(self.counts))]

    def documents(self) -> list[dict[str, Any]]:
        """The PodTemplates, and then the request that names them."""
        names = self.template_names
        made: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": _TEMPLATE, "metadata": self._metadata(name), "template": dict(template)}
            for name, template in zip(names, self.templates, strict=True)
        ]
        spec: dict[str, Any] = {"provisioningClassName": QUEUED_CLASS}
        if self.seconds is not None:
            spec["parameters"] = {_DURATION: str(self.seconds)}
        spec["podSets"] = [
            {"count": count, "podTemplateRef": {"name": name}} for name, count in zip(names, self.counts, strict=True)
        ]
        request = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": _REQUEST}
        return [*made, {**request, "metadata": self._metadata(self.name), "spec": spec}]

    def names(self) -> Iterator[tuple[str, str]]:
        """(kind, name) of every object that is written."""
        yield from ((_TEMPLATE, name) for name in self.template_names)
        yield _REQUEST, self.name

    def _metadata(self, name: str) -> dict[str, str]:
        return {"name": name, **({"namespace": self.namespace} if self.namespace else {})}


@dataclass(slots=True)
class _Part:
    """The workloads of one request, in the making."""

    documents: list[Document] = field(default_factory=list)
    sets: list[tuple[dict[str, Any], list[Pod]]] = field(default_factory=list)

    def add(self, template: dict[str, Any], pods: Sequence[Pod]) -> None:
        for known, counted in self.sets:
            if alike(known, template):
                counted.extend(pods)
                return
        self.sets.append((template, list(pods)))


def queued_requests(
    loaded: Loaded, name: str = "", *, cloud: str
) -> tuple[tuple[QueuedRequest, ...], tuple[Diagnostic, ...]]:
    """The requests for everything in the files that makes pods, in their order, and what cannot be requested.

    `name` is that of the request, where there is one; otherwise each has the name of its gang or workload. `cloud` is
    where its machines are.
    """
    problems = list(_named(name))
    parts: dict[tuple[str, str, str], _Part] = {}
    for document in loaded.documents:
        kind = header(document.value)[1]
        if kind in _OTHER_WORKLOADS:
            problems.append(document.located(_not_requested(kind)))
        elif kind in _KINDS:
            found = list(_objections(document))
            pods = _pods_of(document, kind, loaded.snapshot.pods)
            found += _no_pods(document, kind, pods)
            problems += (document.located(one) for one in found)
            if not found:
                part = parts.setdefault(_key(document, pods), _Part())
                part.documents.append(document)
                for template, stamped in _pod_sets(document, kind, pods):
                    part.add(template, stamped)
    made: list[QueuedRequest] = []
    for (*_, known_as), part in parts.items():
        problems += (part.documents[0].located(one) for one in (*_whole(part), *_mounted(part, loaded, cloud)))
        request = _request(part, name or known_as)
        problems += (part.documents[0].located(one) for one in _twice(request, made))
        problems += exist_already((request,), _in_files(loaded), "the files")
        made.append(request)
    return tuple(made), tuple(problems)


def _named(name: str) -> Iterator[Diagnostic]:
    """The errors of a name that a user has chosen; those of objects are checked where they are read."""
    if not name:
        return
    found = refused_name(name)
    if found is None and len(name) > _LONGEST_NAME:
        longest = f"a request has {_LONGEST_NAME} here, so that its PodTemplates can be numbered"
        found = f"has {len(name)} characters; {longest}", "choose a shorter name"
    if found is not None:
        yield Diagnostic(*found, subject=f"--name {name}")


def exist_already(
    requests: Sequence[QueuedRequest], existing: Collection[tuple[str, str, str]], where: str
) -> Iterator[Diagnostic]:
    """Objects of these requests that `existing` has, as (kind, namespace, name): they would be replaced, and what uses
    them already would ask for the machines of other pods."""
    for request in requests:
        for kind, name in request.names():
            found = {there for known, there, called in existing if (known, called) == (kind, name)}
            if any(_same(there, request.namespace) for there in found):
                why = ": it is used once" if kind == _REQUEST else ", and other requests may name it"
                step = f"give another name, --name {request.name}-2 for example, or remove it if nothing uses it"
                yield Diagnostic(f"{kind} {name} is in {where} already{why}", step, subject=request.workloads[0])


def _same(one: str, other: str) -> bool:
    """True if two namespaces may be one: "" is that of kubectl --namespace, or its default."""
    return one == other or not (one and other)


def _in_files(loaded: Loaded) -> frozenset[tuple[str, str, str]]:
    made = [(header(one.value)[1], one) for one in loaded.documents]
    return frozenset((kind, _namespace(one), one.metadata.name) for kind, one in made if kind in (_REQUEST, _TEMPLATE))


def _namespace(document: Document) -> str:
    """That of the object, "" where it names none: metadata has the default of the API there."""
    return Fields(document.value).child("metadata").text("namespace")


def _twice(request: QueuedRequest, made: Sequence[QueuedRequest]) -> Iterator[Diagnostic]:
    """Names that an earlier request has: of two objects of one name the later would replace the earlier."""
    others = [other for other in made if _same(other.namespace, request.namespace)]
    step = "give one workload at a time, each with a --name of its own"
    if any(other.name == request.name for other in others):
        yield Diagnostic(f"there would be two ProvisioningRequests {request.name}", step)
        return
    taken = {name for other in others for name in other.template_names}
    if twice := sorted(taken & set(request.template_names)):
        yield Diagnostic(f"there would be two PodTemplates {twice[0]}", step)


def _not_requested(kind: str) -> Diagnostic:
    if kind == "LeaderWorkerSet":
        step = (
            "use a node pool that Foreslice sizes, or one with flex-start and without queued provisioning (docs/gcp.md)"
        )
        message = (
            "no request is written for a LeaderWorkerSet: it makes its pods anew when one fails and when the machines "
            "end, after 7 days at the latest, and each time they need capacity that a request gives once"
        )
        return Diagnostic(message, step)
    step = f"request capacity for one of {', '.join(_KINDS)}, or let Kueue write the request (docs/kueue.md)"
    return Diagnostic(f"no request is written for a {kind}: its machines serve pods that run once", step)


def _no_pods(document: Document, kind: str, pods: Sequence[Pod]) -> Iterator[Diagnostic]:
    if kind == "Pod" and document.metadata.controller is not None:
        owner = document.metadata.controller.kind
        step = f"give the {owner} instead of its pods: its template is what the request and the annotations belong to"
        yield Diagnostic(f"the pod was made by a {owner}, which makes others in its place", step)
    elif not pods:
        step = "give a workload that starts pods: not suspended, not finished, and without the pods that it has made"
        yield Diagnostic("there are no pods to request capacity for", step)


def _pods_of(document: Document, kind: str, pods: Sequence[Pod]) -> list[Pod]:
    key = f"{document.metadata.namespace}/{document.metadata.name}"
    if kind == "Pod":
        return [pod for pod in pods if pod.key == key and not pod.finished]
    return [pod for pod in pods if pod.origin.owner == f"{kind} {key}"]


def _key(document: Document, pods: Sequence[Pod]) -> tuple[str, str, str]:
    """The key that distinguishes requests: pods of one gang start together, whatever objects make them."""
    gangs = {pod.gang for pod in pods}
    only = next(iter(gangs))
    if len(gangs) == 1 and only is not None:
        return "gang", only.namespace, only.name.replace("/", "-")
    return header(document.value)[1], document.metadata.namespace, document.metadata.name


def _pod_sets(document: Document, kind: str, pods: Sequence[Pod]) -> Iterator[tuple[dict[str, Any], list[Pod]]]:
    """The pod templates of a workload, each with its pods. Templates without pods are left out."""
    spec = Fields(document.value).child("spec")
    match kind:
        case "JobSet":
            for entry, template in zip(spec.children("replicatedJobs"), templates_of(document), strict=True):
                name = entry.text("name")
                yield from _stamped(template, [p for p in pods if p.labels.get(labels.JOBSET_REPLICATED_JOB) == name])
        case _:
            yield from _stamped(templates_of(document)[0], pods)


def _stamped(template: dict[str, Any], pods: Sequence[Pod]) -> Iterator[tuple[dict[str, Any], list[Pod]]]:
    if pods:
        yield template, list(pods)


def _objections(document: Document) -> Iterator[Diagnostic]:
    """The properties of the pods that no PodTemplate of a request can express."""
    for pod in pods_in(Fields(document.value)):
        spec = pod.child("spec")
        if spec.text("nodeName"):
            step = "take nodeName away: the machines of a request are new ones"
            yield Diagnostic(f"the pod is on node {spec.text('nodeName')} already", step, path=(*spec.path, "nodeName"))
        for entry in spec.children("resourceClaims"):
            if not entry.text("resourceClaimTemplateName"):
                shared = entry.text("resourceClaimName") or entry.text("name")
                step = "use a ResourceClaimTemplate, or a node pool that Foreslice sizes (docs/gcp.md)"
                message = f"claim {shared} is shared: a request makes pods of a template, each with claims of its own"
                yield Diagnostic(message, step, path=entry.path)


def _whole(part: _Part) -> Iterator[Diagnostic]:
    """The errors of a request as a whole."""
    pods = [pod for _, pods in part.sets for pod in pods]
    named = sorted({consumed_request(pod) for pod in pods} - {""})
    if named:
        step = "use that one, or take the annotation away"
        yield Diagnostic(f"the pods use ProvisioningRequest {', '.join(named)} already", step)
    pools = sorted({pool for pod in pods for pool in _node_pools(pod)})
    if len(pools) > 1:
        step = "write a request for each: give their pods as workloads of their own, outside of one gang"
        message = f"the pods select several node pools ({', '.join(pools)}), and a request is served by one"
        yield Diagnostic(message, step)
    if len(part.sets) > _MOST_POD_SETS:
        step = f"use at most {_MOST_POD_SETS} different pod templates"
        yield Diagnostic(f"a request has at most {_MOST_POD_SETS} pod sets, and this one {len(part.sets)}", step)
    longest = max((pod.expected_seconds or 0 for pod in pods), default=0)
    if longest > (LONGEST - STARTING).total_seconds():
        step = f"correct {labels.EXPECTED_DURATION}, or save the work and split it into shorter runs"
        minutes = int(STARTING.total_seconds() // 60)
        limit = f"Google ends the machines after 7 days, {minutes} minutes for starting included"
        yield Diagnostic(f"pods run for {timedelta(seconds=longest)}, and {limit}", step)


def _mounted(part: _Part, loaded: Loaded, here: str) -> Iterator[Diagnostic]:
    """Volumes that no machine of this cloud mounts: the request's machines would be paid for, and pods would wait."""
    pods = [pod for _, pods in part.sets for pod in pods]
    for cloud, (pod, driver) in clouds_of_volumes(pods, loaded.snapshot).items():
        if cloud != here:
            step = "use a volume that Google Cloud's machines mount (pd.csi.storage.gke.io, for example)"
            yield Diagnostic(f"pod {pod} mounts a volume that only machines of {cloud} can mount ({driver})", step)


def _node_pools(pod: Pod) -> Iterator[str]:
    if labels.GKE_NODE_POOL in pod.node_selector:
        yield pod.node_selector[labels.GKE_NODE_POOL]
    for term in pod.affinity.terms if pod.affinity and len(pod.affinity.terms) == 1 else ():
        required = (one for one in term.match_expressions if one.key == labels.GKE_NODE_POOL and one.operator == "In")
        yield from (value for one in required if len(one.values) == 1 for value in one.values)


def _in_turns(document: Document) -> bool:
    """True if a Job starts pods in the place of those that succeed, so that its machines run longer than one pod."""
    spec = Fields(document.value).child("spec")
    jobs = [spec]
    if header(document.value)[1] == "JobSet":
        jobs = [entry.child("template").child("spec") for entry in spec.children("replicatedJobs")]
    return any(job.integer("completions", 1) > job.integer("parallelism", 1) for job in jobs if "completions" in job)


def _admitted_by_kueue(document: Document) -> bool:
    return labels.KUEUE_QUEUE in Fields(document.value).child("metadata").child("labels").names()


def _request(part: _Part, name: str) -> QueuedRequest:
    lasts = [pod.expected_seconds for _, pods in part.sets for pod in pods]
    known = [seconds for seconds in lasts if seconds is not None]
    seconds = None
    if len(known) == len(lasts) and not any(map(_in_turns, part.documents)):
        seconds = max(known) + int(STARTING.total_seconds())
    return QueuedRequest(
        _namespace(part.documents[0]),
        name[:_LONGEST_NAME].rstrip("-."),
        tuple(template for template, _ in part.sets),
        tuple(len(pods) for _, pods in part.sets),
        tuple(document.name for document in part.documents),
        seconds,
        any(map(_admitted_by_kueue, part.documents)),
    )

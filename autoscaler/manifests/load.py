"""The way from paths to a Snapshot, in order: texts, documents, kinds, models, generated objects, references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TextIO

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.pod_templates import pods_in
from autoscaler.manifests.assemble import assemble, complete
from autoscaler.manifests.checks.misplaced import check_misplaced
from autoscaler.manifests.checks.patches import half, lacking, patch
from autoscaler.manifests.checks.planned import by_place, check_affinity, check_planned
from autoscaler.manifests.checks.references import check_ray_cluster, check_references
from autoscaler.manifests.checks.uses import Uses, check_use
from autoscaler.manifests.classify import NO_INFLUENCE, classify, in_right_case
from autoscaler.manifests.document import Document
from autoscaler.manifests.documents import EmptyList, read_documents
from autoscaler.manifests.foreign.asked import devices_in
from autoscaler.manifests.kinds import KINDS, Kind
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.manifests.merged import merged
from autoscaler.manifests.names import check_names
from autoscaler.manifests.plan_context import PlanContext
from autoscaler.manifests.removed import Parameters, parameters_of, warn_of_betas
from autoscaler.manifests.selectors import check_selectors
from autoscaler.manifests.skipping import without_offers
from autoscaler.manifests.sources import read_sources
from autoscaler.manifests.unfilled.arguments import warn_of_arguments
from autoscaler.manifests.unfilled.images import warn_of_images
from autoscaler.manifests.unfilled.variables import grouped
from autoscaler.manifests.workflows.templates import with_workflow_templates
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.unmet_affinity import unmet_terms
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.kubernetes.profile import KubernetesProfile

_ORDER = {kind: position for position, kind in enumerate(KINDS)}
# Pods of all files together, with those that workloads make. Kubernetes supports as many in a cluster
# (kubernetes.io/docs/setup/best-practices/cluster-large, 2026-11-27).
MOST_PODS: Final = 150_000
# Claims that pods of all files together name: two for each of so many pods.
MOST_CLAIMS: Final = 300_000
_NOTHING: Final = Diagnostic(
    "no Kubernetes objects found", "give manifests of pods, or workloads that make pods, and the claims they use"
)
# Namespaced kinds by which pods of other namespaces are decided.
_OF_OTHERS: Final = frozenset({"CSIStorageCapacity", "LocalQueue"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """`snapshot` may only be planned for when `ok`. `documents` are all objects that were read, in the files' order.

    `overlays` (InstanceTypeOverlay) and `node_templates` are read by other packages. `skipped` names
    the objects that stop a plan without --skip-unknown: they may make pods. `refused` are documents that are not read,
    with an error; `templates` names ignored objects that ask for devices.
    """

    snapshot: Snapshot
    problems: tuple[Diagnostic, ...]
    context: PlanContext
    documents: tuple[Document, ...] = ()
    overlays: tuple[Document, ...] = ()
    node_templates: tuple[Document, ...] = ()
    skipped: tuple[str, ...] = ()
    refused: tuple[Document, ...] = ()
    templates: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The problems that forbid a plan."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def harmless(self) -> tuple[Diagnostic, ...]:
        """Those that only say that an object is ignored because it has no influence: together they are one line."""
        return tuple(problem for problem in self.problems if problem.message == NO_INFLUENCE)

    @property
    def error_text(self) -> str:
        """The problems that forbid a plan, for a terminal."""
        return "\n".join(problem.block for problem in self.errors)

    @property
    def incomplete(self) -> int:
        """The number of objects that look like a patch, or like a template that a tool completes."""
        return sum(lacking(Fields(document.value)) is not None for document in self.documents)

    @property
    def suspended(self) -> int:
        """The number of objects that have no pods as long as they are suspended as a whole."""
        return sum(
            problem.severity is Severity.WARNING
            and problem.path[-1:] == ("suspend",)
            and all(isinstance(part, str) for part in problem.path)  # no group of a RayCluster
            for problem in self.problems
        )

    @property
    def ok(self) -> bool:
        """True if nothing forbids a plan."""
        return not self.errors


@dataclass(frozen=True, slots=True)
class _Object:
    """A document of a known kind, with what is wrong with it."""

    document: Document
    kind: Kind
    problems: Problems

    @property
    def key(self) -> tuple[str, str, str, str]:
        """(group, kind, namespace, name)."""
        namespace = self.document.metadata.namespace if self.kind.namespaced else ""
        return self.kind.group, self.kind.name, namespace, self.document.metadata.name


@dataclass(frozen=True, slots=True)
class _Skipped:
    """An object that stops a plan without --skip-unknown."""

    name: str


@dataclass(frozen=True, slots=True)
class _Template:
    """An ignored object that asks for devices, for pods that another object or a controller makes of it."""

    name: str


@dataclass(frozen=True, slots=True)
class _Refused:
    """A document that is not read, with an error of its kind, its version, or as a patch."""

    document: Document


def load(
    paths: Sequence[str],
    *,
    stdin: TextIO | None = None,
    profile: KubernetesProfile | None = None,
    strict: bool = False,
    drivers: Iterable[CustomDriver] = (),
    skip_unknown: bool = False,
    planned: bool = True,
) -> Loaded:
    """Everything the files say, as a Snapshot, and everything that is wrong with them.

    `paths` are files, directories, or "-" for `stdin`. `profile` overrides the Kubernetes version of a PlanContext in
    the files, whose feature gates count in any case. With `strict`, unknown fields are errors. `drivers` are those that
    the catalog describes, whose DeviceClasses are there as well. With `skip_unknown`, kinds that nobody knows are
    warnings. Unless they are `planned` for, templates without pods are no problem, and equal warnings are several.
    Never raises for what is in files.
    """
    read = with_workflow_templates(merged(_documents(paths, stdin)))
    classified = list(_classified(read, skip_unknown=skip_unknown))
    objects = [found for found in classified if isinstance(found, _Object)]
    problems = _of_kinds(classified, objects)
    manifests = ManifestSet(runtime_classes=set(_runtime_classes(read)))
    used = _interpret(objects, manifests)
    context = manifests.contexts[0] if manifests.contexts else PlanContext()
    complete(manifests, decided := context.profile_over(profile), drivers := tuple(drivers))
    # Where something could not be read, it may be what a name leads to.
    named = used if all(problem.severity is not Severity.ERROR for problem in problems) else set()
    documents = [found.document for found in objects]
    problems += (*warn_of_betas(documents), *warn_of_images(documents), *warn_of_arguments(documents))
    snapshot, uses = assemble(manifests, decided), Uses(manifests, decided, read, drivers, planned)
    for found in objects:
        _check_rules(found, objects, decided)
    _check_names([one for one in objects if one.key in named], uses, snapshot)
    problems += (one.document.located(problem, strict=strict) for one in objects for problem in one.problems)
    if not objects and not problems and not any(isinstance(one, EmptyList) for one in read):
        problems.append(replace(_NOTHING, file=", ".join(paths)))
    return Loaded(
        snapshot=snapshot,
        problems=_in_order(problems, documents, joined=planned),
        context=context,
        documents=tuple(documents),
        overlays=tuple(manifests.overlays),
        node_templates=tuple(manifests.node_templates),
        skipped=tuple(found.name for found in classified if isinstance(found, _Skipped)),
        refused=tuple(found.document for found in classified if isinstance(found, _Refused)),
        templates=tuple(found.name for found in classified if isinstance(found, _Template)),
    )


def _of_kinds(classified: Sequence[object], objects: Sequence[_Object]) -> list[Diagnostic]:
    """What is wrong with documents that are not read; nothing is offered to plan for the rest where nothing is left."""
    problems = [found for found in classified if isinstance(found, Diagnostic)]
    planned = any(found.kind.expands or found.kind.name == "Pod" for found in objects)
    return problems if planned else list(without_offers(problems))


def _in_order(problems: Sequence[Diagnostic], documents: Sequence[Document], *, joined: bool) -> tuple[Diagnostic, ...]:
    """By file and line, each once: a template that is read for two purposes has each of its mistakes twice. `joined`:
    equal warnings of several objects are one."""
    once = dict.fromkeys(sorted(problems, key=lambda problem: (problem.file, problem.line)))
    found = grouped(list(once), documents)
    return tuple(_alike(found) if joined else found)


def _alike(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Warnings about the same value of a field are one, with the number of the other objects that have it."""
    groups: dict[object, list[Diagnostic]] = {}
    for index, one in enumerate(problems):
        alike = one.severity is Severity.WARNING and one.path and not one.others
        key = (one.file, one.message, one.next_step, one.path[-1]) if alike else index
        groups.setdefault(key, []).append(one)
    for first, *rest in groups.values():
        yield replace(first, others=len({one.subject for one in rest} - {first.subject})) if rest else first


def _documents(paths: Sequence[str], stdin: TextIO | None) -> list[Document | EmptyList | Diagnostic]:
    """Everything in the files, in their order; of too many pods nothing but that."""
    found: list[Document | EmptyList | Diagnostic] = []
    pods = 0
    for source in read_sources(paths, stdin):
        for one in [source] if isinstance(source, Diagnostic) else read_documents(source):
            found.append(one)
            pods += isinstance(one, Document) and header(one.value)[1] == "Pod"
            if pods > MOST_PODS:
                return [replace(_too_many_pods(), file=source.file)]
    return found


def _runtime_classes(read: Sequence[Document | EmptyList | Diagnostic]) -> Iterator[str]:
    """The names of RuntimeClasses, which are not read otherwise."""
    documents = (one for one in read if isinstance(one, Document))
    return (one.metadata.name for one in documents if header(one.value)[1] == "RuntimeClass")


def _too_many_pods() -> Diagnostic:
    step = "plan for fewer at a time: pods that wait, and the nodes they could use"
    return Diagnostic(f"more than {MOST_PODS:,} pods: Kubernetes supports no more in a cluster", step)


def _classified(
    read: Sequence[Document | EmptyList | Diagnostic], *, skip_unknown: bool
) -> Iterator[_Object | _Skipped | _Refused | _Template | Diagnostic]:
    """All objects of known kinds; problems for everything else."""
    parameters = parameters_of(document.value for document in read if isinstance(document, Document))
    for found in read:
        if isinstance(found, Diagnostic):
            yield found
        elif isinstance(found, Document):
            problems = Problems()
            document = in_right_case(found, problems)
            kind = classify(document, problems, parameters, skip=skip_unknown)
            if document.creator and kind is not None and (not kind.namespaced or kind.name in _OF_OTHERS):
                yield document.located(_of_all(document.creator))
                continue
            if kind is not None:
                check_names(document.value, kind.name, pods_in(Fields(document.value)), problems)
            if problems.errors and (instead := patch(Fields(document.value), problems)):
                yield document.located(instead)
            elif kind is not None and not problems.errors and (patched := half(Fields(document.value))):
                if skip_unknown:
                    yield _Skipped(document.name)
                    patched = replace(patched, severity=Severity.WARNING)
                else:
                    yield _Refused(document)
                yield document.located(patched)
            elif kind is None:
                yield from (document.located(problem) for problem in problems)
                if problems.errors:
                    yield _Refused(document)
                elif skip_unknown and _is_refused(document, parameters):
                    yield _Skipped(document.name)
                elif any(devices_in(document.value)):
                    yield _Template(document.name)
            else:
                yield _Object(document, kind, problems)


def _of_all(creator: str) -> Diagnostic:
    """A node, pool, class, quota or PlanContext decides on the pods of everybody; who may create a Workflow or an
    AppWrapper often may not do so."""
    article = "an" if creator[0] in "AEIOU" else "a"
    message = f"is not planned with: {article} {creator} creates it, and it decides on the pods of the whole cluster"
    return Diagnostic(message, "to plan with it, give it as an object of its own", severity=Severity.WARNING)


def _is_refused(document: Document, parameters: Parameters) -> bool:
    """True if a plan without --skip-unknown stops at the document."""
    refusing = Problems()
    classify(document, refusing, parameters)
    return refusing.errors


def _interpret(objects: Sequence[_Object], manifests: ManifestSet) -> set[tuple[str, str, str, str]]:
    """Read every object, in the order of the table of kinds, and return the keys of those that were used.

    A workload is not expanded where the files hold what its controller has made of it.
    """
    used: set[tuple[str, str, str, str]] = set()
    counted = _Counted()
    first: dict[tuple[str, str, str, str], _Object] = {}
    controllers = {_controller_key(found) for found in objects}
    for found in sorted(objects, key=lambda one: _ORDER.get(one.kind, len(_ORDER))):
        # Gangs of all APIs share one namespace of names in the model.
        key = ("", *found.key[1:]) if found.kind.name == "PodGroup" else found.key
        earlier = first.setdefault(key, found)
        if earlier is not found and found.document.metadata.name and earlier.document.value == found.document.value:
            found.problems.warn((), f"the same object is in {earlier.document.origin}; it counts once")
        elif earlier is not found and found.document.metadata.name:
            place = earlier.document.origin
            found.problems.error(("metadata", "name"), f"is already defined at {place}", "remove one of the two")
        elif not (found.kind.expands and found.key in controllers):
            found.kind.read(manifests, found.document, found.problems)
            used.add(found.key)
            if (most := _too_much(manifests, counted)) is not None:
                found.problems.error((), most.message, most.next_step)
                break
    return used


@dataclass(slots=True)
class _Counted:
    """The pods that were counted, and the claims that they name."""

    pods: int = 0
    claims: int = 0


def _too_much(manifests: ManifestSet, counted: _Counted) -> Diagnostic | None:
    """The error if the objects that were read have too many pods, or pods with too many claims."""
    if len(manifests.pods) > MOST_PODS:
        return _too_many_pods()
    fresh = islice(reversed(manifests.pods.values()), len(manifests.pods) - counted.pods)
    counted.claims += sum(len(pod.claims) for pod in fresh)
    counted.pods = len(manifests.pods)
    if counted.claims <= MOST_CLAIMS:
        return None
    step = "plan for fewer pods at a time, or make one claim with several requests"
    return Diagnostic(f"the pods of all files have more than {MOST_CLAIMS:,} claims", step)


def _controller_key(found: _Object) -> tuple[str, str, str, str] | None:
    metadata = found.document.metadata
    owner = metadata.controller
    if owner is None:
        return None
    return owner.api_version.rpartition("/")[0], owner.kind, metadata.namespace, owner.name


def _check_names(objects: Iterable[_Object], uses: Uses, snapshot: Snapshot) -> None:
    waiting = by_place(snapshot.pods)
    unmet = frozenset(unmet_terms((pod for pods in waiting.values() for pod in pods), snapshot))
    for found in objects:
        check_references(found.document, uses.manifests, found.problems)
        check_planned(found.document, waiting, uses.manifests, snapshot.claims, found.problems)
        check_affinity(found.document, waiting, unmet, found.problems)
        check_misplaced(found.document, waiting, found.problems)
        check_use(found.document, uses, found.problems)


def _check_rules(found: _Object, objects: Sequence[_Object], profile: KubernetesProfile) -> None:
    """Check an object by itself, whether or not the others could be read."""
    _check_gates(found, profile)
    check_selectors(found.document, profile, found.problems)
    if found.kind.name in ("RayJob", "RayCronJob"):
        check_ray_cluster(found.document, {one.key for one in objects}, found.problems)


def _check_gates(found: _Object, profile: KubernetesProfile) -> None:
    """Gangs of scheduling.k8s.io exist only behind gates; without them an API server has never heard of the object."""
    if found.kind.group != "scheduling.k8s.io" or found.kind.name == "PriorityClass":
        return
    if not (profile.gates.generic_workload and profile.gates.gang_scheduling):
        message = f"needs the feature gates GenericWorkload and GangScheduling, which are off in {profile.name}"
        step = "if your cluster has them, say so in spec.featureGates of a PlanContext (foreslice.dev/v1alpha1)"
        found.problems.error(("kind",), message, step)
    if found.kind.name == "PodGroup" and not profile.gates.workload_resource_claims:
        spec = Fields(found.document.value).child("spec")
        if "resourceClaims" in spec:
            message = f"needs the feature gate DRAWorkloadResourceClaims, which is off in {profile.name}"
            step = "every pod gets claims of its own now; if your cluster has the gate, say so in a PlanContext"
            found.problems.warn(("spec", "resourceClaims"), message, step)

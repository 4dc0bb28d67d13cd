"""What the pods of a plan refer to and the files lack, told at the object that makes them, whatever its kind: claims,
templates and volumes of controllers whose fields no other check knows, and the pods of a required pod affinity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems, in_shell
from autoscaler.manifests.checks.references import missing, no_volume
from autoscaler.manifests.document import Document, Json
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.planning.demand.unmet_affinity import wanted_pods
from instance_catalog.diagnostic import Path, Severity

Planned: TypeAlias = Mapping[tuple[str, int], tuple[Pod, ...]]


def by_place(pods: Iterable[Pod]) -> Planned:
    """The pods that wait for a node, by file and line of the object that makes them."""
    found: dict[tuple[str, int], list[Pod]] = {}
    for pod in pods:
        if not pod.bound and not pod.finished:
            found.setdefault((pod.origin.path, pod.origin.line), []).append(pod)
    return {place: tuple(of_it) for place, of_it in found.items()}


def check_planned(
    document: Document, planned: Planned, manifests: ManifestSet, claims: Collection[str], problems: Problems
) -> None:
    """Report what the object's pods name and nothing in the files is, unless another check told it. `claims` are the
    keys of all claims, with those that are generated for pods."""
    pods = planned.get((document.file, document.line), ())
    if not pods or header(document.value)[1] == "Pod":
        return
    told, found = {problem.message for problem in problems}, Problems()
    for pod in pods:
        _check_claims(pod, document.value, manifests, claims, found)
        for name in pod.volumes:
            if f"{pod.namespace}/{name}" not in manifests.volume_claims:
                no_volume(_place(document.value, "claimName", name), name, found)
    for problem in found:
        if problem.message not in told:
            told.add(problem.message)
            warns = document.metadata.uid or problem.severity is Severity.WARNING
            (problems.warn if warns else problems.error)(problem.path, problem.message, problem.next_step)


def _check_claims(pod: Pod, value: Json, manifests: ManifestSet, claims: Collection[str], problems: Problems) -> None:
    for entry in pod.claims:
        if entry.claim is None and entry.template and f"{pod.namespace}/{entry.template}" not in manifests.templates:
            field, name, known, what = "Template", entry.template, list(manifests.templates), "ResourceClaimTemplate"
        elif entry.claim and f"{pod.namespace}/{entry.claim}" not in claims:
            field, name, known, what = "", entry.claim, list(claims), "ResourceClaim"
        else:
            continue
        path = _place(value, f"resourceClaim{field}Name", name)
        missing(path, name, f"{pod.namespace}/", known, problems, what=what)


def check_affinity(
    document: Document, planned: Planned, unmet: Collection[PodAffinityTerm], problems: Problems
) -> None:
    """Warn about each of the `unmet` terms of pod affinity that pods of the object have."""
    pods = planned.get((document.file, document.line), ()) if unmet else ()
    for term in dict.fromkeys(term for pod in pods for term in pod.pod_affinity if term in unmet):
        message = f"no {wanted_pods(term)} is in the files, and required pod affinity over {term.topology_key} wants it"
        step = f"give it, and its Node if it runs ({_get(term)}), or drop the term"
        problems.warn(_found(document.value, "podAffinity", lambda _: True), message, step)


def _get(term: PodAffinityTerm) -> str:
    one = len(term.namespaces) == 1 and term.namespace_selector is None
    scope, selector = f"-n {in_shell(term.namespaces[0])}" if one else "-A", str(term.selector or "")
    chosen = f" -l {in_shell(selector)}" if selector else ""
    return f"`kubectl get pods {scope}{chosen} -o yaml`, `kubectl get nodes -o yaml`"


def _place(value: Json, field: str, name: str) -> Path:
    """The path of the first field with this name and value; () where a controller writes it."""
    return _found(value, field, lambda found: found == name)


def _found(value: Json, field: str, suits: Callable[[Json], bool]) -> Path:
    return next((path for path, part in _parts(value, ()) if path[-1:] == (field,) and suits(part)), ())


def _parts(value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _parts(part, (*path, key))

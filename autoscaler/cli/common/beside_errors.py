"""Obstacles of the pods in manifests that have errors: they are shown together with the errors, not only after these
are corrected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.dra.claims.extended_resources import extended_resource_classes
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.workloads.pod_templates import pods_in
from autoscaler.lint.advice import surprise
from autoscaler.lint.other_systems import device_advice
from autoscaler.manifests.classify import A_DEPLOYMENT
from autoscaler.manifests.document import Document
from autoscaler.manifests.foreign.asked import devices_in
from autoscaler.manifests.kinds import MAKES_PODS, kind_of
from autoscaler.manifests.load import Loaded
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import pending
from autoscaler.planning.demand.scope import Scopes, served_resources
from autoscaler.planning.outside_pools import without_machines
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Path
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.types.catalog import Catalog

_OF_THE_REST: Final = " or, before it runs, a Deployment whose pods ask for the rest"


def beside_errors(loaded: Loaded, catalog: Catalog) -> Iterator[Diagnostic]:
    """Warnings about devices that no machine has, and about pods that no pool serves.

    Nothing where an object has errors that might be a node or a DeviceClass with the devices.
    """
    of_pods = {one.name for one in loaded.documents if _expands(one) or any(pods_in(Fields(one.value)))}
    asked = {one.name: tuple(_pods_of(one)) for one in loaded.refused if one.name not in of_pods}
    of_pods |= {one.name for one in loaded.refused if asked.get(one.name) or _makes_pods(one)}
    if any(problem.subject not in of_pods for problem in loaded.errors):
        return
    named = {f"Pod {pod.key}": subject for subject, pods in asked.items() for pod in pods}
    more = tuple(pod for pods in asked.values() for pod in pods)
    state = replace(loaded.snapshot, pods=(*loaded.snapshot.pods, *more))
    for found in (*device_advice(state, catalog), *_out_of_scope(state, catalog)):
        yield replace(found, subject=named[found.subject], path=()) if found.subject in named else found


def without_deployments(loaded: Loaded, reported: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The problems. Of objects that are in `reported`, the step to write a Deployment is only for what else they
    ask for, if there is anything: it would ask for the same devices."""
    said = {one.subject: one.message for one in reported}
    asked = {one.name: {name for _, name, _ in devices_in(one.value)} for one in loaded.refused}
    for one in loaded.problems:
        if one.subject not in said:
            yield one
            continue
        rest = any(name not in said[one.subject] for name in asked.get(one.subject, ()))
        yield replace(one, next_step=one.next_step.replace(A_DEPLOYMENT, _OF_THE_REST if rest else ""))


def _expands(document: Document) -> bool:
    """True if the object is read as pods, which may stand anywhere in it."""
    version, name = header(document.value)
    kind = kind_of(version.rpartition("/")[0], name)
    return kind is not None and kind.expands


def _makes_pods(document: Document) -> bool:
    version, kind = header(document.value)
    return (version.rpartition("/")[0], kind) in MAKES_PODS


def _pods_of(document: Document) -> Iterator[Pod]:
    """One pod for each place of a refused object that asks for other devices."""
    places: dict[Path, dict[str, Quantity]] = {}
    for path, name, amount in devices_in(document.value):
        try:
            places.setdefault(path, {})[name] = Quantity.parse(str(amount))
        except QuantityError:
            continue
    metadata = document.metadata
    for number, requests in enumerate(dict.fromkeys(FrozenMap(found) for found in places.values())):
        name = f"{metadata.name}-{number}-{document.line}"
        yield Pod(metadata.namespace, name, containers=(Container("main", requests),), origin=document.origin)


def _out_of_scope(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """That the pods need a pool of another scope, at the first of them."""
    served = served_resources(snapshot)
    classes = {name: one for name, one in extended_resource_classes(snapshot.classes).items() if name in served}
    outside = pending(snapshot, Scopes.of(snapshot, snapshot.pods, classes)).outside
    found = [
        (entry.pod, reason)
        for entry in without_machines(outside, catalog, snapshot)
        for reason in entry.reasons
        if reason.code is Code.OUT_OF_SCOPE and "by" in reason.detail
    ]
    if found:
        pod, reason = found[0]
        message, _, step = text_of(replace(reason, subject=Subject())).partition(": ")
        yield surprise(f"Pod {pod}", (), message, step, others=len(found) - 1)

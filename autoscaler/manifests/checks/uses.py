"""Finds claims and templates that nothing in the files uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from autoscaler.cel.program import demands_of
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document
from autoscaler.manifests.foreign.asked import asking
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.kubernetes.profile import KubernetesProfile

GET_SLICES: Final = "`kubectl get nodes,resourceslices -o yaml`"
_NO_REQUEST: Final = "no ProvisioningRequest or CapacityBuffer names this template, so nothing is planned for its pod"
_ADD_REQUEST: Final = "add the object that names it, or give a Deployment or Job whose pods ask for the same"


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
        names = (part.get("resourceClaimTemplateName") for part in self._parts)
        return frozenset(name for name in names if isinstance(name, str))

    @cached_property
    def pod_templates(self) -> frozenset[str]:
        """The names of those that a ProvisioningRequest, a CapacityBuffer or anything else refers to."""
        references = (part.get("podTemplateRef") for part in self._parts)
        return frozenset(str(one.get("name")) for one in references if isinstance(one, dict))

    @property
    def _parts(self) -> Iterator[dict[object, object]]:
        return (part for one in self.read if isinstance(one, Document) for part in _objects_in(one.value))

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


def _objects_in(value: object) -> Iterator[dict[object, object]]:
    """All objects inside a value, itself among them."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, dict):
            yield found
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
    elif uses.planned and kind == "PodTemplate" and not metadata.uid:
        if metadata.name not in uses.pod_templates:
            problems.warn((), f"{_NO_REQUEST}{asking(document.value)}", _ADD_REQUEST)
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
        step += f", and the ResourceSlices of nodes that run the driver ({GET_SLICES}): no new node has its devices"
    problems.warn((), message, step)

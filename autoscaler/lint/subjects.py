"""The objects to lint: the claims, templates, classes and slices as they were written, with the paths of their parts.

Templates are looked at themselves, whether or not a pod uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from autoscaler.kube.device_class import parse_device_class
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header, parse_metadata
from autoscaler.kube.resource_claim import FLAT_VERSION, parse_resource_claim, parse_resource_claim_template
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.origin import Origin
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, ResourceClaim
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.resource_slice import ResourceSlice

_GROUP = "resource.k8s.io/"


@dataclass(frozen=True, slots=True)
class ClaimSubject:
    """A ResourceClaim or what a ResourceClaimTemplate stamps; `path` leads to spec.devices.

    `stored`: an API server has already accepted it.
    """

    object: str
    version: str
    stored: bool
    path: Path
    claim: ResourceClaim
    origin: Origin

    def requests(self) -> Iterator[tuple[Path, str, DeviceRequest]]:
        """Every exact request and every alternative: where its fields are, its full name, itself."""
        for index, request in enumerate(self.claim.requests):
            path = (*self.path, "requests", index)
            if isinstance(request, FirstAvailable):
                for position, alternative in enumerate(request.subrequests):
                    name = f"{request.name}/{alternative.name}"
                    yield (*path, "firstAvailable", position), name, alternative
            else:
                yield path if self.version == FLAT_VERSION else (*path, "exactly"), request.name, request


@dataclass(frozen=True, slots=True)
class ClassSubject:
    object: str
    version: str
    stored: bool
    device_class: DeviceClass
    origin: Origin


@dataclass(frozen=True, slots=True)
class SliceSubject:
    object: str
    version: str
    stored: bool
    slice: ResourceSlice
    origin: Origin


Subject: TypeAlias = ClaimSubject | ClassSubject | SliceSubject


def subject_of(value: Any, name: str, origin: Origin) -> Subject | None:
    """The object as a subject, `name` being what messages call it; None for objects that are not linted."""
    version, kind = header(value)
    if not version.startswith(_GROUP):
        return None
    stored = bool(parse_metadata(Fields(value)).uid)
    match kind:
        case "ResourceClaim":
            claim = parse_resource_claim(value, origin=origin)
            return ClaimSubject(name, version, stored, ("spec", "devices"), claim, origin)
        case "ResourceClaimTemplate":
            claim = parse_resource_claim_template(value, origin=origin).spec
            return ClaimSubject(name, version, stored, ("spec", "spec", "devices"), claim, origin)
        case "DeviceClass":
            return ClassSubject(name, version, stored, parse_device_class(value, origin=origin), origin)
        case "ResourceSlice":
            return SliceSubject(name, version, stored, parse_resource_slice(value), origin)
        case _:
            return None

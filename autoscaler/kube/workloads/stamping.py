"""Creates pods from a pod template: the common part of all workload controllers.

Names and uids are functions of the workload's name, so that the same files always result in the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata
from autoscaler.kube.pod import NO_PRIORITIES, parse_pod_template, uid_of
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.storage import ephemeral_volume_claims
from autoscaler.model.gang import Gang
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import ResourceClaimTemplate
from autoscaler.model.storage import PersistentVolumeClaim
from instance_catalog.dataclass import dataclass, field, replace

MOST_PODS = 10_000  # of one workload; a greater number is a typing mistake or too large for one plan
MOST_CLAIMS: Final = 50_000  # of the pods of one workload, made from templates
# Pod templates of which no pod is made: a set of groups reads each template of a group again, so that a short file can
# ask for millions of readings. Those of which pods are made are limited by the number of pods.
_OWN: Final = 10  # of each workload
_MOST: Final = 50_000  # of all together beyond these; some seconds
_POD = "{pod}"  # stands for the pod's name while a template is read; no Kubernetes name contains braces


class TooManyEmptyPartsError(Exception):
    """The limit is reached."""


class EmptyParts:
    """How many more such templates may be read: of the current workload, and of all."""

    __slots__ = ("own", "shared")

    def __init__(self) -> None:
        self.own, self.shared = _OWN, _MOST

    def count(self) -> None:
        """Count one. Raises TooManyEmptyPartsError."""
        if self.own > 0:
            self.own -= 1
        elif self.shared > 0:
            self.shared -= 1
        else:
            raise TooManyEmptyPartsError


_CURRENT: Final[ContextVar[EmptyParts | None]] = ContextVar("EMPTY_PARTS", default=None)


@contextmanager
def limited(parts: EmptyParts) -> Iterator[None]:
    """A context in which one workload is read."""
    parts.own = _OWN
    token = _CURRENT.set(parts)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def count_empty() -> None:
    """Count a template of which no pod is made. Raises TooManyEmptyPartsError."""
    if (parts := _CURRENT.get()) is not None:
        parts.count()


@dataclass(frozen=True, slots=True)
class Expansion:
    """The objects that a workload creates."""

    pods: tuple[Pod, ...] = ()
    gangs: tuple[Gang, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    claim_templates: tuple[ResourceClaimTemplate, ...] = ()

    def __add__(self, other: Expansion) -> Expansion:
        return Expansion(
            (*self.pods, *other.pods),
            (*self.gangs, *other.gangs),
            (*self.volume_claims, *other.volume_claims),
            (*self.claim_templates, *other.claim_templates),
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """The object whose pods are created. `owner` names the pods' controller if that is another object."""

    kind: str
    metadata: Metadata
    origin: Origin = CLUSTER
    priorities: Mapping[str, PriorityClass] = field(default_factory=lambda: NO_PRIORITIES)
    owner: str = ""

    @property
    def pod_origin(self) -> Origin:
        """The source of its pods: the file, and the workload by which users identify them."""
        return replace(self.origin, owner=f"{self.kind} {self.metadata.namespace}/{self.metadata.name}")


class SpecAsTemplate(Fields):
    """A pod template made from a pod spec, in `field` of an object or among its other fields, so that problems name the
    field of the object."""

    __slots__ = ()

    def __init__(
        self, spec: object, labels: Mapping[str, str], annotations: Mapping[str, str], at: Fields, field: str = ""
    ) -> None:
        template = {"metadata": {"labels": dict(labels), "annotations": dict(annotations)}, "spec": spec}
        super().__init__(template, at.problems, (*at.path, field) if field else at.path)

    def child(self, name: str) -> Fields:
        return Fields(self.raw(name), self.problems, self.path if name == "spec" else (*self.path, name))


def stamp(
    template: Fields,
    workload: Workload,
    names: Sequence[str],
    *,
    labels: Mapping[str, str] | None = None,
    labels_of: Callable[[int], Mapping[str, str]] = lambda _: {},
) -> Expansion:
    """One pod per name. `labels` are the controller's own for all of them, `labels_of(i)` those of the i-th.

    The template is read once, so that a mistake in it is reported once.
    """
    if not names:
        count_empty()
    metadata, origin = workload.metadata, workload.pod_origin
    model = parse_pod_template(
        template,
        namespace=metadata.namespace,
        name=_POD,
        labels=labels or {},
        origin=origin,
        priorities=workload.priorities,
    )
    model = replace(model, owner=workload.owner or f"{workload.kind}/{metadata.name}")
    ephemeral = ephemeral_volume_claims(
        Fields(template.raw("spec")), namespace=metadata.namespace, pod_name=_POD, origin=origin
    )
    made = sum(1 for entry in model.claims if entry.claim is None)
    if too_many_volumes(template, "spec", len(names), len(ephemeral)) or _too_many_claims(template, len(names), made):
        return Expansion()
    pods = tuple(_named(model, name, labels_of(index)) for index, name in enumerate(names))
    claims = tuple(replace(claim, name=claim.name.replace(_POD, name)) for name in names for claim in ephemeral)
    return Expansion(pods, volume_claims=claims)


def count(fields: Fields, name: str, default: int) -> int:
    """A number of pods, groups or jobs: between 0 and MOST_PODS."""
    found = fields.integer(name, default)
    if 0 <= found <= MOST_PODS:
        return found
    fields.error(name, f"{found} is outside 0 … {MOST_PODS}", "plan for fewer pods at a time")
    return 0


def too_many_volumes(holder: Fields, field: str, pods: int, volumes: int) -> bool:
    """True, with an error, if so many pods with so many volumes of their own are more than MOST_PODS volumes."""
    if pods * volumes <= MOST_PODS:
        return False
    message = f"{pods} pods with {volumes} volumes of their own each are more than {MOST_PODS} volumes"
    holder.error(field, message, "plan for fewer pods at a time, or with fewer volumes")
    return True


def _too_many_claims(template: Fields, pods: int, claims: int) -> bool:
    """True, with an error, if so many pods with so many claims of their own are more than MOST_CLAIMS."""
    if pods * claims <= MOST_CLAIMS:
        return False
    message = f"{pods} pods with {claims} claims of their own each are more than {MOST_CLAIMS} claims"
    step = "plan for fewer pods at a time, or make one claim with several requests"
    template.child("spec").error("resourceClaims", message, step)
    return True


def _named(model: Pod, name: str, labels: Mapping[str, str]) -> Pod:
    return replace(
        model,
        name=name,
        uid=uid_of("Pod", model.namespace, name),
        labels=model.labels.with_items(labels) if labels else model.labels,
        volumes=tuple(volume.replace(_POD, name) for volume in model.volumes),
    )

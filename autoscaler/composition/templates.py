"""Node templates of one kind as a provider takes them, read when they are asked for: a launch sees them as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from autoscaler.cluster.resources import Resource
from autoscaler.kube.problem import Problems
from instance_catalog.dataclass import dataclass
from providers.abilities import KubernetesObjects
from providers.contract import TemplateRef
from providers.errors import TemplateError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadTemplates(Generic[T]):
    """`made` is the template of an object, by name; None where the object has problems, which it then notes."""

    objects: KubernetesObjects
    resource: Resource
    made: Callable[[str, Mapping[str, Any], Problems], T | None]

    def template(self, reference: TemplateRef) -> T:
        """The template of a pool. Raises TemplateError when there is none, or when it cannot be used."""
        kind, name, problems = self.resource.kind, reference.name, Problems()
        raw = self.objects.get((self.resource.api_version, self.resource.plural), name) if name else None
        if raw is None:
            step = f"create the {kind}, and name it in spec.nodeTemplateRef of the pool"
            raise TemplateError(f"there is no {kind} {name!r}", next_step=step)
        found = self.made(name, raw, problems)
        if found is None:
            raise TemplateError(f"{kind} {name}: {'; '.join(map(str, problems))}")
        return found

    def references(self) -> tuple[TemplateRef, ...]:
        found = self.objects.list((self.resource.api_version, self.resource.plural), labels={})
        metadata = (item["metadata"] for item in found)
        return tuple(TemplateRef(self.resource.kind, m["name"], m.get("generation", 0)) for m in metadata)

"""Scenarios: Kubernetes manifests with annotations for arrival, run time, and the expected result.

simulation.foreslice.dev/at: 2m             when the object is created, counted from the start (default 0s)
simulation.foreslice.dev/runs-for: 1h       how long the pod runs (without it, to the end)
simulation.foreslice.dev/copies: "4"        that many objects, named NAME-0 to NAME-3
simulation.foreslice.dev/title: …           the purpose of the object, in one line
simulation.foreslice.dev/expect: Pending    the phase the pod ends in (default Succeeded)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, Final

import yaml

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import BY_KIND, Resource
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.schema import duration
from autoscaler.simulation.api_server import copied
from instance_catalog.dataclass import dataclass

PREFIX: Final = "simulation.foreslice.dev/"
AT, COPIES, TITLE, EXPECT = (f"{PREFIX}{name}" for name in ("at", "copies", "title", "expect"))
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An object that is created `after` the start."""

    after: timedelta
    resource: Resource
    manifest: Object

    @property
    def title(self) -> str:
        """The purpose of the object; "" for objects that only support others."""
        return str(_annotations(self.manifest).get(TITLE, ""))


@dataclass(frozen=True, slots=True)
class Scenario:
    """Arrivals in order of time."""

    arrivals: tuple[Arrival, ...]

    def expected(self) -> Mapping[str, str]:
        """The phase each pod is expected to end in, by namespace/name."""
        return {
            f"{arrival.manifest['metadata'].get('namespace', 'default')}/{arrival.manifest['metadata']['name']}": str(
                _annotations(arrival.manifest).get(EXPECT, "Succeeded")
            )
            for arrival in self.arrivals
            if arrival.resource.kind == "Pod"
        }


def load_scenario(name: str) -> Scenario:
    return parse_scenario((resources.files("autoscaler.simulation") / "scenarios" / f"{name}.yaml").read_text("utf-8"))


def parse_scenario(text: str) -> Scenario:
    """A scenario from multi-document YAML. Raises BadInputError for kinds that the simulated cluster does not have."""
    documents = [document for document in yaml.load_all(text, Loader=_LOADER) if document]
    arrivals = [arrival for document in documents for arrival in _arrivals(document)]
    return Scenario(tuple(sorted(arrivals, key=lambda arrival: arrival.after)))


def _arrivals(document: Object) -> list[Arrival]:
    kind = document.get("kind", "")
    if kind not in BY_KIND:
        known = ", ".join(sorted(BY_KIND))
        raise BadInputError(f"the simulated cluster has no kind {kind!r}", next_step=f"use one of: {known}")
    annotations = _annotations(document)
    after = duration(str(annotations.get(AT, "0s")))
    copies = int(annotations.get(COPIES, 0))
    if not copies:
        return [Arrival(after, BY_KIND[kind], document)]
    return [Arrival(after, BY_KIND[kind], _numbered(document, index)) for index in range(copies)]


def _numbered(document: Object, index: int) -> Object:
    copy: Object = copied(document)
    copy["metadata"]["name"] += f"-{index}"
    if index:
        copy["metadata"]["annotations"].pop(TITLE, None)
    return copy


def _annotations(manifest: Object) -> dict[str, Any]:
    found: dict[str, Any] = manifest.get("metadata", {}).get("annotations") or {}
    return found


def moment_of(arrival: Arrival, start: datetime) -> datetime:
    """The time at which the object is created in a run that begins at `start`."""
    return start + arrival.after

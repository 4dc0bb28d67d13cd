"""The kwok provider keeps the guarantees of the contract that can be shown without a cloud that runs short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import NODES, RESOURCE_SLICES
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.types.instance_type import CapacityType
from providers.conformance import CHECKS
from providers.conformance_harness import Check, Harness, NotApplicable
from providers.contract import LaunchRequest, OfferingKey, Provider, TemplateRef
from providers.errors import AmbiguousError, NotOfferedError, PermissionDeniedError
from providers.kwok.provider import KwokProvider, MachineManifests

PLENTY = OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND)
NO_TEMPLATE = TemplateRef()
OTHER = OfferingKey("p4d.24xlarge", "us-east-1a", CapacityType.ON_DEMAND)
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
# A cluster lends nothing for a time, and it has as many Nodes as one asks for.
NOT_APPLICABLE = {
    "fruitless token is not used up": "KWOK has no limit",
    "partial answer": "KWOK has no limit",
    "minimum or nothing": "KWOK has no limit",
    "shortage then next offering": "KWOK has no limit",
    "throttled call has no effect": "the client waits for an overloaded API server",
    "unknown code is never hot": "the client knows every answer of the API server",
    "terminated machines free their place": "KWOK has no limit",
    "block before its start": "KWOK has no reservations",
    "block while it lasts": "KWOK has no reservations",
    "block exhausted by somebody else": "KWOK has no reservations",
    "block is taken back": "KWOK has no reservations",
    "extension moves the end": "KWOK has no reservations",
    "moments are the clouds": "KWOK has no reservations",
}


class LossyObjects(ProviderObjects):
    """The API server, of which the next creation can get lost on the way there or back."""

    losing = ""

    def create(self, resource: tuple[str, str], manifest: Mapping[str, Any]) -> bool:
        losing, self.losing = self.losing, ""
        if losing == "request":
            raise AmbiguousError("no answer")
        if losing == "permission":
            raise PermissionDeniedError("nodes is forbidden")
        created = super().create(resource, manifest)
        if losing == "answer":
            raise AmbiguousError("no answer")
        return created


@dataclass
class KwokHarness:
    """The in-memory API server with the provider, and with KWOK when time passes; it also says what machines are."""

    plenty: OfferingKey = PLENTY
    other: OfferingKey = OTHER
    template: TemplateRef = NO_TEMPLATE
    clock: VirtualClock = field(default_factory=VirtualClock)
    sold: set[str] = field(default_factory=lambda: {PLENTY.instance_type, OTHER.instance_type})

    def __post_init__(self) -> None:
        self.api = ApiServer(self.clock)
        self.objects = LossyObjects(self.api)
        self.restart()

    def manifests(self, request: LaunchRequest, offering: OfferingKey) -> list[MachineManifests]:
        if offering.instance_type not in self.sold:
            raise NotOfferedError(f"the catalog has no type {offering.instance_type}")
        return [self._machine(request, name) for name in request.nodes]

    def _machine(self, request: LaunchRequest, name: str) -> MachineManifests:
        node = {"metadata": {"name": name, "labels": dict(request.labels)}, "status": {"conditions": []}}
        pieces = [{"metadata": {"name": f"{name}-gpu-{part}"}, "spec": {"nodeName": name}} for part in "ab"]
        return MachineManifests(node, tuple(pieces))

    def restart(self) -> None:
        self.provider: Provider = KwokProvider(self.objects, self)

    def advance(self, by: timedelta) -> None:
        self.clock.advance(by)

    def settle(self) -> None:
        for node in self.api.list(NODES, limit=1000).items:
            self.api.patch(NODES, node["metadata"]["name"], READY, subresource="status")

    def withdraw(self, offering: OfferingKey) -> None:
        self.sold.discard(offering.instance_type)

    def lose_answer(self) -> None:
        self.objects.losing = "answer"

    def lose_request(self) -> None:
        self.objects.losing = "request"

    def limit(self, offering: OfferingKey, machines: int) -> None:
        raise NotApplicable("KWOK has no limit")

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        raise NotApplicable("KWOK has no reservations")

    def take(self, reservation: str, machines: int) -> None:
        raise NotApplicable("KWOK has no reservations")

    def foreign(self) -> str:
        self.api.create(NODES, {"metadata": {"name": "somebody-elses"}})
        return "somebody-elses"

    def deny(self) -> None:
        self.objects.losing = "permission"

    def extend(self, reservation: str, by: timedelta) -> None:
        raise NotApplicable("KWOK has no reservations")

    def skew(self, by: timedelta) -> None:
        raise NotApplicable("KWOK has no reservations")

    def answer_nonsense(self) -> None:
        raise NotApplicable("the client knows every answer of the API server")

    def throttle(self) -> None:
        raise NotApplicable("the client waits for an overloaded API server")

    def names(self, kind: str) -> list[str]:
        resource = {"nodes": NODES, "slices": RESOURCE_SLICES}[kind]
        return [item["metadata"]["name"] for item in self.api.list(resource).items]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_kwok_provider_keeps(check: Check) -> None:
    harness: Harness = KwokHarness()
    reason = ""
    try:
        check.run(harness)
    except NotApplicable as missing:
        reason = str(missing)
    assert reason == NOT_APPLICABLE.get(check.name, "")

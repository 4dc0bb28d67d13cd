"""One cluster with machines of two clouds: both adapters, each over the fake of its cloud, under one loop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.store import Store
from autoscaler.composition.gcp import written_batches
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop
from autoscaler.simulation.kubelets import Kubelets
from providers.contract import Provider
from providers.gcp.provider import GcpProvider, Project
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.state import PROMPT
from tests.faults.gcp_world import KIND, GcpSimulation, Inside, machines_run
from tests.faults.world import AwsSimulation, instances_run
from tests.gcp import Written, gcp, server


class _Google(GcpSimulation):
    """Only the project and its template: the cluster is the other cloud's."""

    def __init__(self, clock: Any, uid: str) -> None:
        self.clock, self._uid, self._pace = clock, uid, PROMPT


class BothKubelets:
    """The machines of both clouds, each of which registers as its cloud's do."""

    def __init__(self, *kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    def step(self) -> bool:
        """Let each take a step; whether anything was written."""
        wrote = [kubelets.step() for kubelets in self._kubelets]
        return any(wrote)

    def next_moment(self) -> datetime | None:
        """When something will happen by itself."""
        moments = [moment for kubelets in self._kubelets if (moment := kubelets.next_moment()) is not None]
        return min(moments, default=None)


class BothClouds(AwsSimulation):
    """The cluster of the AWS adapter, with the Google Cloud adapter beside it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        inside: Any = Inside(self.gce)
        store = Store(self.api, self._profile)
        both: Any = BothKubelets(self._kubelets, Kubelets(self.api, store, inside, self._catalog, self.clock))
        self._kubelets = both

    @cached_property
    def google(self) -> _Google:
        """The project."""
        return _Google(self.clock, self._uid)

    @property
    def gce(self) -> FakeGce:
        """Its fake."""
        return self.google.fake

    def new_loop(self, api: KubernetesApi | None = None, **_: Any) -> Loop:
        """The production loop over both adapters, all with empty memory."""
        super().new_loop(api)
        server().fake = self.gce
        objects, template = ProviderObjects(api or self.api), Written(self.google.template.found)
        project = Project(gcp(), self.ours, self._uid)
        google = GcpProvider(project, template, written=lambda: written_batches(objects))
        providers: dict[str, Provider] = {self.kind: self.adapter(self._catalog), KIND: google}
        self.loop = Loop(
            api=api or self.api,
            providers=Providers(providers, cluster=self._uid),
            catalog=self._catalog,
            profile=self._profile,
            clock=self.ours,
            settings=self._settings,
        )
        return self.loop

    def ours_by_cloud(self) -> Mapping[str, int]:
        """How many machines of ours cost money, by cloud."""
        return {"aws": len(self.fake.account.alive()), "gcp": len(self.google.ours())}


def run_in_both(simulation: BothClouds) -> dict[str, bool]:
    """By provider id, whether a machine of ours runs there."""
    return {**instances_run(simulation), **machines_run(simulation.google)}

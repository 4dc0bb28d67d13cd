"""A simulated cluster whose pools Cluster Autoscaler decides about: the service beside the loop, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from autoscaler.cluster.api import KubernetesApi
from autoscaler.externalgrpc.exemplars import Exemplars
from autoscaler.externalgrpc.node_groups import launchable_of
from autoscaler.externalgrpc.refusal import CallRefusedError, Status
from autoscaler.externalgrpc.service import CloudProvider
from autoscaler.externalgrpc.wire import Json
from autoscaler.loop.loop import Tick
from autoscaler.settings.settings import DEFAULTS, ServeSettings, Settings
from autoscaler.simulation.scenario import parse_scenario
from autoscaler.simulation.simulation import ORDINARY, Simulation
from instance_catalog.dataclass import replace
from providers.simulated.machines import Behaviour
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  launcher: ClusterAutoscaler
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
  nodeTemplateRef: {kind: SimulatedNodeTemplate, name: default}
  drivers: {profiles: [nvidia]}
  disruption: {after: 1m}
  limits: {nodes: 4}
"""
PODS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 1}}]}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: work
  annotations: {simulation.foreslice.dev/copies: "COPIES", simulation.foreslice.dev/runs-for: 30m}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


class Cluster:
    """A simulation with a service that sees its reconciles. `behaviour` is the cloud's."""

    def __init__(
        self,
        *,
        pool: str = POOL,
        pods: int = 1,
        behaviour: Behaviour = ORDINARY,
        settings: Settings = DEFAULTS,
        slices: bool = True,
        most: int = 50,
        exemplars: bool = False,
    ) -> None:
        # The simulation opens no socket; its pools are told that somebody can order nodes.
        self.settings = settings = replace(settings, serve=ServeSettings(external_grpc="127.0.0.1:0"))
        self.most = most
        self.slices = slices
        self.shows = exemplars
        catalog = shipped("g6.xlarge", "g6.12xlarge")
        self.simulation = Simulation(catalog=catalog, start=START, behaviour=behaviour, settings=settings)
        self.simulation.add(parse_scenario(pool))
        if pods:
            self.simulation.add(parse_scenario(PODS.replace("COPIES", str(pods))))
        self.ticks: list[Tick] = []
        self._names = count()
        self.restart_service()

    def restart_service(self, api: KubernetesApi | None = None) -> None:
        """A service with empty memory, as after a restart."""
        api = api or self.simulation.api
        self.exemplars = Exemplars(api, self.simulation.clock)
        self.provider = CloudProvider(
            api,
            self._draw,
            slices=self.slices,
            most=self.most,
            exemplars=self.exemplars if self.shows else None,
        )
        if self.ticks:
            self.observe(self.ticks[-1])

    def _draw(self) -> str:
        return f"{next(self._names):010x}"

    def observe(self, tick: Tick) -> None:
        self.ticks.append(tick)
        assert tick.catalog is not None
        self.provider.update(
            launchable_of(
                tick.snapshot,
                tick.catalog,
                self.settings.policy,
                tick.now,
                most=self.most,
                batches=tick.batches,
            )
        )

    def run(self, **span: float) -> None:
        self.simulation.run(self.simulation.clock.now() + timedelta(**span), self.observe)

    def call(self, method: str, **asked: Any) -> Json:
        return self.provider.call(method, asked)

    def loop(self) -> list[Json]:
        """The beginning of one of Cluster Autoscaler's loops: what it lists."""
        self.call("Refresh")
        groups: list[Json] = self.call("NodeGroups")["nodeGroups"]
        return groups

    def size(self, group: str) -> int:
        return int(self.call("NodeGroupTargetSize", id=group)["targetSize"])

    @property
    def machines(self) -> int:
        """How many machines were ever rented."""
        return len(self.simulation.cloud.machines)

    @property
    def alive(self) -> int:
        """How many machines run or start."""
        return sum(machine.ended_at is None for machine in self.simulation.cloud.machines.values())


def waiting(cluster: Cluster, until: Callable[[Cluster], bool], *, minutes: int = 20) -> None:
    """Let minutes pass until something holds."""
    for _ in range(minutes):
        if until(cluster):
            return
        cluster.run(minutes=1)
    raise AssertionError("it did not happen in time")


def refused(cluster: Cluster, method: str, **asked: Any) -> Status:
    with pytest.raises(CallRefusedError) as error:
        cluster.call(method, **asked)
    return error.value.status


def cheapest(cluster: Cluster) -> str:
    return str(cluster.loop()[0]["id"])

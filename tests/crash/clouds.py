"""The clouds in which controllers die beside the simulated one: KWOK's nodes, and the AWS adapters on the fake EC2."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from autoscaler.cluster.api import KubernetesApi, key_of, list_all
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import KWOK_NODE_TEMPLATES, NODES
from autoscaler.composition.kwok import KwokMachines
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop
from autoscaler.simulation.simulation import Simulation
from instance_catalog.types.catalog import Catalog
from providers.errors import AmbiguousError
from providers.kwok.provider import KwokProvider
from tests.crash.life import Cloud
from tests.crash.plots import BLOCK_BEGINS, BLOCK_LASTS
from tests.faults.groups import GroupSimulation, SizedGroupSimulation
from tests.faults.world import AwsSimulation, instances_run

_READY = [{"type": "Ready", "status": "True"}]


class LossyObjects(ProviderObjects):
    """The API server, which does not answer the next `losing` creations."""

    losing = 0

    def create(self, resource: tuple[str, str], manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        created = super().create(resource, manifest)
        if self.losing:
            self.losing -= 1
            raise AmbiguousError("no answer")
        return created


class KwokSimulation(Simulation):
    """A cluster whose machines are Nodes that KWOK acts for. `losing` answers get lost after each start."""

    losing = 0

    def __init__(self, *, catalog: Catalog, start: datetime) -> None:
        super().__init__(catalog=catalog, start=start)
        self.api.create(KWOK_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {}})

    def new_loop(self, api: KubernetesApi | None = None, *, catalog: Catalog | None = None) -> Loop:
        """The production loop over the kwok provider, both with empty memory."""
        known = catalog or self._catalog
        objects = LossyObjects(api or self.api)
        objects.losing = self.losing
        provider = KwokProvider(objects, KwokMachines(objects, known, self._profile))
        self.loop = Loop(
            api=api or self.api,
            providers=Providers({"KwokNodeTemplate": provider}, cluster=self._uid),
            catalog=known,
            profile=self._profile,
            clock=self.clock,
            settings=self._settings,
        )
        return self.loop

    def settle_cluster(self) -> bool:
        """Let KWOK make Nodes ready, and everybody else act."""
        fresh = [node for node in list_all(self.api, NODES)[0] if node["status"]["conditions"] != _READY]
        for node in fresh:
            self.api.patch(NODES, key_of(node), {"status": {"conditions": _READY}}, subresource="status")
        return super().settle_cluster() or bool(fresh)


def _nodes(simulation: KwokSimulation) -> list[tuple[str, bool]]:
    """Every Node there ever was, by the uid that a second one of its name would not have."""
    seen = [e.object["metadata"] for e in simulation.api.watch(NODES, resource_version="0") if e.type != "BOOKMARK"]
    left = {node["metadata"]["uid"] for node in list_all(simulation.api, NODES)[0]}
    return [(uid, uid not in left) for uid in dict.fromkeys(metadata["uid"] for metadata in seen)]


def _instances(simulation: AwsSimulation) -> list[tuple[str, bool]]:
    now = simulation.clock.now()
    return [(machine.id, not machine.alive(now)) for machine in simulation.fake.account.machines.values()]


def _kwok_runs(simulation: KwokSimulation) -> Mapping[str, bool]:
    """KWOK's machines are the Nodes, so that no machine is without one."""
    return {node["spec"]["providerID"]: True for node in list_all(simulation.api, NODES)[0]}


def _block(simulation: AwsSimulation) -> str:
    account = simulation.fake.account
    return account.block("p5.48xlarge", "us-east-1a", 2, starts_in=BLOCK_BEGINS, lasts=BLOCK_LASTS).id


def _group_block(simulation: GroupSimulation) -> str:
    reservation = _block(simulation)
    simulation.add_block_group(reservation)
    return reservation


KWOK = Cloud("KwokNodeTemplate", KwokSimulation, _nodes, _kwok_runs)
AWS = Cloud("AWSNodeTemplate", AwsSimulation, _instances, instances_run, _block)
GROUPS = Cloud("AWSGroupNodeTemplate", GroupSimulation, _instances, instances_run, _group_block)
SIZED_GROUPS = Cloud("AWSGroupNodeTemplate", SizedGroupSimulation, _instances, instances_run, _group_block)

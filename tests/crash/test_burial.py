"""A cloud whose controller manager does not remove the Nodes of machines that are gone: then the autoscaler does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from autoscaler.cluster.store import Store
from autoscaler.simulation.kubelets import Kubelets
from autoscaler.simulation.simulation import Simulation
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from providers.contract import InstanceState, LaunchRequest
from providers.simulated.machines import Machine
from tests.crash.life import SIMULATED, check, live
from tests.crash.troubles import undisturbed

# The writes between which a node without a machine is removed.
_BURYING: Final = ("update ProvisionedNode to Gone", "delete Node", "patch ProvisionedNode", "delete ProvisionedNode")


class Lingering(Kubelets):
    """Nobody looks at machines that are gone."""

    def _machines(self) -> Iterator[tuple[LaunchRequest, Machine]]:
        now, behaviour = self._clock.now(), self._cloud.behaviour
        for request, machine in super()._machines():
            if machine.state(now, behaviour) is not InstanceState.TERMINATED:
                yield request, machine


class Uncleaned(Simulation):
    """The cluster of that cloud."""

    def __init__(self, *, catalog: Catalog, start: datetime) -> None:
        super().__init__(catalog=catalog, start=start)
        self._kubelets = Lingering(self.api, Store(self.api, self._profile), self.cloud, catalog, self.clock)


def test_dying_around_a_burial_leaves_no_node() -> None:
    cloud = replace(SIMULATED, simulation=Uncleaned)
    simulation, (process,) = live(undisturbed, cloud=cloud)
    check(simulation, process, "nothing", cloud=cloud)
    steps = [at for at, kind in enumerate(process.kinds, start=1) if kind.startswith(_BURYING)]
    assert process.kinds.count("delete Node") == 2
    for at, before in ((at, before) for at in steps for before in (True, False)):
        simulation, (dying, _) = live(undisturbed, (at, before), cloud=cloud)
        check(simulation, dying, dying.step, cloud=cloud)

"""What goes wrong around a controller that dies, in each cloud, and the clouds as the suite names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from autoscaler.simulation.simulation import Simulation
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.simulated.cloud import Call, Fault
from tests.crash.clouds import AWS, GROUPS, KWOK, SIZED_GROUPS, KwokSimulation
from tests.crash.life import SIMULATED, Cloud
from tests.crash.plots import DRAIN, HOLD, LAUNCH, Plot
from tests.fakes.ec2 import TIMEOUT_AFTER
from tests.faults.world import AwsSimulation

_FIRST: Final = OfferingKey("g6.xlarge", "us-east-1a", CapacityType.ON_DEMAND)
_LATE: Final = timedelta(seconds=30)


def undisturbed(simulation: Simulation) -> None:
    """Everything goes well."""


def withdrawn(simulation: Simulation) -> None:
    """The first zone sells nothing, so the second attempt of the batch succeeds."""
    simulation.cloud.withdraw(_FIRST)


def one_left(simulation: Simulation) -> None:
    """One machine in the first zone, the other in the second."""
    simulation.cloud.limit(_FIRST, 1)


def deaf(simulation: Simulation) -> None:
    """The answers to the first launches are lost."""
    simulation.cloud.inject(Call.LAUNCH, *[Fault.LOST_ANSWER] * 4)


def hazy(simulation: Simulation) -> None:
    """The cloud lists new machines only after half a minute."""
    cloud = simulation.cloud
    cloud.behaviour = replace(cloud.behaviour, visibility=_LATE)


def _simulated(simulation: Simulation) -> None:
    for one in (one_left, deaf, hazy):
        one(simulation)


def _kwok(simulation: KwokSimulation) -> None:
    """KWOK has machines for everybody, and lists them at once; answers can be lost."""
    simulation.losing = 3


def _ec2(simulation: AwsSimulation) -> None:
    fake = simulation.fake
    fake.account.stock.limit(_FIRST.instance_type, _FIRST.zone, 1)
    for call in ("CreateFleet", "RunInstances", "LaunchInstances", "SetDesiredCapacity"):
        fake.faults.inject(call, *[TIMEOUT_AFTER] * 4)
    fake.account.set_behaviour(visibility=_LATE)


@dataclass(frozen=True)
class Chapter:
    """A provider by the name that people know, where its machines come from, and the trouble that this makes."""

    title: str
    cloud: Cloud
    trouble: Callable[[Any], None]

    def plots(self) -> tuple[Plot, ...]:
        """What can happen there: KWOK reserves nothing, so nothing is held."""
        return (LAUNCH, DRAIN) if self.cloud.block is None else (LAUNCH, DRAIN, HOLD)


CHAPTERS: Final = (
    Chapter("simulated", SIMULATED, _simulated),
    Chapter("kwok", KWOK, _kwok),
    Chapter("aws", AWS, _ec2),
    Chapter("aws-groups", GROUPS, _ec2),
    Chapter("aws-groups by size", SIZED_GROUPS, _ec2),
)

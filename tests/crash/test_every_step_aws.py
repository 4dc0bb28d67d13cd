"""The same crashes with the AWS adapter on the fake EC2. Dying before each write is dying after each call.

One world where there are five with the simulated cloud: what differs is the adapter, not the journal.
"""

from __future__ import annotations

from datetime import timedelta

from autoscaler.simulation.simulation import Simulation
from tests.crash.life import Cloud, check, live
from tests.fakes.ec2 import TIMEOUT_AFTER
from tests.faults.world import AwsSimulation


def _machines(simulation: Simulation) -> list[tuple[str, bool]]:
    assert isinstance(simulation, AwsSimulation)
    now = simulation.clock.now()
    return [(machine.id, not machine.alive(now)) for machine in simulation.fake.account.machines.values()]


AWS = Cloud("AWSNodeTemplate", AwsSimulation, _machines)


def troubled(simulation: AwsSimulation) -> None:
    """One machine in the first zone, the other in the second; the answers to the first launches are lost, and EC2
    lists new machines only after half a minute."""
    fake = simulation.fake
    fake.account.stock.limit("g6.xlarge", "us-east-1a", 1)
    fake.faults.inject("CreateFleet", *[TIMEOUT_AFTER] * 4)
    fake.account.set_behaviour(visibility=timedelta(seconds=30))


def test_dying_at_any_write_leaves_exactly_one_machine_a_node() -> None:
    simulation, (process,) = live(troubled, cloud=AWS)
    check(simulation, "nothing", cloud=AWS)
    assert process.writes > 20
    for at in range(1, process.writes + 1):
        simulation, (dying, _) = live(troubled, (at, True), cloud=AWS)
        assert dying.step, f"write {at} of {process.writes} was never reached"
        check(simulation, dying.step, cloud=AWS)

"""The controller's clock jumps by hours, both ways: nothing stays stuck, and no running pod is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NAMESPACES, NODES, PROVISIONED_NODES
from autoscaler.execution.launch import Providers
from autoscaler.lifecycle.moments import without_future
from autoscaler.lifecycle.provisioned_node import MachineState
from autoscaler.lifecycle.reflect import World, reflect
from autoscaler.lifecycle.spending import moved_on, recent_launches, spent_today
from autoscaler.loop.loop import Loop
from autoscaler.model.provisioned_node import Phase, PhaseChange
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.model.spending import Spending
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from instance_catalog.kubernetes.profile import REFERENCE
from providers.errors import ERRORS, ShortageError, backoff_of
from providers.simulated.cloud import Call, Fault
from providers.simulated.provider import SimulatedProvider
from tests.builders import ours
from tests.fakes.clocks import Jumping
from tests.unit.simulation.test_no_eviction import WAVE, catalog, finished, lost, pods, simulation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
JUMP = timedelta(hours=3)
TEN = Decimal(10)
# Rounds at which the clock moves; `make slow` adds more of them.
MOMENTS = [5, 11, 36, *(pytest.param(at, marks=pytest.mark.slow) for at in (0, 13, 33, 40))]


def controller(made: Simulation) -> tuple[Loop, Jumping]:
    clock = Jumping(made.clock)
    cluster = made.api.get(NAMESPACES, "kube-system")["metadata"]["uid"]
    providers = Providers({TEMPLATE_KIND: SimulatedProvider(made.cloud)}, cluster=cluster)
    return Loop(api=made.api, providers=providers, catalog=catalog(), profile=REFERENCE, clock=clock), clock


def live(made: Simulation, jumps: dict[int, timedelta], *, minutes: int) -> None:
    """Two rounds every 15 seconds; at these of them the controller's clock is moved."""
    loop, clock = controller(made)
    for step in range(4 * minutes):
        clock.offset = jumps.get(step, clock.offset)
        for _ in range(2):
            made.settle_cluster()
            loop.tick()
        made.clock.advance(timedelta(seconds=15))


@pytest.mark.parametrize("by", [JUMP, -JUMP], ids=["forward", "back"])
@pytest.mark.parametrize("at", MOMENTS)
def test_a_jump_at_any_moment_of_a_life(at: int, by: timedelta) -> None:
    made = simulation(pods("a"))
    live(made, {at: by}, minutes=25)
    assert (lost(made), finished(made)) == ([], WAVE)
    for resource in (NODES, PROVISIONED_NODES, LAUNCH_BATCHES):
        assert list_all(made.api, resource)[0] == ()
    if by < timedelta(0):
        assert len(made.cloud.machines) == WAVE, "nothing is launched twice"


@pytest.mark.parametrize("back", MOMENTS)
def test_a_clock_that_is_set_right_again(back: int) -> None:
    """Three hours ahead from the beginning: everything that was written down then lies in the future."""
    made = simulation(pods("a"))
    live(made, {0: JUMP, back: timedelta(0)}, minutes=25)
    assert (lost(made), finished(made)) == ([], WAVE)
    for resource in (NODES, PROVISIONED_NODES, LAUNCH_BATCHES):
        assert list_all(made.api, resource)[0] == ()


def test_a_back_off_ends_in_time() -> None:
    made = simulation(pods("a"))
    made.cloud.inject(Call.LAUNCH, *[Fault.THROTTLED] * 3)
    live(made, {0: JUMP, 2: timedelta(0)}, minutes=30)
    assert (lost(made), finished(made)) == ([], WAVE)


def test_a_wait_that_is_longer_than_any_is_over() -> None:
    soon, late = NOW + timedelta(minutes=2), NOW + JUMP
    snapshot = Snapshot(
        backoffs=(Backoff(late, reason=ShortageError.kind), Backoff(soon, reason=ShortageError.kind)),
        quarantines=(Quarantine("p", "t", (), times=1, until=late), Quarantine("p", "u", (), times=3, until=late)),
    )
    found = without_future(snapshot, NOW, backoff_of)
    assert [backoff.until for backoff in found.backoffs] == [NOW, soon]
    assert [quarantine.until for quarantine in found.quarantines] == [NOW, late]


def test_a_back_off_of_an_unknown_kind_lasts_as_long_as_any() -> None:
    assert backoff_of("FromTheFuture", 1) == max(error.longest_backoff for error in ERRORS)


def test_an_account_of_the_future_begins_anew() -> None:
    ahead = Spending(NOW + JUMP, usd_per_hour=TEN, recent_launches=TEN)
    account = moved_on(ahead, NOW, usd_per_hour=TEN)
    assert account.since == NOW
    later = NOW + timedelta(hours=1)
    assert (spent_today(account, later), recent_launches(account, 10, later)) == (TEN, 0)


@pytest.mark.parametrize(
    ("phase", "after", "then"),
    [(Phase.TERMINATING, timedelta(minutes=2), Phase.GONE), (Phase.LAUNCHED, timedelta(minutes=16), Phase.FAILED)],
    ids=["a machine that is gone", "one that never registers"],
)
def test_nodes_of_the_future_go_on_from_now(phase: Phase, after: timedelta, then: Phase) -> None:
    late = NOW + JUMP
    node = ours(
        "n", phase=phase, phase_since=late, provider="sim", provider_id="i-1", history=(PhaseChange(phase, late, "?"),)
    )
    there = {"i-1": MachineState.PENDING} if phase is Phase.LAUNCHED else {}
    for moment in (NOW, NOW + after):
        snapshot = without_future(Snapshot(provisioned=(node,)), moment, backoff_of)
        world = World(snapshot, machines=there, windows={"sim": timedelta(minutes=1)})
        (node,) = reflect(world, moment).provisioned
    assert node.phase is then
    assert all(at <= NOW + after for _, at, _ in node.history)

"""The simulated cloud beyond the contract: interruptions, extensions, quotas, templates, prices, lies."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.clock import EPOCH, VirtualClock
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import (
    TAG_CLUSTER,
    Instance,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    OfferingStatus,
    TemplateRef,
    describe_all,
)
from providers.errors import (
    AmbiguousError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    ShortageError,
    TemplateError,
    ThrottledError,
    UnclassifiedError,
)
from providers.simulated.cloud import Call, Fault, SimulatedCloud
from providers.simulated.machines import Behaviour
from providers.simulated.provider import SimulatedProvider

GPU = OfferingKey("sim-gpu-8", "zone-a", CapacityType.ON_DEMAND)
SPOT = OfferingKey("sim-gpu-8", "zone-a", CapacityType.SPOT)
BLOCK = OfferingKey("sim-gpu-8", "zone-a", CapacityType.CAPACITY_BLOCK)
RESERVED = OfferingKey("sim-gpu-8", "zone-a", CapacityType.RESERVED)
TAGS = FrozenMap({TAG_CLUSTER: "uid"})
HOUR = timedelta(hours=1)


class World:
    """A cloud, its clock and its provider."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.clock = VirtualClock()
        self.cloud = SimulatedCloud(self.clock, behaviour or Behaviour())
        self.provider = SimulatedProvider(self.cloud)

    def launch(self, *offerings: OfferingKey, token: str = "t", nodes: int = 1, template: str = "") -> LaunchAnswer:
        names = tuple(f"{token}-{index}" for index in range(nodes))
        reference = TemplateRef("SimulatedNodeTemplate", template)
        return self.provider.launch(LaunchRequest(token, names, offerings, TAGS, template=reference))

    def only(self) -> Instance:
        (instance,) = describe_all(self.provider, TAGS)
        return instance


def test_ids_follow_from_the_token_alone() -> None:
    assert World().launch(GPU).instances[0].id == World().launch(GPU).instances[0].id
    assert World().launch(GPU).instances[0].id != World().launch(GPU, token="u").instances[0].id


def test_a_machine_boots_runs_and_ends() -> None:
    world = World()
    world.launch(GPU)
    states = [world.only().state]
    world.clock.advance(timedelta(seconds=40))
    states.append(world.only().state)
    world.provider.terminate((world.only().id,))
    states.append(world.only().state)
    world.clock.advance(timedelta(seconds=20))
    states.append(world.only().state)
    assert states == [state for state in InstanceState if state is not InstanceState.STOPPED]
    world.clock.advance(timedelta(minutes=30))
    assert list(describe_all(world.provider, TAGS)) == []


def test_a_machine_that_is_not_visible_yet_is_called_gone_and_lives_on() -> None:
    world = World(Behaviour(visibility=timedelta(seconds=30)))
    machine = world.launch(GPU).instances[0].id
    assert world.provider.terminate((machine,)).gone == (machine,)
    world.clock.advance(timedelta(seconds=60))
    assert world.only().state is InstanceState.RUNNING


def test_latency_passes_in_every_call() -> None:
    world = World(Behaviour(latency=timedelta(seconds=3)))
    world.launch(GPU)
    world.provider.reservations()
    assert world.clock.monotonic() == 6.0


def test_a_spot_interruption_is_told_before_it_happens() -> None:
    world = World()
    world.launch(SPOT)
    world.cloud.interrupt(world.only().id, EPOCH + HOUR)
    assert world.only().reclaim_at == EPOCH + HOUR
    world.clock.advance(HOUR - timedelta(seconds=1))
    assert world.only().state is InstanceState.RUNNING
    world.clock.advance(timedelta(seconds=1))
    assert (world.only().state, world.only().message) == (InstanceState.TERMINATING, "spot interruption")


def test_a_lost_machine_is_terminated_at_once() -> None:
    world = World()
    world.launch(GPU)
    world.cloud.lose(world.only().id)
    assert (world.only().state, world.only().message) == (InstanceState.TERMINATED, "hardware failure")


def test_an_extension_moves_the_end_of_a_block_and_of_its_machines() -> None:
    world = World()
    offering = world.cloud.reserve("cr-1", BLOCK, count=1, starts_at=EPOCH, ends_at=EPOCH + 24 * HOUR)
    world.launch(offering)
    world.clock.advance(23 * HOUR)
    world.cloud.extend("cr-1", EPOCH + 48 * HOUR)
    world.clock.advance(HOUR)
    assert world.only().reclaim_at == EPOCH + 48 * HOUR - timedelta(minutes=30)
    assert world.only().state is InstanceState.RUNNING


def test_machines_of_an_ordinary_reservation_stay_after_its_end() -> None:
    world = World()
    offering = world.cloud.reserve("cr-2", RESERVED, count=1, starts_at=EPOCH, ends_at=EPOCH + HOUR)
    world.launch(offering)
    world.clock.advance(2 * HOUR)
    assert world.only().state is InstanceState.RUNNING
    assert world.only().reclaim_at is None


def test_an_ultraserver_block_is_taken_back_earlier() -> None:
    world = World()
    world.cloud.reserve("cr-3", BLOCK, count=1, starts_at=EPOCH, ends_at=EPOCH + 24 * HOUR, reclaim=HOUR)
    assert world.provider.reservations()[0].reclaim_at == EPOCH + 23 * HOUR


def test_a_reservation_of_another_type_cannot_be_launched_into() -> None:
    world = World()
    world.cloud.reserve("cr-1", BLOCK, count=1, starts_at=EPOCH)
    (failure,) = world.launch(OfferingKey("sim-gpu-4", "zone-a", CapacityType.CAPACITY_BLOCK, "cr-1")).failures
    assert failure.error.kind == "NotOffered"


def test_a_quota_bounds_all_machines_of_a_capacity_type_within_one_request_too() -> None:
    world = World()
    world.cloud.quota("on-demand", 3)
    world.cloud.limit(GPU, 2)
    other = OfferingKey("sim-gpu-4", "zone-a", CapacityType.ON_DEMAND)
    answer = world.launch(GPU, other, nodes=4)
    assert [instance.offering for instance in answer.instances] == [GPU, GPU, other]
    (failure,) = world.launch(GPU, token="u").failures
    assert isinstance(failure.error, QuotaError)


def test_a_shortage_lasts_as_long_as_it_was_said_to() -> None:
    world = World()
    world.cloud.shortage(GPU, since=EPOCH + HOUR, until=EPOCH + 2 * HOUR)
    assert world.launch(GPU, token="before").missing == ()
    world.clock.advance(HOUR)
    assert isinstance(world.launch(GPU, token="during").failures[0].error, ShortageError)
    world.clock.advance(HOUR)
    assert world.launch(GPU, token="after").missing == ()


def test_a_broken_template_refuses_every_launch_from_it() -> None:
    world = World()
    world.cloud.break_template("old", "image ami-1 does not exist")
    with pytest.raises(TemplateError, match="image ami-1"):
        world.launch(GPU, template="old")
    assert world.launch(GPU, template="new").missing == ()


def test_prices_and_limits_are_listed_and_withdrawn_offerings_are_not() -> None:
    world = World()
    world.cloud.price(GPU, Decimal("98.32"))
    world.cloud.limit(SPOT, 1)
    world.cloud.price(BLOCK, Decimal(1))
    world.cloud.withdraw(BLOCK)
    world.launch(SPOT)
    assert world.provider.offerings() == (OfferingStatus(GPU, Decimal("98.32")), OfferingStatus(SPOT, None, 0))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.LOST_REQUEST, AmbiguousError),
        (Fault.LOST_ANSWER, AmbiguousError),
        (Fault.THROTTLED, ThrottledError),
        (Fault.DENIED, PermissionDeniedError),
        (Fault.UNKNOWN_CODE, UnclassifiedError),
    ],
    ids=lambda value: value.value if isinstance(value, Fault) else "",
)
def test_each_fault_hits_each_call_once(fault: Fault, error: type[ProviderError]) -> None:
    world = World()
    calls = {
        Call.LAUNCH: lambda: world.launch(GPU),
        Call.DESCRIBE: lambda: world.provider.describe(TAGS),
        Call.TERMINATE: lambda: world.provider.terminate(("i-1",)),
        Call.RESERVATIONS: lambda: world.provider.reservations(),
        Call.OFFERINGS: lambda: world.provider.offerings(),
    }
    assert calls.keys() == set(Call)
    for call, ask in calls.items():
        world.cloud.inject(call, fault)
        with pytest.raises(error):
            ask()
        ask()
    assert len(world.cloud.machines) == 1


def test_every_fault_is_covered() -> None:
    assert {fault.value for fault in Fault} == {"lost-request", "lost-answer", "throttled", "denied", "unknown-code"}

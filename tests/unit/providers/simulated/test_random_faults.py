"""Whatever fails, a caller that repeats unclear calls unchanged ends up with exactly the machines it asked for."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.clock import VirtualClock
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import (
    TAG_CLUSTER,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    TerminateAnswer,
    describe_all,
)
from providers.errors import ThrottledError, UncertainError
from providers.simulated.cloud import Call, Fault, SimulatedCloud
from providers.simulated.machines import Behaviour
from providers.simulated.provider import SimulatedProvider

GPU = OfferingKey("sim-gpu-8", "zone-a", CapacityType.ON_DEMAND)
TAGS = FrozenMap({TAG_CLUSTER: "uid"})
REPEATABLE = st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.THROTTLED, Fault.UNKNOWN_CODE])
LIVE = (InstanceState.PENDING, InstanceState.RUNNING)


class Caller:
    """Asks until it knows, with a provider that loses its memory each time."""

    def __init__(self, visibility: int) -> None:
        self.clock = VirtualClock()
        self.cloud = SimulatedCloud(self.clock, Behaviour(visibility=timedelta(seconds=visibility), page_size=2))

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        while True:
            try:
                return SimulatedProvider(self.cloud).launch(request)
            except (UncertainError, ThrottledError) as error:
                self.clock.wait(error.backoff(1).total_seconds())

    def terminate(self, machine: str) -> TerminateAnswer:
        while True:
            try:
                return SimulatedProvider(self.cloud).terminate((machine,))
            except (UncertainError, ThrottledError) as error:
                self.clock.wait(error.backoff(1).total_seconds())

    def live(self) -> set[str]:
        self.clock.advance(self.cloud.behaviour.visibility)
        return {i.id for i in describe_all(SimulatedProvider(self.cloud), TAGS) if i.state in LIVE}


BATCHES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.lists(REPEATABLE, max_size=5)), min_size=1, max_size=5
)


@settings(deadline=None, derandomize=True)
@given(BATCHES, st.integers(0, 8), st.integers(0, 120))
def test_no_machine_is_lost_or_doubled(
    batches: list[tuple[int, int, list[Fault]]], stock: int, visibility: int
) -> None:
    caller = Caller(visibility)
    caller.cloud.limit(GPU, stock)
    known: set[str] = set()
    for index, (nodes, minimum, faults) in enumerate(batches):
        names = tuple(f"b{index}-{node}" for node in range(nodes))
        caller.cloud.inject(Call.LAUNCH, *faults)
        answer = caller.launch(LaunchRequest(f"t{index}", names, (GPU,), TAGS, minimum=min(minimum, nodes)))
        assert len(answer.instances) + len(answer.missing) == nodes
        assert len(answer.instances) == 0 or len(answer.instances) >= min(minimum, nodes)
        known |= {instance.id for instance in answer.instances}
    assert caller.live() == known
    assert len(known) <= stock


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 5), st.lists(REPEATABLE, max_size=8), st.integers(0, 120))
def test_every_machine_ends_once_it_is_terminated_after_it_was_seen(
    nodes: int, faults: list[Fault], visibility: int
) -> None:
    caller = Caller(visibility)
    names = tuple(f"n{node}" for node in range(nodes))
    caller.launch(LaunchRequest("t", names, (GPU,), TAGS))
    seen = caller.live()
    assert len(seen) == nodes
    caller.cloud.inject(Call.TERMINATE, *faults)
    for machine in seen:
        answer = caller.terminate(machine)
        assert machine in (*answer.terminating, *answer.gone)
    assert caller.live() == set()

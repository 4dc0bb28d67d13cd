"""Whatever order of crashes and cloud faults: one machine a node, nothing left over, the pods run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.simulation.simulation import Simulation
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.simulated.cloud import Call, Fault
from tests.crash.life import START, check, live

DEATHS = st.lists(st.tuples(st.integers(1, 35), st.booleans()), max_size=4)
FAULTS = st.lists(
    st.tuples(
        st.sampled_from([Call.LAUNCH, Call.DESCRIBE, Call.TERMINATE, Call.RESERVATIONS]),
        st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.THROTTLED]),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(deaths=DEATHS, faults=FAULTS, short=st.booleans(), limited=st.booleans())
def test_crashes_and_faults_leave_nothing_behind(
    deaths: list[tuple[int, bool]], faults: list[tuple[Call, Fault]], short: bool, limited: bool
) -> None:
    def prepare(simulation: Simulation) -> None:
        for call, fault in faults:
            simulation.cloud.inject(call, fault)
        first = OfferingKey("g6.xlarge", "us-east-1a", CapacityType.ON_DEMAND)
        if short:
            simulation.cloud.shortage(first, since=START, until=START + timedelta(minutes=2))
        if limited:
            simulation.cloud.limit(first, 1)

    simulation, (*_, process) = live(prepare, *deaths)
    check(simulation, process, f"{deaths} with {faults}")

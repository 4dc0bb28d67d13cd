"""A few of the schedules on every run of the tests; `make faults` runs thousands."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from instance_catalog.dataclass import replace
from providers.aws.provider import AwsProvider
from providers.contract import LaunchAnswer, LaunchRequest
from tests.fakes.ec2 import TIMEOUT_AFTER
from tests.faults.schedules import Schedules
from tests.faults.world import AwsSimulation

TestSchedules = pytest.mark.slow(Schedules.TestCase)
TestSchedules.settings = settings(max_examples=12, stateful_step_count=16, deadline=None, derandomize=True)


class Doubling(AwsProvider):
    """Uses another token each time."""

    calls = 0

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        Doubling.calls += 1
        return super().launch(replace(request, token=f"{request.token[:50]}-{Doubling.calls}"))


class DoublingWorld(AwsSimulation):
    """The same cluster with that provider, whose first answers from EC2 are lost."""

    provider = Doubling

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for call in ("CreateFleet", "RunInstances"):
            self.fake.faults.inject(call, TIMEOUT_AFTER)


class DoubledSchedules(Schedules):
    """Schedules that must fail."""

    worlds = (DoublingWorld,)


@pytest.mark.slow
def test_the_schedules_notice_an_adapter_without_lasting_tokens() -> None:
    few = settings(max_examples=400, stateful_step_count=16, deadline=None, derandomize=True, phases=[Phase.generate])
    with pytest.raises(AssertionError, match="more machines than nodes"):
        run_state_machine_as_test(DoubledSchedules, settings=few)

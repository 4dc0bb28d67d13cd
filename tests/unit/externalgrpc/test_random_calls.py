"""Random sequences of Cluster Autoscaler's calls over gRPC in virtual time: lost and late answers, repeated calls,
restarts of either side, two controllers, faults of the API server and of the cloud, quotas. Nothing is bought twice."""

from __future__ import annotations

import pytest

from tests.unit.externalgrpc.random_calls import Caller

SEQUENCES = 12  # `make faults` plays a thousand


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_nothing_is_bought_twice(seed: int) -> None:
    Caller(seed).live()


def test_the_sequences_order_and_delete() -> None:
    """They would prove nothing if nothing was ever ordered."""
    ordered = 0
    for seed in range(4):
        caller = Caller(seed)
        caller.wanted = caller.peak = 2
        caller.live()
        ordered += caller.written
    assert ordered > 4

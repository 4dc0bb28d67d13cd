"""What a reconcile leaves is freed with its last reference, not by the garbage collector: in a large cluster, a
collection takes longer than the reconcile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from autoscaler.loop.loop import Loop
from autoscaler.simulation.simulation import Simulation
from tests.crash.life import START, scenario, small_catalog


@contextmanager
def no_garbage() -> Iterator[None]:
    """Objects that only the garbage collector frees fail the test."""
    gc.collect()
    gc.disable()
    try:
        yield
        assert gc.collect() == 0
    finally:
        gc.enable()


def pods_wait() -> Loop:
    """The loop of a cluster in which pods wait for machines."""
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(scenario())
    simulation.settle_cluster()
    return simulation.new_loop()


def test_a_reconcile_leaves_nothing_to_the_garbage_collector() -> None:
    pods_wait().tick()  # the first plan of a process builds the parser of selectors, which leaves garbage
    loop = pods_wait()
    with no_garbage():
        bought = len(loop.tick().plan.launches)
    assert bought > 0
    with no_garbage():
        awaited = len(loop.tick().plan.launches)
    assert awaited == 0

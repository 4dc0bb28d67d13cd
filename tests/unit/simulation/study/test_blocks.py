"""CapacityBlocks of a study: prepaid machines that every task may use while they are open."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.errors import BadInputError
from autoscaler.simulation.study.prepared import Prepared, prepare
from autoscaler.simulation.study.run import START, Run
from autoscaler.simulation.study.task import Study, Task, Variant
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from tests.unit.simulation.study.builders import POOL, catalog, task

HOUR = 3600
PREPAID: dict[str, Any] = {
    **POOL,
    "metadata": {"name": "prepaid"},
    "spec": {**POOL["spec"], "capacityTypes": ["capacity-block"]},
}


def block(opens: float, closes: float, *, name: str = "november", **spec: Any) -> dict[str, Any]:
    """A machine with one L4, from one hour of the simulation to another."""
    times = {key: (START + timedelta(hours=at)).isoformat() for key, at in (("startsAt", opens), ("endsAt", closes))}
    return {
        "apiVersion": "foreslice.dev/v1alpha1",
        "kind": "CapacityBlock",
        "metadata": {"name": name},
        "spec": {
            "pool": "prepaid",
            "reservation": f"cr-{name}",
            "instanceType": "g6.xlarge",
            "zone": "us-east-1a",
            "count": 1,
            "hold": "WhileNeeded",
            **times,
            **spec,
        },
    }


def checked(*tasks: Task, blocks: tuple[dict[str, Any], ...], length: timedelta | None = None) -> Prepared:
    return prepare(Study("s", tasks, (POOL, PREPAID, *blocks), length), catalog(), skip=False)


def cost(found: Prepared) -> Decimal:
    outcome = Run(found.study, Variant("foreslice"), found.catalog).outcome()
    assert not outcome.never_started
    return outcome.usd


def test_a_task_runs_on_a_block_while_it_is_open() -> None:
    tasks = (task(1, HOUR, 600), task(2, 10 * HOUR, 600))
    without, found = checked(*tasks, blocks=()), checked(*tasks, blocks=(block(0.5, 4),))
    assert 0 < cost(found) < cost(without)
    assert cost(checked(*tasks, blocks=(block(0.5, 14),))) == 0
    assert cost(checked(*tasks, blocks=(block(4, 8),))) == cost(without), "it is closed when they arrive"


def test_tasks_need_no_toleration() -> None:
    """Their objects are made by the simulation, which knows the block."""
    tainted = block(0, 4, taint={"key": "example.com/ours", "effect": "NoSchedule"})
    assert cost(checked(task(1, HOUR, 600), blocks=(tainted,))) == 0


@pytest.mark.parametrize(
    ("windows", "served"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([(0, 3)], 2, id="open for two hours of the task"),
        pytest.param([(0, 24)], 3, id="only as long as its tasks run"),
        pytest.param([(1.5, 24)], 3, id="tasks may wait for it"),
        pytest.param([(-9, 1)], 0, id="closed when the task arrives"),
        pytest.param([(0, 2), (3, 9)], 4, id="two blocks, each by itself"),
    ],
)
def test_the_bound_is_without_what_blocks_can_serve(windows: list[tuple[float, float]], served: int) -> None:
    """A task of three hours that fits on a block's machine, and one of four GPUs that does not."""
    blocks = tuple(block(*window, name=f"b{number}") for number, window in enumerate(windows))
    tasks = (task(1, HOUR, 3 * HOUR), task(2, 2 * HOUR, HOUR, gpus=4))
    an_hour = checked(tasks[0], blocks=()).at_least / 3
    assert an_hour > 0
    assert checked(*tasks, blocks=()).at_least - checked(*tasks, blocks=blocks).at_least == served * an_hour


def test_scarce_hours_of_a_block_serve_what_costs_most_elsewhere() -> None:
    """Four GPUs for an hour, and eight GPU-hours of tasks: the large task costs 1.15 $ for each, others 0.80."""
    tasks = (task(1, 0, HOUR, gpus=4), *(task(number, 0, HOUR) for number in (2, 3, 4, 5)))
    large = checked(tasks[0], blocks=()).at_least
    found = checked(*tasks, blocks=(block(0, 1, instanceType="g6.12xlarge"),)).at_least
    assert checked(*tasks, blocks=()).at_least - found == large


def test_the_bound_has_no_machines_that_a_pool_keeps_from_buying() -> None:
    """A task that outlasts the block of its pool, whose spec.overflow is Never, runs nowhere else."""
    pool, held = POOL, block(0, 1, pool="gpu")
    found = prepare(Study("s", (task(1, 0, 3 * HOUR),), (pool, held)), catalog(), skip=False)
    assert found.at_least == 0


def test_the_bound_is_never_above_the_cost() -> None:
    tasks = tuple(task(number, number * 900, 2400 + 60 * number) for number in range(8))
    found = checked(*tasks, blocks=(block(0.5, 2), block(1, 3, name="december", count=2)))
    assert 0 < found.at_least <= cost(found)


@pytest.mark.parametrize(
    ("checkpoint", "nodes", "finished", "interrupted"),
    [
        pytest.param(None, 20, 0, 1, id="its work is lost"),
        pytest.param(timedelta(0), 20, 1, 0, id="it does the rest on a machine that is bought"),
        pytest.param(timedelta(0), 1, 0, 1, id="another pod has the only machine that can be bought"),
    ],
)
def test_a_pod_whose_block_ends_is_interrupted_unless_it_finishes_elsewhere(
    checkpoint: timedelta | None, nodes: int, finished: int, interrupted: int
) -> None:
    """The other pod needs a machine that the block does not have, and runs on."""
    few = {**POOL, "spec": {**POOL["spec"], "limits": {"nodes": nodes}}}
    tasks = (replace(task(1, 0, 0, gpus=4), runs=None), task(2, HOUR, 8 * HOUR, checkpoint=checkpoint))
    objects = (few, PREPAID, block(0.5, 4))
    found = prepare(Study("s", tasks, objects, timedelta(hours=20)), catalog(), skip=False)
    outcome = Run(found.study, Variant("foreslice"), found.catalog).outcome()
    assert (outcome.finished, outcome.interrupted, outcome.never_started) == (finished, interrupted, 0)
    assert outcome.complete is not bool(interrupted)
    evicted = int(checkpoint is not None)
    assert (outcome.moved, outcome.evicted) == (0, evicted), "it does not move to where it costs less"


@pytest.mark.parametrize("window", [(-5, 0), (24, 30)])
def test_a_block_that_is_closed_all_the_time_is_refused(window: tuple[float, float]) -> None:
    with pytest.raises(BadInputError, match="CapacityBlock november is not open while the simulation runs") as raised:
        checked(task(1, 0, 60), blocks=(block(*window),), length=timedelta(days=1))
    assert "which begins at 2026-11-02T00:00:00Z" in raised.value.next_step


@pytest.mark.parametrize(
    ("minutes", "budget", "refused"),
    [(30, "15m", True), (47.75, "15m", True), (48, "15m", False), (90, "57m15s", True), (90, "57m", False)],
)
def test_a_block_that_is_drained_before_its_machine_is_ready_is_refused(
    minutes: float, budget: str, refused: bool
) -> None:
    """The cloud takes machines back 30 minutes before its end; a machine is ready after 2m45s. It begins before the
    simulation does."""
    short = block(-5, minutes / 60, drain={"budget": budget})
    tasks = (task(1, 0, 10), task(2, 0, 600, gpus=4))
    if not refused:
        assert checked(*tasks, blocks=(short,)).at_least < checked(*tasks, blocks=()).at_least
        return
    said = "CapacityBlock november is too short for any pod: its machines are drained .* before endsAt, and need 2m45s"
    with pytest.raises(BadInputError, match=said):
        checked(*tasks, blocks=(short,))


def test_machines_of_a_block_above_the_limit_of_its_pool_are_noted() -> None:
    """As `plan` notes it."""
    assert checked(task(1, 0, 60), blocks=(block(0, 5, count=20),)).notes == ()
    (said,) = checked(task(1, 0, 60), blocks=(block(0, 5, count=21),)).notes
    assert said == (
        "CapacityBlock november has 21 machines, and pool prepaid launches no more than 20 (spec.limits.nodes): "
        "the others are paid for and never launched: raise the limit"
    )


@pytest.mark.parametrize("spec", [{"instanceType": "x9.large"}, {"zone": "us-east-1f"}, {"pool": "other"}])
def test_a_block_that_no_pool_offers_is_refused(spec: dict[str, str]) -> None:
    """Its machines would never be used."""
    with pytest.raises(BadInputError, match="no pool offers the machines of CapacityBlock november"):
        checked(task(1, 0, 60), blocks=(block(0, 5, **spec),))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "no pool offers the machines of CapacityBlock november"),
        ({"drivers": {"profiles": ["nvidai"]}}, "no instance type matches the pools\n.*'nvidai'"),
    ],
)
def test_a_block_of_the_only_pool_which_offers_no_blocks_is_refused(wrong: dict[str, Any], said: str) -> None:
    """Such a pool buys nothing either. A field that is wrong in itself comes first."""
    pool = {**POOL, "spec": {**POOL["spec"], "capacityTypes": ["on-demand"], **wrong}}
    with pytest.raises(BadInputError, match=said):
        prepare(Study("s", (task(1, 0, 60),), (pool, block(0, 5, pool="gpu"))), catalog(), skip=False)


@pytest.mark.parametrize("opens", [5, 50])
def test_a_task_waits_for_the_only_block_that_takes_it(opens: float) -> None:
    """Nothing runs and nothing is paid until then."""
    where = [
        *POOL["spec"]["requirements"][:2],
        {"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["g6.xlarge"]},
    ]
    small = {**POOL, "spec": {**POOL["spec"], "requirements": where}}
    later = block(opens, opens + 4, instanceType="g6.12xlarge")
    found = prepare(Study("s", (task(1, 0, 600, gpus=4),), (small, PREPAID, later)), catalog(), skip=False)
    assert cost(found) == 0

"""Tasks that are held outside a full cluster: nothing comes out differently, and what it takes stays bounded."""

from __future__ import annotations

import copy
from datetime import timedelta
from random import Random

import pytest

from autoscaler.cluster.resources import PODS
from autoscaler.report.study.outcome import Outcome
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.run import Run
from autoscaler.simulation.study.task import Study, Variant
from instance_catalog.dataclass import replace
from tests.unit.simulation.study.builders import POOL, catalog, task

NEVER = 1_000_000


def full(seed: int, *, nodes: int = 2, number: int = 25, gaps: tuple[int, ...] = (0, 0, 7, 60, 200)) -> Study:
    """More tasks than the pool has places for, of a few kinds, with gangs; most wait for long."""
    random, now, tasks = Random(seed), 0, []
    for index in range(number):
        now += random.choice(gaps)
        gang = random.random() < 0.1
        runs = random.choice([60, 600, 1800])
        tasks.append(
            task(index, now, runs, gpus=random.choice([1, 1, 1, 2]), replicas=2 if gang else 1, gang=gang),
        )
    pool = copy.deepcopy(POOL)
    pool["spec"]["limits"] = {"nodes": nodes}
    return prepare(Study("full", tuple(tasks), (pool,)), catalog(), skip=False).study


def comparable(outcome: Outcome) -> Outcome:
    """Without how often the loop looked."""
    return replace(outcome, reconciles=0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["greedy", "foreslice"])
def test_what_is_held_changes_no_outcome(policy: str) -> None:
    held = 0
    for seed in range(4):
        study = full(seed)
        few = Run(study, Variant(policy), catalog(), enough=4)
        all_inside = Run(study, Variant(policy), catalog(), enough=NEVER)
        outcome, wanted = few.outcome(), all_inside.outcome()
        assert comparable(outcome) == comparable(wanted), seed
        assert outcome.finished == outcome.pods
        held += outcome.reconciles < wanted.reconciles
    assert held >= 2


@pytest.mark.slow
def test_a_full_cluster_holds_a_bounded_number_of_pods() -> None:
    study = full(1, nodes=1, number=60)
    run, most = Run(study, Variant(), catalog(), enough=5), 0

    def look(arrived: int, total: int) -> None:
        nonlocal most
        most = max(most, len(run.simulation.api.stored(PODS)))

    outcome = run.outcome(look)
    kinds = 4
    assert outcome.finished == outcome.pods > 60
    assert most <= 4 + kinds * 2 * 5


def test_what_is_held_at_the_end_never_started() -> None:
    study = replace(full(2, nodes=1, number=60, gaps=(7,)), length=timedelta(minutes=20))
    outcome = Run(study, Variant(), catalog(), enough=3).outcome()
    assert outcome.finished + outcome.running + outcome.never_started == outcome.pods
    assert outcome.never_started > 20

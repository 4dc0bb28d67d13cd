"""What a study costs at least, and how much of the gap to it each run closes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.report.study.gap import Gap, study_document
from autoscaler.report.study.outcome import Outcome
from autoscaler.report.study.table import outcome_rows, summary_lines
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.run import Run
from autoscaler.simulation.study.task import Shape, Study, Task, Variant
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from tests.unit.simulation.study.builders import POOL, catalog, task
from tests.unit.simulation.study.test_parts import OUTCOME

GREEDY = replace(OUTCOME, policy="greedy", usd=Decimal(100))


def at_least(*tasks: Task, length: timedelta | None = None) -> Decimal:
    return prepare(Study("small", tasks, (POOL,), length), catalog(), skip=False).at_least


def price(name: str) -> Decimal:
    found = catalog().get(name).price_in("us-east-1a", CapacityType.ON_DEMAND)
    assert found is not None
    assert found.usd_per_hour is not None
    return found.usd_per_hour


def test_devices_cost_their_share_of_the_cheapest_machine_that_fits() -> None:
    small, four = price("g6.xlarge"), price("g6.12xlarge") / 4
    assert small < four
    assert at_least(task(1, 0, 3600)) == small
    assert at_least(task(1, 0, 1800, gpus=3)) == four * 3 / 2
    assert at_least(task(1, 0, 3600), task(2, 60, 7200, replicas=2)) == small * 5
    # Too many CPUs for the small machine: only a quarter of the large one fits.
    assert at_least(replace(task(1, 0, 3600), shape=Shape(gpus=1, cpu=20_000, memory=1024))) == four


def test_tasks_count_for_as_long_as_the_study_lasts() -> None:
    hour = timedelta(hours=1)
    assert at_least(task(1, 0, 36_000), length=hour) == price("g6.xlarge")
    assert at_least(replace(task(1, 1800, 0), runs=None), length=hour) == price("g6.xlarge") / 2
    assert at_least(task(1, 7200, 60), length=hour) == 0


@pytest.mark.parametrize(
    "shape",
    [Shape(gpus=1, models=("H100",)), Shape(gpus=9), Shape(gpus=1, device_class="mig.nvidia.com"), Shape(cpu=1000)],
)
def test_what_nobody_can_price_costs_nothing(shape: Shape) -> None:
    pool = {**POOL, "spec": {**POOL["spec"], "scope": {"pods": "All"}}}
    tasks = (task(1, 0, 3600), replace(task(2, 0, 3600), shape=shape))
    found = prepare(Study("small", tasks, (pool,)), catalog(), skip=True)
    assert found.at_least == price("g6.xlarge")


@pytest.mark.parametrize("policy", ["greedy", "foreslice"])
def test_no_run_costs_less(policy: str) -> None:
    tasks = [task(n, n * 100, 900 + 200 * n, gpus=1 + n % 4) for n in range(12)]
    prepared = prepare(Study("small", tuple(tasks), (POOL,)), catalog(), skip=False)
    variant = Variant(policy, timedelta(0))
    assert prepared.at_least <= Run(prepared.study, variant, prepared.catalog).outcome().usd


@pytest.mark.parametrize(("usd", "share"), [(100, 0.0), (60, 1.0), (80, 0.5), (120, -0.5)])
def test_the_share_is_of_the_way_from_greedy_to_the_bound(usd: int, share: float) -> None:
    assert Gap.of(Decimal(60), [GREEDY]).closed(replace(OUTCOME, usd=Decimal(usd))) == share


@pytest.mark.parametrize(
    ("greedy", "ours"),
    [
        ([], {}),
        ([replace(GREEDY, never_started=1)], {}),
        ([replace(GREEDY, interrupted=1)], {}),
        ([replace(GREEDY, usd=Decimal(60))], {}),
        ([GREEDY], {"never_started": 1}),
        ([GREEDY], {"interrupted": 1}),
    ],
)
def test_there_is_no_share_where_runs_cannot_be_compared(greedy: list[Outcome], ours: dict[str, Any]) -> None:
    assert Gap.of(Decimal(60), greedy).closed(replace(OUTCOME, **ours)) is None


def test_a_run_that_the_end_cuts_short_may_cost_less_than_the_bound() -> None:
    """The second pod waits for the only node, and the study ends before it does."""
    pool = {**POOL, "spec": {**POOL["spec"], "limits": {"nodes": 1}}}
    tasks = tuple(replace(task(n, 600 * n, 5400), shape=Shape(gpus=4, cpu=1000, memory=1024)) for n in (0, 1))
    prepared = prepare(Study("small", tasks, (pool,), timedelta(hours=2)), catalog(), skip=False)
    found = Run(prepared.study, Variant("greedy"), catalog()).outcome()
    gap = Gap.of(prepared.at_least, [found])
    assert (found.usd < gap.at_least, found.never_started) == (True, 0)
    said = "greedy, keep-alive pool costs less than that: the time ended before the pods that had waited did"
    assert any(line.startswith(said) for line in summary_lines("x", [found], gap))
    assert not any("less than that" in line for line in summary_lines("x", [found], Gap.of(found.usd, [found])))


def test_a_run_in_which_pods_never_started_says_why_and_is_not_the_cheapest() -> None:
    """The only node has a pod that runs on and on."""
    pool = {**POOL, "spec": {**POOL["spec"], "limits": {"nodes": 1}}}
    tasks = (replace(task(0, 0, 1, gpus=4), runs=None), task(1, 600, 60, gpus=4), task(2, 700, 60))
    prepared = prepare(Study("small", tasks, (pool,), timedelta(hours=1)), catalog(), skip=False)
    found = Run(prepared.study, Variant("greedy"), catalog()).outcome()
    assert (found.never_started, found.left_out) == (2, ("pool gpu: the limit of pool gpu on nodes (1) is reached",))
    runs = [found, replace(OUTCOME, usd=Decimal(80)), replace(OUTCOME, usd=Decimal(70), policy="closing")]
    lines = list(summary_lines("x", runs, Gap.of(Decimal(0), runs)))
    said = "greedy, keep-alive pool: 2 pods never started, and the cost is without them: "
    assert said + found.left_out[0] in lines
    assert "cheapest: closing, keep-alive 5m, 12.5% less than foreslice, keep-alive 5m" in lines
    starting = list(summary_lines("x", [replace(found, left_out=())], Gap.of(Decimal(0), [found])))
    assert said + "the time ended before their nodes were ready" in starting


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            1,
            "1 pod was interrupted when its machine ended, and did not finish; "
            "the cost is without the rest of its work",
        ),
        (
            2,
            "2 pods were interrupted when their machines ended, and did not finish; "
            "the cost is without the rest of their work",
        ),
    ],
)
def test_a_run_that_lost_pods_says_so_and_is_not_the_cheapest(lost: int, said: str) -> None:
    runs = [
        replace(OUTCOME, usd=Decimal(40), keep_alive="0s", interrupted=lost),
        replace(OUTCOME, usd=Decimal(80)),
        replace(OUTCOME, usd=Decimal(70), policy="closing"),
    ]
    lines = list(summary_lines("x", runs, Gap.of(Decimal(60), runs)))
    assert f"foreslice, keep-alive 0s: {said}" in lines
    assert not any("less than that" in line for line in lines), "the end of the time has nothing to do with it"
    assert "cheapest: closing, keep-alive 5m, 12.5% less than foreslice, keep-alive 5m" in lines


def test_moves_and_evictions_are_told_apart() -> None:
    """Only the former save anything."""
    runs = [replace(OUTCOME, moved=1), replace(OUTCOME, policy="closing", evicted=2)]
    lines = list(summary_lines("x", runs, Gap.of(Decimal(0), runs)))
    assert [line for line in lines if "moved" in line or "evicted" in line] == [
        "foreslice, keep-alive 5m: 1 pod moved to where they cost less",
        "closing, keep-alive 5m: 2 pods evicted before a block ended, and created again",
    ]


def test_the_cheapest_greedy_run_is_what_others_are_compared_with() -> None:
    slow = replace(OUTCOME, usd=Decimal(70), keep_alive="0s", waits=(0.0, 10.0, 20.0, 401.0))
    quick = replace(OUTCOME, usd=Decimal(80))
    runs = [replace(GREEDY, usd=Decimal(140)), GREEDY, slow, quick]
    gap = Gap.of(Decimal(60), runs)
    assert gap.greedy == GREEDY
    assert [row[3] for row in outcome_rows(runs, gap)] == ["-100%", "0%", "75%", "50%"]
    (nearly,) = outcome_rows([replace(OUTCOME, usd=Decimal("100.1"))], gap)
    assert nearly[3] == "0%"
    assert [gap.as_quick(run) for run in (slow, quick)] == [False, True]
    (said,) = [line for line in summary_lines("x", runs, gap) if "closes" in line]
    assert said.startswith("foreslice, keep-alive 5m closes 50% of the gap between that and greedy, keep-alive 5m")
    dear = replace(OUTCOME, usd=GREEDY.usd + 5)
    (said,) = [line for line in summary_lines("x", [GREEDY, dear, slow], gap) if "closes" in line]
    assert (
        said == "no other run closes a part of the gap between that and greedy, keep-alive 5m, with waiting (p95) no "
        "longer"
    )
    document = study_document("x", runs, gap)
    assert document["usdAtLeast"] == "60.00"
    assert [run["gapClosed"] for run in document["runs"]] == [-1.0, 0.0, 0.75, 0.5]

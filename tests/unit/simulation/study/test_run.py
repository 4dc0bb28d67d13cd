"""Runs of small studies: costs are what the machines' lives cost, and nothing runs twice."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from functools import cache

import pytest

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import PODS
from autoscaler.report.study.outcome import Outcome
from autoscaler.simulation.api_server import copied
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.run import START, Run, run_all
from autoscaler.simulation.study.task import Study, Variant
from instance_catalog.dataclass import replace
from providers.simulated.machines import Machine
from tests.unit.simulation.study.builders import POOL, catalog, study, task

MINUTE = timedelta(minutes=1)


@cache
def varied() -> Study:
    """Tasks that overlap, one of four GPUs, and a second burst after the first nodes are gone."""
    return study(
        task(1, 0, 600),
        task(2, 0, 900),
        task(3, 60, 300, gpus=4),
        task(4, 1000, 60),
        task(5, 7200, 120, gpus=2),
        task(6, 7230, 30),
    )


class Watched(Run):
    """A run that remembers every machine, and where every pod was seen."""

    def live(self) -> tuple[Outcome, dict[str, Machine], dict[str, set[str]]]:
        """The outcome, machines by id, nodes by pod."""
        machines: dict[str, Machine] = {}
        places: dict[str, set[str]] = defaultdict(set)

        def look(arrived: int, total: int) -> None:
            machines.update(self.simulation.cloud.machines)
            for event in self.simulation.api.watch(PODS, resource_version="0"):
                if event.type != "BOOKMARK" and event.object["spec"].get("nodeName"):
                    places[event.object["metadata"]["uid"]].add(event.object["spec"]["nodeName"])

        return self.outcome(look), machines, places


@pytest.mark.parametrize("policy", ["greedy", "foreslice"])
def test_the_cost_is_the_lives_of_the_machines_at_the_catalogs_prices(policy: str) -> None:
    outcome, machines, places = Watched(varied(), Variant(policy, 5 * MINUTE), catalog()).live()
    assert len(machines) == outcome.launched >= 3
    cost, gpu_hours = Decimal(0), 0.0
    for machine in machines.values():
        found = catalog().get(machine.offering.instance_type)
        assert found.price is not None
        assert machine.ended_at is not None
        seconds = (machine.ended_at - machine.launched_at).total_seconds()
        cost += found.price.usd_per_hour * Decimal(seconds) / 3600
        gpu_hours += found.device_count * seconds / 3600
    assert outcome.usd == pytest.approx(cost)
    assert outcome.gpu_hours_paid == pytest.approx(gpu_hours)
    assert outcome.timeline[-1].usd == pytest.approx(float(cost))
    width = outcome.timeline[1].at
    assert sum(point.waiting for point in outcome.timeline) * width == pytest.approx(sum(outcome.waits) / 3600)
    paid = sum(point.allocated + point.idle + point.starting for point in outcome.timeline) * width
    assert paid == pytest.approx(gpu_hours)
    assert len(places) == outcome.pods == outcome.finished == 6
    assert all(len(nodes) == 1 for nodes in places.values())


def test_allocated_hours_are_those_of_the_tasks() -> None:
    outcome = Run(varied(), Variant(), catalog()).outcome()
    asked = sum(t.shape.gpus * t.runs.total_seconds() for t in varied().tasks if t.runs is not None) / 3600
    assert outcome.gpu_hours_allocated == pytest.approx(asked)
    assert 0 < outcome.gpu_hours_allocated < outcome.gpu_hours_paid
    assert outcome.gpu_hours_idle >= 0


def test_a_task_waits_for_the_boot_and_for_nothing_on_a_warm_node() -> None:
    warm = study(task(1, 0, 600), task(2, 900, 60))
    outcome = Run(warm, Variant("foreslice", 30 * MINUTE), catalog()).outcome()
    assert outcome.launched == 1
    assert outcome.waits[0] == 0
    assert warm.boot.total_seconds() <= outcome.waits[1] <= warm.boot.total_seconds() + 60


def test_a_longer_keep_alive_never_lowers_what_is_paid() -> None:
    paid = [Run(varied(), Variant("foreslice", n * MINUTE), catalog()).outcome().gpu_hours_paid for n in (0, 5, 30)]
    assert paid == sorted(paid)
    assert paid[0] < paid[-1]


def test_two_runs_are_equal_also_in_other_processes() -> None:
    variants = [Variant("greedy"), Variant("foreslice")]
    here = run_all(varied(), variants, catalog(), processes=1, on_progress=lambda *told: None)
    there = run_all(varied(), variants, catalog(), processes=2, on_progress=lambda *told: None)
    assert here == there
    assert here[0].policy == "greedy"


def test_together_costs_no_more_than_one_at_a_time() -> None:
    burst = study(*(task(n, 0, 600) for n in range(1, 5)))
    greedy, together = (Run(burst, Variant(policy), catalog()).outcome() for policy in ("greedy", "foreslice"))
    assert together.usd <= greedy.usd
    assert together.finished == greedy.finished == 4


def test_a_gang_starts_at_one_moment() -> None:
    outcome = Run(study(task(1, 0, 60, replicas=3, gang=True)), Variant(), catalog()).outcome()
    assert outcome.finished == 3
    assert len(set(outcome.waits)) == 1


def test_the_end_of_a_scenario_leaves_what_runs_and_what_waits() -> None:
    cut = study(task(1, 0, 36_000), task(2, 590, 60, gpus=4))
    ended = Study(cut.name, cut.tasks, cut.objects, length=10 * MINUTE)
    run = Run(ended, Variant(), catalog())
    outcome = run.outcome()
    assert run.simulation.clock.now() == START + 10 * MINUTE
    assert (outcome.running, outcome.never_started, outcome.finished) == (1, 1, 0)
    prices = [found.price.usd_per_hour for found in catalog() if found.price is not None]
    assert min(prices) / 6 <= outcome.usd <= sum(prices) / 6
    assert outcome.wait(50) is not None
    assert outcome.wait(99) is None


@pytest.mark.parametrize("policy", ["greedy", "foreslice", "cheaper"])
def test_pools_of_a_cluster_launch_simulated_machines(policy: str) -> None:
    """A pool begins in mode Observe, and names the node template of its cloud."""
    own = copied(POOL)
    del own["spec"]["mode"], own["spec"]["disruption"]
    own["spec"]["nodeTemplateRef"] = {"kind": "AWSNodeTemplate", "name": "gpu"}
    outcome = Run(Study("own", (task(1, 0, 60),), (own,)), Variant(policy), catalog()).outcome()
    assert (outcome.launched, outcome.finished) == (1, 1)
    assert "mode" not in own["spec"]


@pytest.mark.parametrize("days", [2, 5, 100])
def test_the_last_task_is_simulated_after_any_gap(days: int) -> None:
    gap = study(task(1, 0, 60), task(2, days * 86_400, 60))
    outcome = Run(gap, Variant("foreslice", 5 * MINUTE), catalog()).outcome()
    assert (outcome.never_started, outcome.launched) == (0, 2)


def lonely_rest(checkpoint: timedelta | None) -> Study:
    """A pod of one GPU beside one of three, which ends after twenty minutes; the first runs for five hours."""
    return study(task(1, 0, 1200, gpus=3), task(2, 30, 5 * 3600, checkpoint=checkpoint))


@pytest.mark.parametrize(
    ("checkpoint", "moves"),
    [
        (None, False),  # it cannot be moved
        (timedelta(0), True),  # it loses nothing
        (timedelta(hours=4), False),  # moving it costs more than it saves
        (7 * MINUTE, True),
    ],
)
def test_a_moved_pod_does_the_rest_of_its_work_on_a_cheaper_machine(checkpoint: timedelta | None, moves: bool) -> None:
    stays = Run(lonely_rest(checkpoint), Variant("foreslice"), catalog()).outcome()
    found = Run(lonely_rest(checkpoint), Variant("cheaper"), catalog()).outcome()
    assert (found.finished, found.interrupted, found.moved, found.evicted) == (2, 0, int(moves), 0)
    assert found.nodes == ({"g6.12xlarge": 1, "g6.xlarge": 1} if moves else {"g6.12xlarge": 1})
    assert stays.moved == 0
    assert (found.usd < stays.usd / 2) is moves
    assert found.waits == stays.waits
    # What it did after the last of its checkpoints is done again.
    repeated = found.gpu_hours_allocated - 3 * 1200 / 3600 - 5
    assert 0.01 < repeated < 7 / 60 if checkpoint == 7 * MINUTE else repeated == pytest.approx(0, abs=0.001)


def crumbs(nodes: int) -> Study:
    """Pods of one GPU that come one after the other, to a machine of four that a larger pod has left; pools with so
    many nodes at most."""
    small = (task(number, 600 + 2400 * number, 3600) for number in range(1, 5))
    pool = {**POOL, "spec": {**POOL["spec"], "limits": {"nodes": nodes}}}
    tasks = (task(0, 0, 1200, gpus=3), task(9, 30, 3600), *small)
    return prepare(Study("crumbs", tasks, (pool,)), catalog(), skip=False).study


def test_a_closed_node_ends_with_the_pods_that_it_has() -> None:
    spread = Run(crumbs(20), Variant("foreslice"), catalog()).outcome()
    found = Run(crumbs(20), Variant("closing"), catalog()).outcome()
    assert spread.nodes == {"g6.12xlarge": 1}
    assert found.nodes == {"g6.12xlarge": 1, "g6.xlarge": 4}
    assert found.usd < spread.usd * Decimal("0.6")
    assert (found.finished, found.interrupted, found.moved) == (6, 0, 0)


@pytest.mark.parametrize("own", ["Close", "Cheaper"])
def test_greedy_closes_and_moves_nothing_whatever_the_pools_say(own: str) -> None:
    """The other policies are compared to it."""
    plain = crumbs(20)
    plain = replace(plain, tasks=tuple(replace(one, checkpoint=timedelta(0)) for one in plain.tasks))
    pools = replace(plain, objects=tuple(_with_consolidate(pool, own) for pool in plain.objects))
    usd = {
        (name, policy): Run(found, Variant(policy), catalog()).outcome().usd
        for name, found in (("plain", plain), ("pools", pools))
        for policy in ("greedy", "foreslice")
    }
    assert usd["pools", "greedy"] == usd["plain", "greedy"]
    assert usd["pools", "foreslice"] < usd["plain", "foreslice"]


def _with_consolidate(pool: Object, own: str) -> Object:
    disruption = pool["spec"]["disruption"] | {"consolidate": own}
    return {**pool, "spec": {**pool["spec"], "disruption": disruption}}


def test_a_closed_node_opens_for_pods_that_nothing_can_be_bought_for() -> None:
    spread = Run(crumbs(1), Variant("foreslice"), catalog()).outcome()
    found = Run(crumbs(1), Variant("closing"), catalog()).outcome()
    assert (found.waits, found.nodes) == (spread.waits, spread.nodes)
    # It ends a second earlier: it has the taint of a drain already.
    assert found.usd == pytest.approx(spread.usd, rel=Decimal("0.001"))


def test_an_empty_closed_node_takes_no_pod_for_which_a_cheaper_machine_can_be_bought() -> None:
    tasks = study(task(0, 0, 1200, gpus=3), task(1, 1365, 36000))
    spread = Run(tasks, Variant("foreslice", 5 * MINUTE), catalog()).outcome()
    found = Run(tasks, Variant("closing", 5 * MINUTE), catalog()).outcome()
    assert (spread.launched, found.launched) == (1, 2)
    assert found.usd < spread.usd / 3


@pytest.mark.parametrize(("told", "nodes"), [(True, 1), (False, 2)])
def test_a_closed_node_opens_for_a_pod_that_says_it_ends_sooner(told: bool, nodes: int) -> None:
    long, short = task(0, 0, 7200, gpus=3), task(1, 600, 1200)
    tasks = study(*(replace(found, says_duration=told) for found in (long, short)))
    found = Run(tasks, Variant("closing"), catalog()).outcome()
    assert (found.launched, found.finished) == (nodes, 2)

"""Checks before a simulation: whether each kind of task can ever be placed, and which types of the catalog matter."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import CAPACITY_BLOCKS, CAPACITY_POOLS
from autoscaler.errors import BadInputError
from autoscaler.lint.advice import blocks_beyond_limits
from autoscaler.manifests.load import Loaded, load
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.packing.problem import Budget
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate, candidates_of
from autoscaler.planning.unusable_fields import unusable_fields
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.words import counted
from autoscaler.simulation.api_server import copied
from autoscaler.simulation.study.blocks import blocks_of, open_always, prepaid_of, refuse_closed, refuse_unoffered
from autoscaler.simulation.study.bound import Machines
from autoscaler.simulation.study.entrance import kind_of
from autoscaler.simulation.study.objects import task_objects, template_name, templates_of
from autoscaler.simulation.study.run import START
from autoscaler.simulation.study.task import Study, Task
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.types.catalog import Catalog

_SHOWN: Final = 5
# Gangs that are planned for alone, to see whether the pools' limits suffice.
_GANGS: Final = 50
# The fields of scenarios and traces for fields of the objects that are made of them.
_FIELDS: Final = {
    ".deviceClassName": "deviceClass",
    ".selectors": "selectors",
    ".count": "gpus",
    "requests.cpu": "cpu",
    "requests.memory": "memory",
}
_PLENTY: Final = 100_000
# Nobody reads what these plans would cost: only which pods they leave out.
_POLICY: Final = Policy(considered=0, alternates=0, budget=Budget(any_cost=True))


@dataclass(frozen=True, slots=True)
class Prepared:
    """`study` has only tasks that can be placed, `catalog` the types that a pool admits; `left_out` are the other
    tasks. `at_least`: the least cost of the study in dollars under any policy. `notes`: what is wasted."""

    study: Study
    catalog: Catalog
    left_out: tuple[str, ...]
    at_least: Decimal
    notes: tuple[str, ...] = ()


def prepare(study: Study, catalog: Catalog, *, skip: bool) -> Prepared:
    """Check one task of each kind against an empty cluster. Raises BadInputError, unless hopeless kinds are to be
    left out (`skip`): then each is reported with its reason."""
    if not any(manifest["kind"] == CAPACITY_POOLS.kind for manifest in study.objects):
        step = "add a CapacityPool: beside the scenario, or with -f; docs/simulate.md has one"
        raise BadInputError("there is no CapacityPool, so no node can be launched", next_step=step)
    blocks = tuple(blocks_of(study.objects))
    refuse_closed(blocks, START, study.length, boot=study.boot)
    opened = tuple(open_always(m, START) if m["kind"] == CAPACITY_BLOCKS.kind else m for m in study.objects)
    objects = [_unlimited(manifest) for manifest in opened]
    samples = _kinds(study.tasks)
    loaded = _loaded([*objects, *_objects_of(samples, catalog)], catalog, _places(samples))
    offered = candidates_of(loaded.snapshot, catalog, Policy(), now=START)
    named = {candidate.instance_type.name for candidate in offered}
    kept = Catalog.of(
        (found for found in catalog if found.name in named), catalog.accelerators.values(), catalog.drivers.values()
    )
    _refuse_unoffered(study, blocks, offered, loaded.snapshot, catalog)
    _refuse_prices([c.usd_per_hour for c in offered])
    hopeless = dict(_hopeless(plan_for(loaded.snapshot, kept, _POLICY, START), samples))
    hopeless |= _beyond_limits(replace(study, objects=opened), samples, hopeless.keys(), kept)
    lines = tuple(_line(samples[index], why, study.tasks) for index, why in sorted(hopeless.items()))
    if lines and not skip:
        shown = "\n".join(f"  {line}" for line in lines[:_SHOWN])
        more = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        step = "change the pools or the tasks, or leave such tasks out with --skip-unplaceable"
        if any(not samples[index].shape.gpus for index in hopeless):
            step += "; pods without devices need a pool with `scope: {pods: All}`"
        raise BadInputError(
            f"{counted(len(lines), 'kind')} of tasks can never be placed\n{shown}{more}", next_step=step
        )
    without = {kind_of(samples[index]) for index in hopeless}
    tasks = tuple(task for task in study.tasks if kind_of(task) not in without)
    if not tasks:
        early = "every task arrives after the end: raise spec.length, or let tasks arrive earlier"
        raise BadInputError("no task is left to simulate", next_step="\n  ".join(lines[:_SHOWN]) or early)
    study = replace(study, tasks=tasks)
    prepaid = prepaid_of(blocks, offered, loaded.snapshot, START)
    at_least = Machines.of(offered, loaded.snapshot).at_least(study, prepaid)
    return Prepared(study, kept, (*study.late, *lines), at_least, tuple(_wasted(study, catalog)))


def _wasted(study: Study, catalog: Catalog) -> Iterator[str]:
    """A line for each block with more machines than its pools may have nodes. The prepared pools have no limits."""
    for found in blocks_beyond_limits(_loaded(study.objects, catalog, {}).snapshot):
        yield f"{found.subject} {found.message}: {found.next_step}"


def _beyond_limits(
    study: Study, samples: Sequence[Task], hopeless: Collection[int], catalog: Catalog
) -> Iterator[tuple[int, str]]:
    """By number of the kind, the reason why the largest gangs do not fit into the pools' limits."""
    gangs = [index for index, task in enumerate(samples) if task.gang and index not in hopeless]
    for index in sorted(gangs, key=lambda index: -samples[index].replicas)[:_GANGS]:
        alone = [samples[index]]
        loaded = _loaded([*study.objects, *_objects_of(alone, catalog)], catalog, _places(alone))
        found = _hopeless(plan_for(loaded.snapshot, catalog, _POLICY, START), alone)
        yield from ((index, why) for why in found.values())


def _places(samples: Sequence[Task]) -> Mapping[str, str]:
    """By the names of the objects of tasks, the place in the user's file that first needs them."""
    found: dict[str, str] = {}
    for task in samples:
        found.setdefault(f"ResourceClaimTemplate default/{template_name(task.shape)}", task.place)
        for resource, manifest in task_objects(_alone(task)):
            found[f"{resource.kind} default/{manifest['metadata']['name']}"] = task.place
    return found


def _refuse_unoffered(
    study: Study,
    blocks: Sequence[CapacityBlock],
    offered: Sequence[Candidate],
    snapshot: Snapshot,
    catalog: Catalog,
) -> None:
    """Raises BadInputError if the pools offer nothing, or not the machines of a block.

    Wrong fields are reported first.
    """
    wrong = "" if offered else "".join(f"\n  {text_of(reason)}" for reason in unusable_fields(snapshot, catalog))
    if not wrong:
        refuse_unoffered(blocks, offered)
    if not offered:
        step = "look at their requirements: `foreslice catalog list` shows what there is"
        raise BadInputError(f"{study.name}: no instance type matches the pools{wrong}", next_step=step)


def _refuse_prices(prices: Sequence[Decimal | None]) -> None:
    if any(price is not None and (price < 0 or not price.is_finite()) for price in prices):
        raise BadInputError("a price is negative or not a number", next_step="correct the overlay or the catalog file")


def _kinds(tasks: Sequence[Task]) -> list[Task]:
    """The first task of each kind."""
    found: dict[object, Task] = {}
    for task in tasks:
        found.setdefault(kind_of(task), task)
    return list(found.values())


def _objects_of(samples: Sequence[Task], catalog: Catalog) -> list[Object]:
    made = [*templates_of(tuple(samples), catalog), *(pair for task in samples for pair in task_objects(_alone(task)))]
    return [{"apiVersion": resource.api_version, "kind": resource.kind} | manifest for resource, manifest in made]


def _alone(task: Task) -> Task:
    """Replicas that need not start together are all alike."""
    return task if task.gang else replace(task, replicas=1)


def _unlimited(manifest: Object) -> Object:
    """A pool without limits: the check needs more nodes for one task of each kind than tasks in sequence do."""
    changed: Object = copied(manifest)
    if manifest["kind"] == CAPACITY_POOLS.kind:
        changed["spec"]["limits"] = {"nodes": _PLENTY}
    return changed


def _loaded(objects: Sequence[Object], catalog: Catalog, places: Mapping[str, str]) -> Loaded:
    """The objects as the planner reads them. Raises BadInputError with the place of the task that needs a wrong one."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    loaded = load(["-"], stdin=io.StringIO(text), drivers=catalog.drivers.values())
    if not loaded.ok:
        # Places in a generated text would not help the user.
        wrong = "\n".join(f"  {_said(problem, places)}" for problem in loaded.errors[:_SHOWN])
        raise BadInputError(
            f"the objects cannot be used\n{wrong}", next_step="correct them; docs/simulate.md shows every field"
        )
    return loaded


def _said(problem: Diagnostic, places: Mapping[str, str]) -> str:
    """The problem with the place and the field of a user's file."""
    place = places.get(problem.subject)
    if place is None:
        return f"{problem.subject}: {problem.field}: {problem.message}"
    field = next((name for end, name in _FIELDS.items() if end in problem.field), problem.field)
    return f"{place}: {field}: {problem.message}"


def _hopeless(plan: Plan, samples: Sequence[Task]) -> Mapping[int, str]:
    """By number of the kind, why its first pod is left out."""
    found: dict[int, str] = {}
    names: dict[str, int] = {}
    for index, task in enumerate(samples):
        for _, manifest in task_objects(_alone(task)):
            names[f"default/{manifest['metadata']['name']}"] = index
    for left in (*plan.left_out, *plan.outside):
        if left.pod in names:
            found.setdefault(names[left.pod], texts_of(left.reasons[:2]))
    return found


def _line(kind: Task, why: str, tasks: Sequence[Task]) -> str:
    number = sum(kind_of(task) == kind_of(kind) for task in tasks)
    gang = f"gang of {kind.replicas} × " if kind.gang else ""
    return f"{kind.place}: {gang}{kind.shape.text} ({counted(number, 'task')}): {why}"

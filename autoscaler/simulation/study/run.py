"""Variants of a study, in this process or in parallel processes: runs the tasks of each through cluster and production
loop in virtual time.

Time does not advance in steps: the clock jumps to the next arrival, or to the next time at which the cluster, the cloud
or the loop has work.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.resources import BY_KIND, CAPACITY_BLOCKS, CAPACITY_POOLS, PODS
from autoscaler.errors import InternalError
from autoscaler.kube.custom.schema import duration_text
from autoscaler.loop.loop import Tick
from autoscaler.model.capacity import ConsolidationPolicy, Mode
from autoscaler.model.plan import NodeAction
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.events import Event
from autoscaler.report.reasons import joined, text_of
from autoscaler.report.study.outcome import Outcome
from autoscaler.settings.settings import LoopSettings, Settings
from autoscaler.simulation.api_server import copied
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from autoscaler.simulation.study.blocks import blocks_of, reserve, without_taint
from autoscaler.simulation.study.entrance import ENOUGH, Entrance, Waiting
from autoscaler.simulation.study.fragmentation import usual_shapes
from autoscaler.simulation.study.ledger import Ledger
from autoscaler.simulation.study.objects import task_objects, templates_of
from autoscaler.simulation.study.task import Study, Task, Variant
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from providers.simulated.machines import Behaviour

START: Final = datetime(2026, 11, 2, tzinfo=UTC)
# All changes of the simulated cluster and cloud wake the loop, so it need not run in between.
_SETTINGS: Final = Settings(
    loop=LoopSettings(resync=timedelta(days=365), retry=timedelta(minutes=1), stale=timedelta(days=3650))
)
# A watch of Nodes shows the controller its own taint within a second, and the drain continues.
_TAINT_SEEN: Final = timedelta(seconds=1)
# Empty nodes that are still there after so long stay for ever, as those of a baseline.
_REST: Final = timedelta(days=1)
# How often finished machines are forgotten: a trace has thousands of them.
_FORGET_EVERY: Final = 64
# The most reasons of pods that never started, and of one of them.
_REASONS: Final = 2
# The consolidation of all pools under a policy; under the others each pool has its own.
_CONSOLIDATE: Final = {"closing": ConsolidationPolicy.CLOSE, "cheaper": ConsolidationPolicy.CHEAPER}
# The node template of all pools: the simulated cloud has the machines of every cloud.
_MACHINES: Final = {"kind": TEMPLATE_KIND, "name": "default"}
# What greedy, to which the others are compared, does not do. Its pools remove empty nodes instead.
_NOT_GREEDY: Final = frozenset(policy.value for policy in _CONSOLIDATE.values())

Progress = Callable[[int, int], None]
"""Called with the number of tasks that have arrived, and of all."""


class _NoEvents(EventQueue):
    """A queue that drops Events: a study has no reader for them."""

    def offer(self, event: Event, now: datetime) -> None:
        """Drops it."""


class Run:
    """One variant, from an empty cluster on."""

    def __init__(self, study: Study, variant: Variant, catalog: Catalog, *, enough: int = ENOUGH) -> None:
        """`enough` equal pods wait in the cluster before others are held outside."""
        self._study = study
        self._variant = variant
        self._catalog = catalog
        self.simulation = Simulation(
            catalog=catalog,
            start=START,
            settings=_SETTINGS,
            behaviour=Behaviour(boot=study.boot),
            tidy=True,
            explains=False,
        )
        self.simulation.new_loop(events=_NoEvents(self.simulation.api))
        shapes = usual_shapes(study.tasks)
        self.ledger = Ledger(self.simulation.api, self.simulation.cloud, catalog, shapes, START)
        self._waiting = deque(_in_order(study.tasks, variant))
        self._entrance = Entrance(self._enter, enough)
        self._left_out: Waiting = {}
        self._reconciles = 0
        self._last: Tick | None = None
        self._wakes: datetime | None = None
        self._due: datetime | None = START  # when something but arrivals falls due next
        for manifest in study.objects:
            self.simulation.api.create(BY_KIND[manifest["kind"]], _of_variant(manifest, variant))
        blocks = tuple(blocks_of(study.objects))
        reserve(blocks, self.simulation.cloud)
        self._last_block = max((block.starts_at for block in blocks), default=START)
        for resource, manifest in templates_of(study.tasks, catalog):
            self.simulation.api.create(resource, manifest)

    def outcome(self, progress: Progress = lambda arrived, total: None) -> Outcome:
        """Simulate to the end."""
        end = None if self._study.length is None else START + self._study.length
        total = len(self._waiting)
        rests_since = START
        for step in count():
            before = len(self._waiting)
            self._live()
            arrived = before - len(self._waiting)
            progress(total - len(self._waiting), total)
            if step % _FORGET_EVERY == 0:
                self.simulation.cloud.forget()
            moment, now = self._next_moment(), self.simulation.clock.now()
            if arrived or self._waiting or self.ledger.active:
                rests_since = now
            if moment is None or (end is not None and moment > end):
                break
            # Without a length it ends once nothing costs anything, or nothing but what a pool keeps anyway.
            if end is None and (self._is_over() or now - rests_since > _REST):
                break
            if self._awaits_block():
                rests_since = moment
            self.simulation.clock.advance_to(moment)
        if end is not None:
            self.simulation.clock.advance_to(end)
        now = self.simulation.clock.now()
        alive = "pool" if self._variant.keep_alive is None else duration_text(self._variant.keep_alive)
        found = self.ledger.outcome(self._study, self._variant, alive, now=now, reconciles=self._reconciles)
        return replace(found, left_out=tuple(self._why_left_out())) if found.never_started else found

    def _why_left_out(self) -> list[str]:
        """The most frequent reasons of the pods that the last plan left out. It has none, so it is made again."""
        if self._last is None:
            return []
        policy = Policy(considered=0, alternates=0, shown_fits=0)
        plan = plan_for(self._last.snapshot, self._catalog, policy, self._last.now)
        texts = Counter(text_of(reason) for left in plan.left_out for reason in joined(left.reasons[:_REASONS]))
        return [text for text, _ in texts.most_common(_REASONS)]

    def _live(self) -> None:
        """Carries out all events at this time."""
        now = self.simulation.clock.now()
        self.ledger.pass_time(now)
        due = self._due is not None and self._due <= now
        while True:
            before = len(self._waiting)
            # Nothing comes of tasks that are held.
            if self._arrive(now) or due:
                self._settle(now)
            # The new nodes may have room for more than the tasks that wait inside.
            due = self._entrance.release(self._left_out)
            if not due and not (len(self._waiting) < before and self._variant.policy == "greedy"):
                return

    def _settle(self, now: datetime) -> None:
        self._take_turns(now)
        self.simulation.settle(self._note)
        self.ledger.observe(now)
        while self._create_again(now):
            self.simulation.settle(self._note)
            self.ledger.observe(now)
        if self.simulation.clock.now() != now:
            raise InternalError("the simulated cloud has waited: its latency must be 0")

    def _take_turns(self, now: datetime) -> None:
        """Admits held tasks into the places of those that were placed, before the loop sees empty nodes."""
        while self._entrance.holds:
            self.simulation.settle_cluster()
            self.ledger.observe(now)
            if not self._entrance.release(self.ledger.inside):
                return

    def _arrive(self, now: datetime) -> bool:
        """Takes the due tasks, only one if each is planned by itself. Returns True if the cluster has one more."""
        entered = False
        while self._waiting and START + self._waiting[0].arrives <= now:
            task = self._waiting.popleft()
            for resource, manifest in task_objects(task):
                if resource == PODS:
                    self.ledger.expect(_key(manifest), task, now)
            entered |= self._entrance.arrive(task, now, self._left_out)
            if self._variant.policy == "greedy":
                break
        return entered

    def _enter(self, task: Task, arrived: datetime) -> None:
        for resource, manifest in task_objects(task):
            self.simulation.api.create(resource, manifest, since=arrived)
            if resource == PODS:
                self.ledger.enter(_key(manifest))

    def _create_again(self, now: datetime) -> bool:
        """Creates the remaining work of evicted pods, as their owners would. Returns True if there is any."""
        evicted = self.ledger.take_evicted()
        for resource, manifest, rest in ((*made, task) for task in evicted for made in task_objects(task)):
            self.ledger.expect(_key(manifest), rest, now, again=True)
            self.simulation.api.create(resource, manifest)
            self.ledger.enter(_key(manifest))
        return bool(evicted)

    def _note(self, tick: Tick) -> None:
        self._reconciles += 1
        self._last = tick
        self._left_out = self.ledger.kinds(left.pod for left in tick.plan.left_out)
        drains = any(decision.action is NodeAction.DRAIN for decision in tick.plan.nodes)
        self._wakes = tick.now + _TAINT_SEEN if drains else None

    def _next_moment(self) -> datetime | None:
        now = self.simulation.clock.now()
        arrival = START + self._waiting[0].arrives if self._waiting else None
        others = (self.simulation.next_moment(), self._wakes)
        self._due = min((moment for moment in others if moment is not None and moment > now), default=None)
        return min((moment for moment in (arrival, self._due) if moment is not None), default=None)

    def _is_over(self) -> bool:
        """Nothing will run any more, and nothing costs anything."""
        comes = self._waiting or self._entrance.holds or self._awaits_block()
        return not (comes or self.ledger.active or self.ledger.paid_machines)

    def _awaits_block(self) -> bool:
        """True if pods without a place may get one on a block that is yet to begin."""
        return bool(self._left_out) and self.simulation.clock.now() < self._last_block


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _in_order(tasks: tuple[Task, ...], variant: Variant) -> list[Task]:
    """By arrival; at the same time greedy takes one pod after the other, the largest first (first-fit decreasing)."""
    if variant.policy == "greedy":
        pods = [pod for task in tasks for pod in _pods_of(task)]
        return sorted(pods, key=lambda pod: (pod.arrives, -pod.shape.gpus, -pod.shape.cpu, pod.name))
    return sorted(tasks, key=lambda task: task.arrives)


def _pods_of(task: Task) -> list[Task]:
    """Each pod as a task of its own; a gang is one task."""
    if task.gang or task.replicas == 1:
        return [task]
    return [replace(task, name=f"{task.name}-r{index}", replicas=1) for index in range(task.replicas)]


def _of_variant(manifest: Object, variant: Variant) -> Object:
    """The object; a pool launches simulated machines, whatever its mode and its node template, and has the variant's
    time until an empty node is removed, and its consolidation. A block takes all tasks."""
    if manifest["kind"] == CAPACITY_BLOCKS.kind:
        return without_taint(manifest)
    if manifest["kind"] != CAPACITY_POOLS.kind:
        return manifest
    changes = {}
    if variant.keep_alive is not None:
        changes["after"] = duration_text(variant.keep_alive)
    if variant.policy in _CONSOLIDATE:
        changes["consolidate"] = _CONSOLIDATE[variant.policy].value
    elif variant.policy == "greedy" and manifest["spec"].get("disruption", {}).get("consolidate") in _NOT_GREEDY:
        changes["consolidate"] = ConsolidationPolicy.WHEN_EMPTY.value
    changed: Object = copied(manifest)
    changed["spec"] |= {"mode": Mode.ACT.value, "nodeTemplateRef": _MACHINES}
    changed["spec"].setdefault("disruption", {}).update(changes)
    return changed


OnProgress = Callable[[Variant, int, int], None]
"""Called with a variant, how many of its tasks have arrived, and of how many."""

_SHARED: Final[list[tuple[Study, Catalog]]] = []


def run_all(
    study: Study, variants: Sequence[Variant], catalog: Catalog, *, processes: int, on_progress: OnProgress
) -> tuple[Outcome, ...]:
    """The outcomes in the order of the variants, the same for any number of processes."""
    if processes <= 1 or len(variants) == 1:
        return tuple(_here(study, variants, catalog, on_progress))
    with ProcessPoolExecutor(min(processes, len(variants)), initializer=_share, initargs=(study, catalog)) as pool:
        asked = {pool.submit(_outcome, variant): variant for variant in variants}
        for done in as_completed(asked):
            if done.exception() is None:
                on_progress(asked[done], 1, 1)
        return tuple(future.result() for future in asked)


def _here(study: Study, variants: Sequence[Variant], catalog: Catalog, on_progress: OnProgress) -> Iterator[Outcome]:
    for variant in variants:

        def progress(arrived: int, total: int, *, variant: Variant = variant) -> None:
            on_progress(variant, arrived, total)

        yield Run(study, variant, catalog).outcome(progress)


def _share(study: Study, catalog: Catalog) -> None:
    _SHARED[:] = [(study, catalog)]


def _outcome(variant: Variant) -> Outcome:
    study, catalog = _SHARED[0]
    return Run(study, variant, catalog).outcome()

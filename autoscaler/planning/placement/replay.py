"""The nodes of a plan as worlds to schedule on. Checks whether the plan holds if kube-scheduler chooses the nodes.

All launched and starting nodes exist from the start (for moves of running pods: only the launched ones), and the plan's
pods are scheduled by scores in the scheduler's order. Pods are not bound to their node in the plan, except by
nominations that are in their status already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account
from autoscaler.model.plan import Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.placement.existing import Present, present_nodes
from autoscaler.planning.policy import WorkLimits
from autoscaler.planning.work import NODES
from autoscaler.scheduling.daemons import daemon_pods
from autoscaler.scheduling.pod_filters import domains_of_selected
from autoscaler.scheduling.schedule import Choice, first, schedule
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Replay:
    """The nodes of the plan's pods, by key, and the pods without a place."""

    placed: Mapping[str, str]
    stuck: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if every pod that the plan places has a place."""
        return not self.stuck

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """A warning for each pod without a place."""
        return tuple(Reason.of(Code.REPLAY_STUCK, Subject("pod", key)) for key in self.stuck)


def as_planned(plan: Plan, present: Present) -> World:
    """The existing nodes, with the pods that the plan places on them."""
    world = present.world
    for name in [name for name in world.nodes if present.targets.get(name) is not Target.EXISTING]:
        world = world.without_node(name)
    pods = {pod.key: pod for pod in world.snapshot.pods}
    for placement in plan.placements:
        if placement.target is Target.EXISTING and placement.node in world.nodes and placement.pod in pods:
            fits = Fits(placement.allocations, placement.preference)
            world = world.placed((pods[placement.pod],), placement.node, fits)
    return world


def replay(plan: Plan, snapshot: Snapshot, catalog: Catalog, choose: Choice) -> Replay:
    """Schedule the pods of the plan on its nodes: those that stay, those that start, and those that it launches."""
    return _replayed(plan, snapshot.pods, _with_launches(plan, snapshot, catalog), choose)


def _with_launches(
    plan: Plan,
    snapshot: Snapshot,
    catalog: Catalog,
    targets: Collection[Target] = (Target.EXISTING, Target.COMING),
) -> World:
    """The nodes of these `targets`, and those that the plan launches."""
    present = present_nodes(snapshot, catalog, World.of(snapshot, catalog.drivers.values()))
    world = present.world
    for name in [name for name in world.nodes if present.targets.get(name) not in targets]:
        world = world.without_node(name)
    for launch in plan.launches:
        daemons = daemon_pods(launch.node, snapshot.daemon_sets)
        world = world.with_node(launch.node, launch.slices, daemon_pods=daemons)
    return world


def _replayed(plan: Plan, pods: Iterable[Pod], world: World, choose: Choice) -> Replay:
    wanted = {placement.pod for placement in plan.placements}
    found = schedule(sorted((pod for pod in pods if pod.key in wanted), key=lambda pod: pod.turn), world, choose)
    return Replay({entry.pod.key: entry.node for entry in found.bound}, tuple(pod.key for pod in found.left))


def pod_without_place(
    plan: Plan, snapshot: Snapshot, moved: Sequence[Pod], *, catalog: Catalog, work: WorkLimits, now: datetime
) -> str:
    """The key of a pod of `moved` that may get no place on the nodes of the plan; "" if there is none. `snapshot`: the
    one that was planned.

    kube-scheduler may give the room that the plan keeps for a large pod to a small one. Controllers create the pods
    again in an order that is not known, so the first ones and the last ones are tried first. Equal pods take no places
    of each other. A node that starts is no room for them: a provider may hold its machine for weeks.
    """
    plan = replace(plan, placements=tuple(p for p in plan.placements if p.target is not Target.COMING))
    related = [pod for pod in moved if any(term.topology_key != labels.HOSTNAME for term in pod.pod_affinity)]
    keys = [pod.key for pod in moved]
    pending = [pod for pod in snapshot.pods if pod.key in set(keys)]
    classes = len(classes_of(bundles_of(pending, snapshot.claims), snapshot))
    if classes < 2 and not related:
        return ""
    world = _with_launches(plan, snapshot, catalog, (Target.EXISTING,))
    held = _held_by_affinity(plan, snapshot, related, world)
    if held or classes < 2:
        return held
    units = min(work.per_round, work.per_pod * classes) * (1 + len(world.nodes) // NODES)  # as for the plan
    for order in (pending, pending[::-1]):
        created = {pod.key: now.timestamp() + turn for turn, pod in enumerate(order)}
        again = (replace(pod, created=created.get(pod.key, pod.created)) for pod in snapshot.pods)
        account = Account(own=units, shared=Purse(work.selectors_per_round), most=units + work.selectors_per_round)
        try:
            with on_account(account):
                stuck = _replayed(plan, again, world, first).stuck
        except BudgetSpentError:
            return keys[0]
        if left := sorted(created.keys() & set(stuck)):
            return left[0]
    return ""


def _held_by_affinity(plan: Plan, snapshot: Snapshot, related: Iterable[Pod], world: World) -> str:
    """The key of a pod whose required affinity may keep the pod that replaces it in the zone that it leaves.

    kube-scheduler counts pods that are being deleted, and those of nodes that drain later; `snapshot` has them pending.
    Only a pod that stays, in the new zone, makes the move certain. The node itself is no such zone: its taint lets no
    pod come back.
    """
    leaves = {node.name: node.labels for node in snapshot.nodes}
    to = {placement.pod: placement.node for placement in plan.placements}
    for pod in related:
        here, there = leaves.get(pod.node_name or "", EMPTY), world.nodes[to[pod.key]].node.labels
        for key in {term.topology_key for term in pod.pod_affinity} - {labels.HOSTNAME}:
            if here.get(key) != there[key] and there[key] not in domains_of_selected(pod, world, key):
                return pod.key
    return ""

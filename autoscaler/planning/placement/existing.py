"""Places pods on existing and starting nodes before anything is bought, as kube-scheduler will do by itself.

This imitates the scheduler and optimizes nothing: pods in its order, each on the feasible node with the best
firstAvailable choices, existing nodes before starting ones. A bundle whose check aborts on any node (verdict *fatal*)
is stuck, because kube-scheduler aborts the whole attempt; buying nodes would not help it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from autoscaler.cel.common.evaluation import BudgetSpentError
from autoscaler.lifecycle.ownership import is_node_of
from autoscaler.lifecycle.provisioned_node import (
    awaits_machine,
    is_coming,
    is_over,
    is_stopped,
    may_take_pods,
    places_made,
)
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.node import Node
from autoscaler.model.plan import Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import Allocation
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fatal, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import Bundle, BundleClass
from autoscaler.planning.demand.demand import NEVER, awaited_bindings, claim_keys, why_postponed
from autoscaler.planning.demand.ties import joins
from autoscaler.planning.placement.kept_verdicts import REFUSED, AboutNodes, KeptVerdicts
from autoscaler.planning.supply.blocks import admission
from autoscaler.planning.supply.hypothetical import as_coming
from autoscaler.planning.work import Ledger, over_budget
from autoscaler.scheduling.node_filters import amounts_of, has_room
from autoscaler.scheduling.node_state import AddedMemory, AddedNode, NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog

# Taints of a starting node: they are removed automatically, or are left over from a cancelled drain.
_STARTING = (labels.NOT_READY_TAINT, labels.UNINITIALIZED_TAINT, labels.DRAINING_TAINT)


@dataclass(frozen=True, slots=True)
class Present:
    """The nodes that pods can use without a purchase, by name: whether they exist or start, and the block that they
    belong to.

    `kept` are cached verdicts of earlier plans; new ones are added.
    """

    world: World
    targets: Mapping[str, Target]
    blocks: Mapping[str, CapacityBlock] = field(default_factory=dict)
    kept: KeptVerdicts = field(default_factory=KeptVerdicts)


@dataclass(frozen=True, slots=True)
class Placed:
    bundle: Bundle
    node: str
    target: Target
    verdict: Fits

    def allocations_of(self, pod: Pod) -> FrozenMap[str, Allocation]:
        """The allocations of the pod's own claims, including the one for its extended resources."""
        own = {*claim_keys(pod), f"{pod.key}-extended-resources"}
        return FrozenMap({key: allocation for key, allocation in self.verdict.allocations.items() if key in own})


@dataclass(frozen=True, slots=True)
class Assigned:
    """The pods on existing nodes. By index of the class: `rest`, the bundles without a place; `stuck`, the reason why
    no node helps; `doubted`, the reason why it is not known whether one of the nodes would take the rest.

    `postponed`, by key of the bundle: the reason why nothing is bought for it yet. These bundles are in no `rest`.
    """

    world: World
    placed: tuple[Placed, ...]
    rest: Mapping[int, tuple[Bundle, ...]]
    stuck: Mapping[int, Fatal | Unknown]
    postponed: Mapping[str, Reason]
    undecided: Mapping[int, Unknown] = field(default_factory=dict)


def present_nodes(snapshot: Snapshot, catalog: Catalog, world: World, *, kept: AddedMemory | None = None) -> Present:
    """The snapshot's nodes, with starting nodes of Foreslice as they will be. Failed and leaving nodes accept no
    pods. `kept`: the starting nodes of the previous plan."""
    named = {node.node_name: node for node in snapshot.provisioned if not is_over(node)}
    starting = _Starting(snapshot, catalog, AddedMemory() if kept is None else kept)
    targets: dict[str, Target] = {}
    ours: dict[str, ProvisionedNode] = {}
    added: list[AddedNode] = []
    for node in snapshot.nodes:
        provisioned = named.pop(node.name, None)
        # While its machine is not known, a Node with the expected name counts as the one that was bought.
        if provisioned is not None and (is_node_of(node, provisioned) or awaits_machine(provisioned)):
            ours[node.name] = provisioned
        else:
            provisioned = None
        closed = provisioned is not None and provisioned.name in snapshot.closing
        taken = closed or (provisioned and (not may_take_pods(provisioned) or is_stopped(provisioned)))
        if node.deleting or _leaves(node) or taken:
            continue
        targets[node.name] = Target.COMING if provisioned and is_coming(provisioned) else Target.EXISTING
        if provisioned and is_coming(provisioned):
            added.append(starting.registered(node, provisioned, world.nodes[node.name].pods))
        elif provisioned and any(taint.key == labels.DRAINING_TAINT for taint in node.taints):
            added.append(_wanted_again(node, world))
    ours |= named
    for name, provisioned in sorted(ours.items()):
        comes = name not in targets and is_coming(provisioned) and not is_stopped(provisioned)
        if comes and (future := starting.expected(provisioned)):
            targets[name] = Target.COMING
            added.append(future)
    held = {
        name: starting.blocks[node.offering.block]
        for name, node in ours.items()
        if name in targets and node.offering.block in starting.blocks
    }
    return Present(world.with_added(added) if added else world, targets, held)


def _leaves(node: Node) -> bool:
    """True if another autoscaler removes the node: a pod that tolerates its taint would be evicted again."""
    return any(taint.key in labels.LEAVING_TAINTS for taint in node.taints)


def _wanted_again(node: Node, world: World) -> AddedNode:
    """The node without the taint of a drain that has not begun: a pod that needs the node cancels that drain."""
    taints = tuple(taint for taint in node.taints if taint.key != labels.DRAINING_TAINT)
    return AddedNode(NodeState.of(replace(node, taints=taints), world.nodes[node.name].pods))


class _Starting:
    """Starting nodes as they will be; the same objects as long as nothing of them changes."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, kept: AddedMemory) -> None:
        self._snapshot, self._catalog, self._kept = snapshot, catalog, kept
        self.blocks = {block.name: block for block in snapshot.blocks}
        self._pools = {pool.name: pool for pool in snapshot.pools}
        self._published = frozenset(slice_.reach.node_name for slice_ in snapshot.slices)
        self._read = (catalog, snapshot.profile, snapshot.from_files, *snapshot.daemon_sets)

    def expected(self, provisioned: ProvisionedNode) -> AddedNode | None:
        """One without a Node; None if its slices cannot be predicted any more."""

        def compute() -> AddedNode | None:
            future = as_coming(provisioned, self._snapshot, self._catalog)
            return AddedNode(NodeState.of(future.node, future.daemons), future.slices) if future else None

        return self._kept.of(provisioned.node_name, self._read_of(provisioned), compute)

    def registered(self, node: Node, provisioned: ProvisionedNode, pods: tuple[Pod, ...]) -> AddedNode:
        """One with a Node: without startup taints, with predicted slices if it has none."""
        published, pool = node.name in self._published, self._pools.get(provisioned.pool)

        def compute() -> AddedNode:
            startup = {(t.key, t.effect) for t in pool.startup_taints} if pool else set()
            taints = tuple(t for t in node.taints if t.key not in _STARTING and (t.key, t.effect) not in startup)
            future = None if published else as_coming(provisioned, self._snapshot, self._catalog)
            allocatable = node.allocatable or (future.node.allocatable if future else node.allocatable)
            ready = replace(node, taints=taints, ready=True, allocatable=allocatable)
            return AddedNode(NodeState.of(ready, pods), future.slices if future else ())

        return self._kept.of(node.name, (node, published, len(pods), *pods, *self._read_of(provisioned)), compute)

    def _read_of(self, provisioned: ProvisionedNode) -> tuple[object, ...]:
        """All that `as_coming` reads."""
        offering, pool = provisioned.offering, self._pools.get(provisioned.pool)
        bought = (offering, self.blocks.get(offering.block), provisioned.prediction, provisioned.labels)
        return (provisioned.pool, pool, *bought, *self._read)


def with_room(sample: Bundle, names: Iterable[str], world: World) -> list[str]:
    """Those of the nodes that have the amounts that the first pod of the bundle requests.

    On all others it does not fit, whatever its claims are: no filter before NodeResourcesFit gives another answer.
    """
    first = sample.pods[0]
    if first.unsupported:
        return list(names)
    wanted = amounts_of(first)
    return [name for name in names if has_room(wanted, world.nodes[name], world)]


def assign(
    classes: Mapping[int, BundleClass], present: Present, snapshot: Snapshot, *, now: datetime, ledger: Ledger
) -> Assigned:
    """Put bundles onto existing nodes, class by class in the scheduler's order (the order of the mapping).

    Before that, classes that are not decided in this plan keep the nodes that are starting for them. In their turn they
    take places that they find with the minimum of units; otherwise they stay unknown, unless a class that found all its
    places leaves its units to them. Without this rule, waiting classes could search the same few places in every plan,
    and nothing would be bought. Verdicts of nodes are cached.
    """
    present.kept.begin(present.world)
    run = _Run(present, snapshot, now, ledger)
    for index in filter(ledger.waits, classes):
        run.keep_places(index, classes[index])
    for index, bundle_class in classes.items():
        run.take(index, bundle_class)
    content = deque(index for index in classes if index not in run.rest)
    while content:
        for index in ledger.pass_on(content.popleft(), classes):
            run.take_again(index, classes[index])
            if index not in run.rest:
                content.append(index)
    return Assigned(run.world, tuple(run.placed), run.rest, run.stuck, run.postponed, run.undecided)


def joined(parts: Sequence[Assigned]) -> Assigned:
    """Several assignments as one; the world is that of the first, which was made last."""
    return Assigned(
        world=parts[0].world,
        placed=tuple(entry for part in parts for entry in part.placed),
        rest={index: bundles for part in parts for index, bundles in part.rest.items()},
        stuck={index: verdict for part in parts for index, verdict in part.stuck.items()},
        postponed={key: reason for part in parts for key, reason in part.postponed.items()},
        undecided={index: verdict for part in parts for index, verdict in part.undecided.items()},
    )


class _Run:
    """One pass over the classes."""

    def __init__(self, present: Present, snapshot: Snapshot, now: datetime, ledger: Ledger) -> None:
        self.world = present.world
        self.placed: list[Placed] = []
        self.rest: dict[int, tuple[Bundle, ...]] = {}
        self.stuck: dict[int, Fatal | Unknown] = {}
        self.postponed: dict[str, Reason] = {}
        self.undecided: dict[int, Unknown] = {}
        self._bindings = awaited_bindings(snapshot, now)
        self._made = places_made(snapshot.provisioned)
        self._held: set[str] = set()
        self._present, self._snapshot, self._now, self._ledger = present, snapshot, now, ledger

    def take(self, index: int, bundle_class: BundleClass) -> None:
        """Place the members one by one. Nodes only fill up, so a node that refused a member refuses its equals."""
        self._take(index, bundle_class, tuple(b for b in bundle_class.members if b.key not in self._held))

    def take_again(self, index: int, bundle_class: BundleClass) -> None:
        """Place the rest of a class that waited and may be decided now."""
        self.stuck.pop(index, None)
        self.undecided.pop(index, None)
        self._take(index, bundle_class, self.rest.pop(index, ()))

    def _take(self, index: int, bundle_class: BundleClass, members: tuple[Bundle, ...]) -> None:
        waits = self._ledger.waits(index)
        open_nodes = self._open(bundle_class.sample)
        for number, bundle in enumerate(members):
            found = self._best(index, bundle, open_nodes, ask_all=number == 0 and not waits)
            if not isinstance(found, tuple):
                left = members[number:]
                if waits and found is None:
                    found = Unknown((self._ledger.reason(index, bundle.pods[0], BudgetSpentError()),))
                if found is not None:
                    self.stuck[index] = found
                else:
                    self.postponed |= {b.key: why for b in left if (why := self._why_postponed(b))}
                    self.postponed |= {b.key: why for b in left if b.tied and (why := self._begun(index, b))}
                self.rest[index] = tuple(bundle for bundle in left if bundle.key not in self.postponed)
                return
            self._place(bundle, *found)

    def _begun(self, index: int, bundle: Bundle) -> Reason | None:
        """The reason why nothing is bought for tied pods that no node takes together: kube-scheduler puts the first one
        on a node that takes it alone, and then others beside it. Places those. If that is not known, nothing is bought
        for the whole class."""
        for pod in bundle.pods:
            alone = Bundle((pod,))
            found = self._best(index, alone, self._open(alone), ask_all=False)
            if isinstance(found, tuple):
                self._place(alone, *found)
            elif pod is bundle.pods[0]:
                if found is not None:
                    self.stuck[index] = found
                return None
        return next(filter(None, (joins(pod, self.world) for pod in bundle.pods)), None)

    def _place(self, bundle: Bundle, name: str, verdict: Fits) -> None:
        self.world = self.world.placed(bundle.pods, name, verdict)
        self.placed.append(Placed(bundle, name, self._present.targets[name], verdict))

    def keep_places(self, index: int, bundle_class: BundleClass) -> None:
        """A class that waits keeps the nodes that are starting for it: other classes would take them."""
        for bundle in bundle_class.members:
            name = self._made.get(bundle.key)
            if name in self._present.targets and name and self._welcome(bundle, name):
                verdict = self._ledger.fit_present(index, bundle.pods, name, self.world)
                if isinstance(verdict, Fits):
                    self._place(bundle, name, verdict)
                    self._held.add(bundle.key)

    def _why_postponed(self, bundle: Bundle) -> Reason | None:
        return next(filter(None, (why_postponed(pod, self._bindings, self._now) for pod in bundle.pods)), None)

    def _best(
        self, index: int, bundle: Bundle, open_nodes: list[str], *, ask_all: bool
    ) -> tuple[str, Fits] | Fatal | Unknown | None:
        """The best node; nodes that refuse are removed from the list. All nodes are checked once, to find a fatal
        verdict."""
        answers = self._present.kept.about(bundle, self.world) if open_nodes else None
        refused: set[str] = set()
        found = self._searched(index, bundle, open_nodes, refused, answers, ask_all=ask_all)
        if isinstance(found, str):
            # A cached verdict has no allocations: the claims are allocated again.
            verdict = self._ledger.fit_present(index, bundle.pods, found, self.world)
            if isinstance(verdict, Fits):
                found = (found, verdict)
            elif over_budget(verdict):
                found = verdict
            else:
                self._present.kept.forget()  # a wrong entry is a bug: the others are not used either
                return self._best(index, bundle, open_nodes, ask_all=ask_all)
        if refused:
            open_nodes[:] = [name for name in open_nodes if name not in refused]
        return found

    def _searched(
        self,
        index: int,
        bundle: Bundle,
        open_nodes: Sequence[str],
        refused: set[str],
        answers: AboutNodes | None,
        *,
        ask_all: bool,
    ) -> tuple[str, Fits] | str | Fatal | Unknown | None:
        """The same; only the name if the verdict is cached. Adds nodes that refuse to `refused`."""
        best: tuple[str, Fits] | str | None = None
        least, passed = 0, 0  # of the best node; nodes skipped by a cached verdict
        for name in self._by_nomination(bundle, open_nodes):
            preference = answers.of(name, self.world) if answers else None
            if preference == REFUSED:
                refused.add(name)
                passed += 1
                continue
            taken: tuple[str, Fits] | str = name
            if preference is None:
                verdict = self._asked(index, bundle, name, answers)
                if isinstance(verdict, Fatal):
                    return verdict
                if over_budget(verdict):
                    # The verdicts of the other nodes are not known: nothing is bought for it.
                    return best or verdict
                if not isinstance(verdict, Fits):
                    refused.add(name)
                    continue
                preference, taken = verdict.preference, (name, verdict)
            if best is None or preference < least:
                best, least = taken, preference
            if not least and not ask_all:
                break
        if passed and over_budget(spent := self._ledger.check_amounts_present(index, bundle.pods[0], passed)):
            return best or spent
        return best

    def _asked(self, index: int, bundle: Bundle, name: str, answers: AboutNodes | None) -> Verdict:
        """The node's verdict. It is cached, unless it ends the search."""
        verdict = self._ledger.fit_present(index, bundle.pods, name, self.world)
        if isinstance(verdict, Fatal) or over_budget(verdict):
            return verdict
        if isinstance(verdict, Unknown):
            self.undecided.setdefault(index, verdict)
        if answers:
            answers.keep(name, self.world, verdict)
        return verdict

    def _by_nomination(self, bundle: Bundle, names: Sequence[str]) -> Sequence[str]:
        nominated = {pod.nominated_node for pod in bundle.pods}
        return sorted(names, key=lambda name: name not in nominated)  # a stable sort: those come first

    def _order(self, bundle: Bundle) -> Iterator[str]:
        """Existing nodes, then starting ones; for pods for which nothing is ever bought only starting ones.

        If such a pod fits on an existing node and is still not bound, it waits for something that the snapshot does not
        show.
        """
        never = bundle.pods[0].no_node_before == NEVER
        for wanted in (Target.COMING,) if never else (Target.EXISTING, Target.COMING):
            yield from (name for name, target in self._present.targets.items() if target is wanted)

    def _open(self, bundle: Bundle) -> list[str]:
        roomy = with_room(bundle, self._order(bundle), self.world)
        return [name for name in roomy if self._welcome(bundle, name)]

    def _welcome(self, bundle: Bundle, name: str) -> bool:
        block = self._present.blocks.get(name)
        return block is None or admission(bundle, block, self._snapshot, self._now).refusal is None

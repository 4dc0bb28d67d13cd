"""The life of a ProvisionedNode: phases, edges with reasons and time-outs, and the planner's assumption for each.

Everything that affects the phase of a node is in this file. It reads no clock and calls nothing: `decide` returns the
edge for an observation, `advance` takes it.

Launching   the journal and the launch move a node up to LAUNCHED, because only they have the provider's answer.
Booting     observations move it to READY, or time-outs to FAILED; a FAILED node's machine is terminated.
Leaving     planning decides DRAINING, the drain TERMINATING; observation shows when the machine is GONE. A drain that
            requires an empty node returns to READY when a pod is found (leaving.py has these drains), and
            one for the end of a machine when that end was postponed. From TERMINATING a node returns only if the
            provider has refused to end the machine.

No other module lists phases: the meaning of a phase is in the predicates, which read the table ASSUME.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Final

from autoscaler.lifecycle.boot_times import BOOT
from autoscaler.model.provisioned_node import Phase, PhaseChange, ProvisionedNode
from instance_catalog.dataclass import dataclass, replace


class Why(Enum):
    """The reason of an edge; the value is in history and events."""

    __hash__ = object.__hash__  # its members are unique, and a key of every question about an edge

    CALL_RECORDED = "CallRecorded"
    NEXT_OFFERING = "NextOffering"
    OBTAINED = "Obtained"
    NO_OFFERING_LEFT = "NoOfferingLeft"
    BATCH_LOST = "BatchLost"
    NODE_REGISTERED = "NodeRegistered"
    NODE_VANISHED = "NodeVanished"
    BOOT_TIMED_OUT = "BootTimedOut"
    SLICES_COMPLETE = "SlicesComplete"
    DRIVER_NEVER_PUBLISHED = "DriverNeverPublished"
    NODE_READY = "NodeReady"
    NEVER_READY = "NeverReady"
    UNWANTED = "Unwanted"
    DRAINED = "Drained"
    POD_FOUND = "PodFound"
    STARTED_AGAIN = "StartedAgain"
    END_POSTPONED = "EndPostponed"
    INTERRUPTED = "Interrupted"
    MACHINE_LOST = "MachineLost"
    MACHINE_LEFT = "MachineLeft"
    MACHINE_GONE = "MachineGone"
    MACHINE_RECREATED = "MachineRecreated"
    NO_MACHINE = "NoMachine"


class Actor(Enum):
    """The component that moves a node along an edge."""

    EXECUTION = "execution"
    OBSERVATION = "observation"
    CLOCK = "clock"
    PLANNING = "planning"


class Assumption(Enum):
    """The planner's assumption about a node; the value is the sentence in the documentation."""

    COMING = "It will come with the predicted slices; pods may be planned onto it."
    STARTING = "It will soon take pods, with the slices it has published."
    PRESENT = "It takes pods, with the slices it has published and nothing else."
    LEAVING = "It takes no pods; it counts against limits and costs until its machine is gone."
    FAILED = "It takes no pods; if it has a machine, that counts against limits and costs until it is gone."
    NOTHING = "It does not exist, as far as plans are concerned."


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition from one phase to another. `after` is the time-out of CLOCK edges, counted from entering `source`;
    for booting, that of nodes without their own."""

    source: Phase
    target: Phase
    why: Why
    by: Actor
    after: timedelta | None = None


_DRIVERS: Final = timedelta(minutes=10)
_READY: Final = timedelta(minutes=10)

_EXECUTION, _SEEN, _CLOCK, _PLANNING = Actor.EXECUTION, Actor.OBSERVATION, Actor.CLOCK, Actor.PLANNING
_BOOTED: Final = (Phase.REGISTERED, Phase.DRIVERS_READY, Phase.READY)
# Phases in which a machine exists and is wanted, or still needed for a drain.
_WITH_MACHINE: Final = (Phase.LAUNCHED, *_BOOTED, Phase.DRAINING)

EDGES: Final[tuple[Edge, ...]] = (
    Edge(Phase.INTENDED, Phase.LAUNCHING, Why.CALL_RECORDED, _EXECUTION),
    Edge(Phase.INTENDED, Phase.FAILED, Why.NO_OFFERING_LEFT, _EXECUTION),
    Edge(Phase.LAUNCHING, Phase.LAUNCHING, Why.NEXT_OFFERING, _EXECUTION),
    Edge(Phase.LAUNCHING, Phase.LAUNCHED, Why.OBTAINED, _EXECUTION),
    Edge(Phase.LAUNCHING, Phase.FAILED, Why.NO_OFFERING_LEFT, _EXECUTION),
    *(Edge(phase, Phase.FAILED, Why.BATCH_LOST, _SEEN) for phase in (Phase.INTENDED, Phase.LAUNCHING)),
    Edge(Phase.LAUNCHED, Phase.REGISTERED, Why.NODE_REGISTERED, _SEEN),
    Edge(Phase.LAUNCHED, Phase.FAILED, Why.BOOT_TIMED_OUT, _CLOCK, BOOT),
    Edge(Phase.REGISTERED, Phase.DRIVERS_READY, Why.SLICES_COMPLETE, _SEEN),
    Edge(Phase.REGISTERED, Phase.FAILED, Why.DRIVER_NEVER_PUBLISHED, _CLOCK, _DRIVERS),
    Edge(Phase.DRIVERS_READY, Phase.READY, Why.NODE_READY, _SEEN),
    Edge(Phase.DRIVERS_READY, Phase.FAILED, Why.NEVER_READY, _CLOCK, _READY),
    *(Edge(phase, Phase.LAUNCHED, Why.NODE_VANISHED, _SEEN) for phase in _BOOTED),
    *(Edge(p, Phase.DRAINING, Why.UNWANTED, _PLANNING) for p in (Phase.INTENDED, Phase.LAUNCHING, Phase.LAUNCHED)),
    *(Edge(phase, Phase.DRAINING, Why.UNWANTED, _PLANNING) for phase in (*_BOOTED, Phase.FAILED)),
    *(Edge(phase, Phase.TERMINATING, Why.INTERRUPTED, _SEEN) for phase in _WITH_MACHINE),
    *(Edge(phase, Phase.GONE, Why.MACHINE_LOST, _SEEN) for phase in _WITH_MACHINE),
    Edge(Phase.DRAINING, Phase.READY, Why.POD_FOUND, _EXECUTION),
    Edge(Phase.DRAINING, Phase.READY, Why.STARTED_AGAIN, _EXECUTION),
    Edge(Phase.DRAINING, Phase.READY, Why.END_POSTPONED, _EXECUTION),
    Edge(Phase.DRAINING, Phase.TERMINATING, Why.DRAINED, _EXECUTION),
    Edge(Phase.DRAINING, Phase.GONE, Why.NO_MACHINE, _EXECUTION),
    Edge(Phase.TERMINATING, Phase.READY, Why.POD_FOUND, _EXECUTION),
    Edge(Phase.TERMINATING, Phase.GONE, Why.MACHINE_GONE, _SEEN),
    Edge(Phase.GONE, Phase.DRAINING, Why.MACHINE_RECREATED, _SEEN),
    Edge(Phase.FAILED, Phase.TERMINATING, Why.MACHINE_LEFT, _EXECUTION),
    Edge(Phase.FAILED, Phase.GONE, Why.NO_MACHINE, _EXECUTION),
)

ASSUME: Final[Mapping[Phase, Assumption]] = MappingProxyType(
    {
        Phase.INTENDED: Assumption.COMING,
        Phase.LAUNCHING: Assumption.COMING,
        Phase.LAUNCHED: Assumption.COMING,
        Phase.REGISTERED: Assumption.COMING,
        Phase.DRIVERS_READY: Assumption.STARTING,
        Phase.READY: Assumption.PRESENT,
        Phase.DRAINING: Assumption.LEAVING,
        Phase.TERMINATING: Assumption.LEAVING,
        Phase.FAILED: Assumption.FAILED,
        Phase.GONE: Assumption.NOTHING,
    }
)


def _assumed(*assumptions: Assumption) -> frozenset[Phase]:
    return frozenset(phase for phase, assumption in ASSUME.items() if assumption in assumptions)


# A reconcile asks dozens of times about each node, so each predicate is one look into a set.
_COMING: Final = _assumed(Assumption.COMING, Assumption.STARTING)
_TAKES_PODS: Final = _COMING | _assumed(Assumption.PRESENT)
_LEAVING: Final = _assumed(Assumption.LEAVING)
_FAILED: Final = _assumed(Assumption.FAILED)
_OVER: Final = _assumed(Assumption.NOTHING)


def is_coming(node: ProvisionedNode) -> bool:
    """True if it does not accept all its pods yet, and will."""
    return node.phase in _COMING


def may_take_pods(node: ProvisionedNode) -> bool:
    """True if pods may be planned on it: it exists or will, and it is not being removed."""
    return node.phase in _TAKES_PODS


def is_leaving(node: ProvisionedNode) -> bool:
    """True if it is drained or its machine ends."""
    return node.phase in _LEAVING


def has_failed(node: ProvisionedNode) -> bool:
    """True if it never became usable; it may still have a machine, and pods may run there."""
    return node.phase in _FAILED


def is_over(node: ProvisionedNode) -> bool:
    """True if only the object is left."""
    return node.phase in _OVER


def has_machine(node: ProvisionedNode) -> bool:
    """True if a machine was obtained that is not known to be gone: it is paid for."""
    return bool(node.provider_id) and not is_over(node)


def counts_against_limits(node: ProvisionedNode) -> bool:
    """True if it has, or will have, a machine: a failed node counts only if its machine may still exist."""
    return has_machine(node) if has_failed(node) else not is_over(node)


def has_come(node: ProvisionedNode) -> bool:
    """True if its Node exists and, as far as is known, may accept pods."""
    return node.phase in _BOOTED


def awaits_machine(node: ProvisionedNode) -> bool:
    """True while it is unknown whether it gets a machine."""
    return can_take(node, Why.NO_OFFERING_LEFT)


def awaits_node(node: ProvisionedNode) -> bool:
    """True if its machine boots: what its drivers publish decides on the next phase."""
    return is_coming(node) and not awaits_machine(node) and ASSUME[node.phase] is Assumption.COMING


def became_ready(node: ProvisionedNode, now: datetime) -> bool:
    """True if it became ready at this time, by itself: a reverted drain does not count."""
    return node.phase is Phase.READY and node.phase_since == now and last_edge(node) not in _TAKEN_BACK


def is_stopped(node: ProvisionedNode) -> bool:
    """True if a person stopped its machine."""
    return node.stopped_since is not None


def places_made(nodes: Iterable[ProvisionedNode]) -> dict[str, str]:
    """The pods for which nodes are starting, with the names of those nodes."""
    coming = (node for node in nodes if is_coming(node) and not is_stopped(node))
    return {pod: node.node_name for node in coming for pod in node.pods}


def last_edge(node: ProvisionedNode) -> str:
    """The reason of its last edge; "" at the beginning of its life."""
    return node.history[-1].why if node.history else ""


def can_take(node: ProvisionedNode, why: Why) -> bool:
    """True if its phase has an edge with this reason."""
    return (node.phase, why) in _EDGES


def edge_of(phase: Phase, why: Why) -> Edge:
    """The edge with this reason from a phase. Raises KeyError if there is none."""
    return _EDGES[phase, why]


class MachineState(Enum):
    """The provider's state of a node's machine. ABSENT: it is not listed any more, and it is not too young.

    STOPPED: a person shut it down; nothing follows from that, and its states before it stopped do not count any more.
    """

    __hash__ = object.__hash__  # its members are unique, and each observation of a node is looked up by its state

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a node in one reconcile. `machine` None: the provider was not called or did not answer, so nothing
    follows.

    `slices_complete`: every expected driver has published a complete pool. `batch_lost`: its LaunchBatch is gone, and
    no provider lists a machine of it, although all of them answered.
    """

    machine: MachineState | None = None
    registered: bool = False
    slices_complete: bool = False
    ready: bool = False
    batch_lost: bool = False


def decide(node: ProvisionedNode, seen: Observation, now: datetime) -> Edge | None:
    """The edge that the node takes now, None if it stays. Ends come before progress, progress before time-outs.

    A machine that a person stopped may be started again: until then its node stays in its phase, for any time.
    """
    if seen.machine is MachineState.STOPPED:
        return None
    if (edge := _observed(node.phase, seen)) is not None:
        return edge
    end = times_out_at(node)
    return _TIMEOUTS[node.phase] if end is not None and now >= end else None


def advance(node: ProvisionedNode, seen: Observation, now: datetime) -> ProvisionedNode:
    """The node in the phase that the observation leads to, over as many edges as needed, each in its history."""
    while (edge := decide(node, seen, now)) is not None:
        node = take(node, edge, now)
    return node


def take(node: ProvisionedNode, edge: Edge, now: datetime) -> ProvisionedNode:
    """The node at the end of an edge. Raises ValueError if it is not at its beginning."""
    if node.phase is not edge.source:
        raise ValueError(f"{node.name} is {node.phase.value}, not {edge.source.value}")
    history = (*node.history, PhaseChange(edge.target, now, edge.why.value))
    return replace(node, phase=edge.target, phase_since=now, history=history)


def times_out_at(node: ProvisionedNode) -> datetime | None:
    """The time at which the node fails if nothing changes; None in phases that may last."""
    due = _TIMEOUTS.get(node.phase)
    if due is None or due.after is None or node.phase_since is None:
        return None
    return node.phase_since + (node.boot_timeout if due.why is Why.BOOT_TIMED_OUT and node.boot_timeout else due.after)


@cache
def _observed(phase: Phase, seen: Observation) -> Edge | None:
    """The first edge that an observation leads along: there are at most some hundred pairs."""
    edges = (_EDGES_BY.get((phase, why)) for why in (*_ends(seen), *_progress(seen)))
    return next((edge for edge in edges if edge is not None), None)


def _ends(seen: Observation) -> Iterator[Why]:
    if seen.batch_lost:
        yield Why.BATCH_LOST
    match seen.machine:
        case MachineState.ABSENT | MachineState.TERMINATED:
            yield Why.MACHINE_GONE
            yield Why.MACHINE_LOST
        case MachineState.TERMINATING:
            yield Why.INTERRUPTED


def _progress(seen: Observation) -> Iterator[Why]:
    if not seen.registered:
        yield Why.NODE_VANISHED
        return
    yield Why.NODE_REGISTERED
    if seen.slices_complete:
        yield Why.SLICES_COMPLETE
    if seen.ready:
        yield Why.NODE_READY


_TAKEN_BACK: Final = frozenset({Why.POD_FOUND.value, Why.STARTED_AGAIN.value, Why.END_POSTPONED.value})
_EDGES: Final = MappingProxyType({(edge.source, edge.why): edge for edge in EDGES})
_EDGES_BY: Final = MappingProxyType({(edge.source, edge.why): edge for edge in EDGES if edge.by is Actor.OBSERVATION})
_TIMEOUTS: Final = MappingProxyType({edge.source: edge for edge in EDGES if edge.by is Actor.CLOCK})

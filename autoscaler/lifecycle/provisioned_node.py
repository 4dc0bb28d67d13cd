"""The life of a ProvisionedNode: phases, edges with reasons and time-outs, and what the planner may assume in each.

Everything that affects the phase of a node is in this file. It reads no clock and calls nobody: `decide` says which
edge an observation takes, `advance` takes it.

Launching   the journal and the launch move a node up to LAUNCHED, since only they know what a provider answered.
Booting     observations move it to READY, or time-outs to FAILED; a FAILED node's machine is terminated.
Leaving     planning decides DRAINING, the drain TERMINATING; observation says when the machine is GONE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final

from autoscaler.model.provisioned_node import Phase, ProvisionedNode


class Why(Enum):
    """The reason of an edge; the value is what history and events show."""

    CALL_RECORDED = "CallRecorded"
    NEXT_OFFERING = "NextOffering"
    OBTAINED = "Obtained"
    NO_OFFERING_LEFT = "NoOfferingLeft"
    NODE_REGISTERED = "NodeRegistered"
    NODE_VANISHED = "NodeVanished"
    BOOT_TIMED_OUT = "BootTimedOut"
    SLICES_COMPLETE = "SlicesComplete"
    DRIVER_NEVER_PUBLISHED = "DriverNeverPublished"
    NODE_READY = "NodeReady"
    NEVER_READY = "NeverReady"
    UNWANTED = "Unwanted"
    DRAINED = "Drained"
    INTERRUPTED = "Interrupted"
    MACHINE_LOST = "MachineLost"
    MACHINE_LEFT = "MachineLeft"
    MACHINE_GONE = "MachineGone"
    NO_MACHINE = "NoMachine"


class Actor(Enum):
    """Who moves a node along an edge."""

    EXECUTION = "execution"
    OBSERVATION = "observation"
    CLOCK = "clock"
    PLANNING = "planning"


class Assumption(Enum):
    """What the planner may assume of a node; the value is the sentence of the documentation."""

    COMING = "It will come with the predicted slices; pods may be planned onto it."
    STARTING = "It will soon take pods, with the slices it has published."
    PRESENT = "It takes pods, with the slices it has published and nothing else."
    LEAVING = "It takes no pods; it counts against limits and costs until its machine is gone."
    NOTHING = "It does not exist, as far as plans are concerned."


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one phase to another. `after` is the time-out of CLOCK edges, counted from entering `source`."""

    source: Phase
    target: Phase
    why: Why
    by: Actor
    after: timedelta | None = None


_BOOT: Final = timedelta(minutes=15)  # Karpenter's registration time-out; GPU images boot in 3 to 8 minutes
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
    Edge(Phase.LAUNCHED, Phase.REGISTERED, Why.NODE_REGISTERED, _SEEN),
    Edge(Phase.LAUNCHED, Phase.FAILED, Why.BOOT_TIMED_OUT, _CLOCK, _BOOT),
    Edge(Phase.REGISTERED, Phase.DRIVERS_READY, Why.SLICES_COMPLETE, _SEEN),
    Edge(Phase.REGISTERED, Phase.FAILED, Why.DRIVER_NEVER_PUBLISHED, _CLOCK, _DRIVERS),
    Edge(Phase.DRIVERS_READY, Phase.READY, Why.NODE_READY, _SEEN),
    Edge(Phase.DRIVERS_READY, Phase.FAILED, Why.NEVER_READY, _CLOCK, _READY),
    *(Edge(phase, Phase.LAUNCHED, Why.NODE_VANISHED, _SEEN) for phase in _BOOTED),
    *(Edge(p, Phase.DRAINING, Why.UNWANTED, _PLANNING) for p in (Phase.INTENDED, Phase.LAUNCHING, Phase.LAUNCHED)),
    *(Edge(phase, Phase.DRAINING, Why.UNWANTED, _PLANNING) for phase in _BOOTED),
    *(Edge(phase, Phase.TERMINATING, Why.INTERRUPTED, _SEEN) for phase in _WITH_MACHINE),
    *(Edge(phase, Phase.GONE, Why.MACHINE_LOST, _SEEN) for phase in _WITH_MACHINE),
    Edge(Phase.DRAINING, Phase.TERMINATING, Why.DRAINED, _EXECUTION),
    Edge(Phase.DRAINING, Phase.GONE, Why.NO_MACHINE, _EXECUTION),
    Edge(Phase.TERMINATING, Phase.GONE, Why.MACHINE_GONE, _SEEN),
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
        Phase.FAILED: Assumption.LEAVING,
        Phase.GONE: Assumption.NOTHING,
    }
)


class MachineState(Enum):
    """What the provider says of a node's machine. ABSENT: it lists the machine no more, and it is not too young."""

    PENDING = "pending"
    RUNNING = "running"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one tick saw of a node. `machine` None: the provider was not asked or did not answer, so nothing follows.

    `slices_complete`: every expected driver has published a complete pool.
    """

    machine: MachineState | None = None
    registered: bool = False
    slices_complete: bool = False
    ready: bool = False


def decide(node: ProvisionedNode, seen: Observation, now: datetime) -> Edge | None:
    """The edge that the node takes now, None if it stays. Ends come before progress, progress before time-outs."""
    for why in (*_ends(seen), *_progress(seen)):
        edge = _EDGES_BY.get((node.phase, why))
        if edge is not None:
            return edge
    due = _TIMEOUTS.get(node.phase)
    if due is not None and due.after is not None and node.phase_since is not None:
        return due if now >= node.phase_since + due.after else None
    return None


def advance(node: ProvisionedNode, seen: Observation, now: datetime) -> ProvisionedNode:
    """The node in the phase that the observation leads to, over as many edges as it takes, each in its history."""
    while (edge := decide(node, seen, now)) is not None:
        node = take(node, edge, now)
    return node


def take(node: ProvisionedNode, edge: Edge, now: datetime) -> ProvisionedNode:
    """The node at the end of an edge. Raises ValueError when it is not at its beginning."""
    if node.phase is not edge.source:
        raise ValueError(f"{node.name} is {node.phase.value}, not {edge.source.value}")
    history = (*node.history, (edge.target, now, edge.why.value))
    return replace(node, phase=edge.target, phase_since=now, history=history)


def times_out_at(node: ProvisionedNode) -> datetime | None:
    """When the node fails if nothing happens; None in phases that may last."""
    due = _TIMEOUTS.get(node.phase)
    if due is None or due.after is None or node.phase_since is None:
        return None
    return node.phase_since + due.after


def _ends(seen: Observation) -> Iterator[Why]:
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


_EDGES_BY: Final = MappingProxyType({(edge.source, edge.why): edge for edge in EDGES if edge.by is Actor.OBSERVATION})
_TIMEOUTS: Final = MappingProxyType({edge.source: edge for edge in EDGES if edge.by is Actor.CLOCK})

"""The service Expander: chooses one of the node groups that Cluster Autoscaler found feasible.

The order: capacity that is paid for already (blocks, then reservations), then dollars per hour of new machines, then
accelerators that the pods leave free, then the fewest nodes. An option that would start a gang only in part is left out
while another one is whole; if none is, the answer is empty, which holds the scale-up back for this loop.

Facts: kubernetes-sigs/cluster-autoscaler (2026-08-21), pkg/expander/grpcplugin/grpc_client.go: of an answer only the
ids count, an empty one is a veto, and an error passes all options on to the next expander. Slices and claims are not
sent: the claims of pods are read from the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import structlog

from autoscaler.externalgrpc.kubernetes_types import POD
from autoscaler.externalgrpc.node_groups import Launchable
from autoscaler.externalgrpc.refusal import CallRefusedError, Status
from autoscaler.externalgrpc.wire import Json, decode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys, running_members
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.dataclass import dataclass
from instance_catalog.types.instance_type import CapacityType

_LOG: Final = structlog.get_logger("foreslice.externalgrpc")
# Ranks of capacity types; options that Foreslice does not know are last.
_PAID: Final = {CapacityType.CAPACITY_BLOCK: 0, CapacityType.RESERVED: 1}
_BOUGHT: Final = 2
_UNKNOWN: Final = 3
_LONGEST_ID: Final = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """The ids of the options that are left, and why: prepaid, reserved, price, fragmentation, only, gang or unknown."""

    ids: tuple[str, ...]
    why: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Option:
    id: str
    nodes: int
    pods: frozenset[str]
    candidate: Candidate | None

    def cost(self, snapshot: Snapshot) -> tuple[int, Decimal, Decimal, int]:
        """The values for comparison, in this order: rank of the capacity type, dollars per hour, devices left over,
        nodes."""
        if self.candidate is None:
            return (_UNKNOWN, Decimal(0), Decimal(0), self.nodes)
        rank = _PAID.get(self.candidate.offering.capacity_type, _BOUGHT)
        price = self.candidate.usd_per_hour
        # An option without a price is after all that have one, as everywhere.
        dollars = Decimal("Infinity") if price is None else price * self.nodes
        count = self.candidate.instance_type.accelerator_count
        devices = Decimal(count.numerator) / Decimal(count.denominator) * self.nodes
        return (rank, dollars, max(Decimal(0), devices - _claimed(self.pods, snapshot)), self.nodes)


def best(options: Sequence[Json], launchable: Launchable) -> Choice:
    """The best of the options; those that are equal in everything all stay, for the next expander to choose."""
    read = [_option(option, launchable) for option in options]
    if all(option.candidate is None for option in read):
        return Choice(tuple(option.id for option in read), "unknown")
    whole = [option for option in read if not _half(option, launchable.snapshot)]
    if not whole:
        gangs = sorted({gang for option in read for gang in _half(option, launchable.snapshot)})
        return Choice((), "gang", f"no option starts all pods of {', '.join(gangs)}")
    costs = {option.id: option.cost(launchable.snapshot) for option in whole}
    least = min(costs.values())
    chosen = tuple(name for name, cost in costs.items() if cost == least)
    return Choice(chosen, _why(least, [cost for name, cost in costs.items() if name not in chosen]))


def _option(option: Json, launchable: Launchable) -> _Option:
    found = (decode(POD, content).get("metadata", {}) for content in option.get("podBytes", []))
    pods = frozenset(f"{each.get('namespace', 'default')}/{each.get('name', '')}" for each in found)
    name = option.get("nodeGroupId", "")
    return _Option(name, option.get("nodeCount", 0), pods, launchable.candidates.get(name))


def _half(option: _Option, snapshot: Snapshot) -> list[str]:
    """The gangs of which the option starts some pods, and with those that run fewer than must start together."""
    members: dict[str, int] = {}
    for pod in snapshot.pods:
        if pod.gang is not None and pod.key in option.pods:
            members[pod.gang.key] = members.get(pod.gang.key, 0) + 1
    known = [(key, count) for key, count in members.items() if key in snapshot.gangs]
    running = running_members(snapshot.pods)
    return [key for key, count in known if count + running.get(key, 0) < snapshot.gangs[key].min_count]


def _claimed(pods: frozenset[str], snapshot: Snapshot) -> Decimal:
    """The devices that the pods' claims ask for, each claim once."""
    keys = {key for pod in snapshot.pods if pod.key in pods for key in claim_keys(pod)}
    claims = [snapshot.claims[key] for key in keys if key in snapshot.claims]
    return Decimal(sum(getattr(request, "count", 1) for claim in claims for request in claim.requests))


def _why(least: tuple[int, Decimal, Decimal, int], others: Sequence[tuple[int, Decimal, Decimal, int]]) -> str:
    if not others:
        return "only"
    if least[0] < min(cost[0] for cost in others):
        return {0: "prepaid", 1: "reserved"}.get(least[0], "known")
    if least[:2] < min(cost[:2] for cost in others):
        return "price"
    return "fragmentation"


def _refuse_odd(options: Sequence[Json]) -> None:
    """Raises CallRefusedError for options that cannot be compared; Cluster Autoscaler then asks its next expander."""
    seen: set[str] = set()
    for number, option in enumerate(options):
        name, nodes = option.get("nodeGroupId", ""), option.get("nodeCount", 0)
        about = f"option {number}, node group {name[:_LONGEST_ID]!a}"
        wrong = ""
        if not name:
            wrong = "it has no nodeGroupId"
        elif nodes <= 0:
            wrong = f"nodeCount is {nodes}, and an option adds at least one node"
        elif name in seen:
            wrong = "another option has the same nodeGroupId, and an answer could not say which one it means"
        if wrong:
            step = "Cluster Autoscaler continues with the next expander; report it to the sender of these options"
            raise CallRefusedError(Status.INVALID_ARGUMENT, f"{about}: {wrong}", next_step=step)
        seen.add(name)


class Expander:
    """The call. `launchable` is that of the last reconcile, None before the first; `on_choice` gets the reason for
    which an option won."""

    def __init__(self, launchable: Callable[[], Launchable | None], on_choice: Callable[[str], None]) -> None:
        self._launchable = launchable
        self._on_choice = on_choice

    def call(self, method: str, asked: Json) -> Json:
        """BestOptions."""
        assert method == "BestOptions"
        options: Sequence[Json] = asked.get("options", [])
        _refuse_odd(options)
        launchable = self._launchable()
        ids = tuple(option.get("nodeGroupId", "") for option in options)
        choice = Choice(ids, "unknown") if launchable is None else best(options, launchable)
        self._on_choice(choice.why)
        _LOG.info("options_ranked", options=len(options), chosen=choice.ids, why=choice.why, detail=choice.detail)
        given: Mapping[str, Json] = {option.get("nodeGroupId", ""): option for option in options}
        return {"options": [{"nodeGroupId": name, "nodeCount": given[name].get("nodeCount", 0)} for name in choice.ids]}

"""Records the events of a simulated cluster, from its API server and the reconciles of the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.cluster.api import KubernetesApi, Object, WatchEvent, key_of
from autoscaler.cluster.resources import NODES, PODS, PROVISIONED_NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.loop.loop import Tick
from autoscaler.model.plan import ConsideredOutcome, Demand, NodeAction, Plan, PlannedNode, Target
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.timeline import (
    Arrived,
    Bound,
    Draining,
    Ended,
    Gone,
    Held,
    Launched,
    Noticed,
    Occurrence,
    PodResult,
    Published,
    Registered,
    Reused,
    Summary,
    TimelineEvent,
    asked_lines,
    chosen_of,
    not_placed_of,
    order_of,
)
from autoscaler.simulation.controllers import finished
from autoscaler.simulation.scenario import TITLE

# Claims before the pods that name them.
_WATCHED: Final = (RESOURCE_CLAIMS, PODS, NODES, RESOURCE_SLICES, PROVISIONED_NODES)
# The number of offerings not taken that each decision names.
_REJECTED: Final = 3


class TimelineRecorder:
    """The events so far. `on_event` is called with every event."""

    def __init__(self, api: KubernetesApi, on_event: Callable[[TimelineEvent], None] = lambda event: None) -> None:
        self._api = api
        self._on_event = on_event
        self._versions = dict.fromkeys(_WATCHED, "0")
        self._said: set[object] = set()
        self._arrived: dict[str, datetime] = {}
        self._bound: dict[str, Bound] = {}
        self._allocated: dict[str, tuple[str, ...]] = {}
        self._asked: dict[str, tuple[str, ...]] = {}
        self._ran: dict[str, datetime] = {}
        self._results: dict[str, str] = {}
        self._nodes: dict[str, ProvisionedNode] = {}
        self._launched: dict[str, datetime] = {}
        self._phases: dict[str, Phase] = {}
        self._spent = Decimal(0)
        self._terminated = 0

    def observe(self, tick: Tick) -> None:
        """Records a reconcile: its decisions, and the changes in the cluster since the last one."""
        seen = self._seen(tick.now)
        decided = [what for key, what in self._decided(tick) if self._first(key)]
        self._say(tick.now, [*seen, *decided])

    def catch_up(self, now: datetime) -> None:
        """Records all changes in the cluster."""
        self._say(now, self._seen(now))

    def summary(self, expected: Mapping[str, str], now: datetime) -> Summary:
        """The result. A pod that was not seen to end has its last phase."""
        running = [self._nodes[name] for name in self._launched]
        cost = sum((_cost(node, self._launched[node.name], now) for node in running), self._spent)
        pods = tuple(self._result(key, wanted) for key, wanted in expected.items())
        return Summary(self._terminated + len(running), self._terminated, len(running), cost, pods)

    def _result(self, pod: str, expected: str) -> PodResult:
        bound = self._bound.get(pod)
        result = self._results.get(pod, "Running" if pod in self._ran else "Pending")
        waited = self._ran[pod] - self._arrived[pod] if pod in self._ran else None
        if bound is None:
            return PodResult(pod, result, expected, waited=waited)
        return PodResult(pod, result, expected, bound.node, bound.devices, waited)

    def _say(self, now: datetime, whats: Iterable[Occurrence]) -> None:
        for what in sorted(whats, key=order_of):
            self._on_event(TimelineEvent(now, what))

    def _first(self, key: object) -> bool:
        new = key not in self._said
        self._said.add(key)
        return new

    def _decided(self, tick: Tick) -> Iterator[tuple[object, Occurrence]]:
        """The decisions of a reconcile, each with a key that stays the same as long as the decision does."""
        plan = tick.plan
        for placement in plan.placements:
            new = self._first(("placed", placement.pod))
            if new and placement.target is not Target.NEW:
                reused = Reused(placement.pod, placement.node, texts_of(placement.reasons))
                yield reused, reused
        alike: dict[object, list[PlannedNode]] = {}
        for launch in plan.launches:
            alike.setdefault((launch.pool, launch.offering, launch.reasons, _demand(plan, launch)), []).append(launch)
        for launches in alike.values():
            key = tuple(launch.name for launch in launches)
            yield key, chosen_of(launches, _alternatives(plan, launches[0]))
        for left in plan.left_out:
            refused = not_placed_of(left)
            yield refused, refused
        for decision in plan.nodes:
            if decision.action is NodeAction.HOLD and _idle(tick, decision.provisioned_node):
                held = Held(decision.provisioned_node, texts_of(decision.reasons))
                yield held, held
            elif decision.action is NodeAction.NOTICE and decision.deadline is not None:
                noticed = Noticed(decision.provisioned_node, decision.deadline)
                yield noticed, noticed

    def _seen(self, now: datetime) -> list[Occurrence]:
        """The changes that the API server's watches show since the last call."""
        seen: list[Occurrence] = []
        published: dict[str, Counter[str]] = {}
        for resource in _WATCHED:
            for event in self._api.watch(resource, resource_version=self._versions[resource]):
                self._versions[resource] = event.resource_version
                if event.type == "BOOKMARK":
                    continue
                if resource == RESOURCE_CLAIMS:
                    self._claim(event.object)
                elif resource == PODS:
                    seen += self._pod(event, now)
                elif resource == PROVISIONED_NODES:
                    seen += self._provisioned(event, now)
                elif resource == NODES and event.type == "ADDED":
                    seen.append(Registered(event.object["metadata"]["name"]))
                elif resource == RESOURCE_SLICES and event.type == "ADDED":
                    spec = event.object["spec"]
                    published.setdefault(spec["nodeName"], Counter())[spec["driver"]] += len(spec.get("devices", []))
        return seen + [Published(node, tuple(sorted(counts.items()))) for node, counts in published.items()]

    def _pod(self, event: WatchEvent, now: datetime) -> Iterator[Occurrence]:
        pod, key = event.object, key_of(event.object)
        if key not in self._arrived and self._claims_made(pod):
            self._arrived[key] = now
            asks = [f"{name}: {line}" for name, claim in self._names(pod) for line in self._asked.get(claim, ())]
            yield Arrived(key, pod["metadata"].get("annotations", {}).get(TITLE, ""), tuple(asks))
        phase = pod.get("status", {}).get("phase", "")
        if phase == "Running" and key not in self._ran:
            self._ran[key] = now
            self._bound[key] = Bound(key, pod["spec"]["nodeName"], self._devices(pod))
            yield self._bound[key]
        if key not in self._results and (finished(pod) or event.type == "DELETED"):
            self._results[key] = phase if finished(pod) else "Evicted"
            yield Ended(key, self._results[key])

    def _claims_made(self, pod: Object) -> bool:
        """True if every claim of the pod exists; before that it is not mentioned."""
        return all(claim in self._asked for _, claim in self._names(pod))

    def _names(self, pod: Object) -> Iterator[tuple[str, str]]:
        """The pod's claims: their name in the pod, and namespace/name ("" while it is not made)."""
        statuses = pod.get("status", {}).get("resourceClaimStatuses", [])
        generated = {entry["name"]: entry.get("resourceClaimName") for entry in statuses}
        for entry in pod["spec"].get("resourceClaims", []):
            claim = entry.get("resourceClaimName") or generated.get(entry["name"])
            yield entry["name"], f"{pod['metadata']['namespace']}/{claim}" if claim else ""
        made_up = pod.get("status", {}).get("extendedResourceClaimStatus")
        if made_up is not None:
            yield "extended resources", f"{pod['metadata']['namespace']}/{made_up['resourceClaimName']}"

    def _devices(self, pod: Object) -> tuple[str, ...]:
        """The devices that the pod's claims hold, as driver/device."""
        return tuple(device for _, claim in self._names(pod) for device in self._allocated.get(claim, ()))

    def _claim(self, raw: Object) -> None:
        """Records the requests and allocations of a claim, which may be released before its pod is read."""
        claim = parse_resource_claim(raw)
        self._asked[claim.key] = asked_lines(claim)
        if claim.allocation is not None:
            self._allocated[claim.key] = tuple(f"{found.driver}/{found.device}" for found in claim.allocation.devices)

    def _provisioned(self, event: WatchEvent, now: datetime) -> Iterator[Occurrence]:
        node = parse_provisioned_node(event.object)
        before, self._phases[node.name] = self._phases.get(node.name), node.phase
        self._nodes[node.name] = node
        if node.provider_id and node.name not in self._launched and node.phase is not Phase.GONE:
            self._launched[node.name] = now
            yield Launched(node.name, node.offering)
        if node.phase is Phase.DRAINING and before is not Phase.DRAINING:
            yield Draining(node.name, texts_of(node.reasons))
        if node.phase is Phase.GONE and node.name in self._launched:
            since = self._launched.pop(node.name)
            usd = _cost(node, since, now)
            self._spent += usd
            self._terminated += 1
            yield Gone(node.name, (now - since).total_seconds() / 3600, usd)


def _cost(node: ProvisionedNode, since: datetime, until: datetime) -> Decimal:
    price = node.offering.usd_per_hour or Decimal(0)
    return price * Decimal((until - since).total_seconds()) / 3600


def _idle(tick: Tick, name: str) -> bool:
    return any(node.name == name and node.empty_since is not None for node in tick.snapshot.provisioned)


def _demand(plan: Plan, launch: PlannedNode) -> Demand | None:
    return next((demand for demand in plan.demands if set(launch.pods) & set(demand.pods)), None)


def _alternatives(plan: Plan, launch: PlannedNode) -> list[str]:
    """The alternatives for the pods of a node: the next types that fit, and the reason why most others do not."""
    demand = _demand(plan, launch)
    if demand is None:
        return []
    taken = {launch.offering.instance_type}
    lines = []
    for entry in demand.considered:
        offering = entry.offering
        if (
            entry.outcome is ConsideredOutcome.FITS
            and offering.usd_per_hour is not None
            and offering.instance_type not in taken
        ):
            taken.add(offering.instance_type)
            lines.append(f"also fits: {offering_text(offering)} at {offering.usd_per_hour} $/h")
    misfits = [entry for entry in demand.considered if entry.outcome is ConsideredOutcome.DOES_NOT_FIT]
    counts = Counter(text_of(reason) for entry in misfits for reason in entry.reasons[:1])
    if not counts:
        return lines[:_REJECTED]
    text, count = counts.most_common(1)[0]
    rest = f"{len(misfits)} of the {len(demand.considered)} nearest offerings do not fit; {count} of them: {text}"
    return [*lines[:_REJECTED], rest]

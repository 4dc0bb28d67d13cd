"""Writes down what happens in a simulated cluster, from what its API server and the ticks of the loop show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from autoscaler.cluster.api import KubernetesApi, Object, WatchEvent, key_of
from autoscaler.cluster.resources import NODES, PODS, PROVISIONED_NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.loop import Tick
from autoscaler.model.plan import Disposal, Plan, PlannedNode
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.timeline import (
    Arrived,
    Bound,
    Draining,
    Ended,
    Gone,
    Happening,
    Held,
    Launched,
    Noticed,
    PodResult,
    Published,
    Registered,
    Summary,
    What,
    chosen_of,
    refused_of,
)
from autoscaler.simulation.controllers import finished
from autoscaler.simulation.scenario import TITLE

_WATCHED: Final = (PODS, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, PROVISIONED_NODES)
# How many offerings that were not taken are named for each decision.
_REJECTED: Final = 3


class Chronicle:
    """The story so far. `tell` gets every happening as it is noticed."""

    def __init__(self, api: KubernetesApi, tell: Callable[[Happening], None] = lambda happening: None) -> None:
        self._api = api
        self._tell = tell
        self._versions = dict.fromkeys(_WATCHED, "0")
        self._said: set[object] = set()
        self._arrived: dict[str, datetime] = {}
        self._bound: dict[str, Bound] = {}
        self._allocated: dict[str, tuple[str, ...]] = {}
        self._ran: dict[str, datetime] = {}
        self._results: dict[str, str] = {}
        self._nodes: dict[str, ProvisionedNode] = {}
        self._launched: dict[str, datetime] = {}
        self._phases: dict[str, Phase] = {}
        self._spent = Decimal(0)
        self._terminated = 0

    def observe(self, tick: Tick) -> None:
        """Take note of a tick: what it decided, then what has happened in the cluster since the last one."""
        self._say(tick.now, *self._seen(tick.now, RESOURCE_CLAIMS), *self._seen(tick.now, PODS))
        for launch in tick.plan.launches:
            self._say_once(tick.now, ("chosen", launch.name), chosen_of(launch, _alternatives(tick.plan, launch)))
        for left in tick.plan.left_out:
            refused = refused_of(left)
            self._say_once(tick.now, refused, refused)
        for decision in tick.plan.nodes:
            if decision.disposal is Disposal.HOLD and _idle(tick, decision.provisioned_node):
                held = Held(decision.provisioned_node, texts_of(decision.reasons))
                self._say_once(tick.now, held, held)
            elif decision.disposal is Disposal.NOTICE and decision.deadline is not None:
                noticed = Noticed(decision.provisioned_node, decision.deadline)
                self._say_once(tick.now, noticed, noticed)
        self.catch_up(tick.now)

    def catch_up(self, now: datetime) -> None:
        """Take note of what has happened in the cluster, whoever did it."""
        for resource in (PROVISIONED_NODES, NODES, RESOURCE_SLICES, RESOURCE_CLAIMS, PODS):
            self._say(now, *self._seen(now, resource))

    def summary(self, expected: Mapping[str, str], now: datetime) -> Summary:
        """How it came out. Pods that were not seen to end are in the phase they were left in."""
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

    def _say(self, now: datetime, *whats: What) -> None:
        for what in whats:
            self._tell(Happening(now, what))

    def _say_once(self, now: datetime, key: object, what: What) -> None:
        if key not in self._said:
            self._said.add(key)
            self._say(now, what)

    def _seen(self, now: datetime, resource: Resource) -> Iterator[What]:
        published: dict[str, dict[str, int]] = {}
        for event in self._api.watch(resource, resource_version=self._versions[resource]):
            self._versions[resource] = event.resource_version
            if event.type == "BOOKMARK":
                continue
            if resource == RESOURCE_CLAIMS:
                self._claim(event.object)
            elif resource == PODS:
                yield from self._pod(event, now)
            elif resource == PROVISIONED_NODES:
                yield from self._provisioned(event, now)
            elif resource == NODES and event.type == "ADDED":
                yield Registered(event.object["metadata"]["name"])
            elif resource == RESOURCE_SLICES and event.type == "ADDED":
                spec = event.object["spec"]
                drivers = published.setdefault(spec["nodeName"], {})
                drivers[spec["driver"]] = drivers.get(spec["driver"], 0) + len(spec.get("devices", []))
        for node, counts in published.items():
            yield Published(node, tuple(sorted(counts.items())))

    def _pod(self, event: WatchEvent, now: datetime) -> Iterator[What]:
        pod, key = event.object, key_of(event.object)
        if key not in self._arrived:
            self._arrived[key] = now
            yield Arrived(key, pod["metadata"].get("annotations", {}).get(TITLE, ""), ())
        phase = pod.get("status", {}).get("phase", "")
        if phase == "Running" and key not in self._ran:
            self._ran[key] = now
            self._bound[key] = Bound(key, pod["spec"]["nodeName"], self._devices(pod))
            yield self._bound[key]
        if key not in self._results and (finished(pod) or event.type == "DELETED"):
            self._results[key] = phase if finished(pod) else "Evicted"
            yield Ended(key, self._results[key])

    def _devices(self, pod: Object) -> tuple[str, ...]:
        """The devices that the pod's claims hold, as driver/device."""
        namespace = pod["metadata"]["namespace"]
        generated = {
            entry["name"]: entry.get("resourceClaimName")
            for entry in pod.get("status", {}).get("resourceClaimStatuses", [])
        }
        names = (e.get("resourceClaimName") or generated[e["name"]] for e in pod["spec"].get("resourceClaims", []))
        return tuple(device for name in names for device in self._allocated.get(f"{namespace}/{name}", ()))

    def _claim(self, claim: Object) -> None:
        """Remember what a claim holds: by the time its pod is looked at, it may have been given back."""
        allocation = claim.get("status", {}).get("allocation")
        if allocation is not None:
            results = allocation["devices"]["results"]
            self._allocated[key_of(claim)] = tuple(f"{result['driver']}/{result['device']}" for result in results)

    def _provisioned(self, event: WatchEvent, now: datetime) -> Iterator[What]:
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
    price = Decimal(node.offering.usd_per_hour or 0)
    return price * Decimal((until - since).total_seconds()) / 3600


def _idle(tick: Tick, name: str) -> bool:
    return any(node.name == name and node.empty_since is not None for node in tick.snapshot.provisioned)


def _alternatives(plan: Plan, launch: PlannedNode) -> list[str]:
    """What else was considered for the pods of a node: the next offerings that fit, and why most others do not."""
    demand = next((d for d in plan.demands if set(launch.pods) & set(d.pods)), None)
    if demand is None:
        return []
    fits = [entry for entry in demand.considered if entry.outcome == "fits"]
    lines = [f"also fits: {offering_text(entry.offering)}, {texts_of(entry.reasons)}" for entry in fits[:_REJECTED]]
    misfits = [entry for entry in demand.considered if entry.outcome == "does-not-fit"]
    counts = Counter(text_of(reason) for entry in misfits for reason in entry.reasons[:1])
    if counts:
        text, count = counts.most_common(1)[0]
        lines.append(f"{len(misfits)} of {len(demand.considered)} offerings do not fit; {count} of them: {text}")
    return lines

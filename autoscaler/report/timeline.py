"""The events of a simulated cluster as values, and the lines that describe them.

The demo's text and its JSON are two renderings of the same values. `event` is the name of an occurrence in the JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias, get_args

from autoscaler.model.plan import LeftOut, NearMiss, PlannedNode
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.resource_claim import (
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    ResourceClaim,
)
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.words import counted, money
from instance_catalog.dataclass import dataclass, fields


@dataclass(frozen=True, slots=True)
class Arrived:
    """A pod was created. `title` describes what it shows, `asks` what its claims request."""

    event: ClassVar[str] = "Arrived"
    pod: str
    title: str
    asks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reused:
    """A pod needs no new node: it fits on one that exists or is starting."""

    event: ClassVar[str] = "Reused"
    pod: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """Equal nodes were planned for `pods`, before any launch."""

    event: ClassVar[str] = "Chosen"
    nodes: tuple[str, ...]
    pool: str
    offering: OfferingRef
    usd_per_hour: Decimal | None
    pods: tuple[str, ...]
    why: str
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotPlaced:
    """No node is launched for a pod."""

    event: ClassVar[str] = "Refused"
    pod: str
    why: str
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """The provider launched a machine."""

    event: ClassVar[str] = "Launched"
    node: str
    offering: OfferingRef


@dataclass(frozen=True, slots=True)
class Registered:
    """The machine's kubelet registered its Node."""

    event: ClassVar[str] = "Registered"
    node: str


@dataclass(frozen=True, slots=True)
class Published:
    """The node's drivers published their devices: (driver, number of devices)."""

    event: ClassVar[str] = "Published"
    node: str
    drivers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The scheduler bound a pod and allocated devices."""

    event: ClassVar[str] = "Bound"
    pod: str
    node: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A pod ended: "Succeeded", "Failed" or "Evicted"."""

    event: ClassVar[str] = "Ended"
    pod: str
    result: str


@dataclass(frozen=True, slots=True)
class Held:
    """A node is kept although it is idle."""

    event: ClassVar[str] = "Held"
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Pods and node got a notice of the end of the machine."""

    event: ClassVar[str] = "Noticed"
    node: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Draining:
    """A node is being drained."""

    event: ClassVar[str] = "Draining"
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A machine is gone, after `hours`, for `usd`."""

    event: ClassVar[str] = "Gone"
    node: str
    hours: float
    usd: Decimal


Trigger: TypeAlias = Arrived | Reused | Chosen | NotPlaced
Change: TypeAlias = Launched | Registered | Published | Bound | Ended | Held | Noticed | Draining | Gone
Occurrence: TypeAlias = Trigger | Change


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    at: datetime
    occurrence: Occurrence


@dataclass(frozen=True, slots=True)
class PodResult:
    """The result of a pod. `waited` is the time from its arrival until it ran; None if it never ran."""

    pod: str
    result: str
    expected: str
    node: str = ""
    devices: tuple[str, ...] = ()
    waited: timedelta | None = None

    @property
    def as_expected(self) -> bool:
        """True if the result is the expected one."""
        return self.result == self.expected


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of the scenario. `running` are machines that still run."""

    launched: int
    terminated: int
    running: int
    usd: Decimal
    pods: tuple[PodResult, ...]

    @property
    def succeeded(self) -> bool:
        """True if all results are as expected."""
        return all(pod.as_expected for pod in self.pods)


def chosen_of(launches: Sequence[PlannedNode], rejected: Sequence[str]) -> Chosen:
    """The decision for planned nodes that are alike."""
    first = launches[0]
    return Chosen(
        nodes=tuple(launch.name for launch in launches),
        pool=first.pool,
        offering=first.offering,
        usd_per_hour=first.usd_per_hour,
        pods=tuple(pod for launch in launches for pod in launch.pods),
        why=texts_of(first.reasons),
        rejected=tuple(rejected),
    )


def not_placed_of(left: LeftOut) -> NotPlaced:
    """The refusal of a pod, with its nearest miss."""
    nearest = _nearest(left.near_misses[0]) if left.near_misses else ""
    return NotPlaced(left.pod, texts_of(left.reasons), nearest)


def _nearest(miss: NearMiss) -> str:
    return f"{text_of(miss.reason)} (on {counted(miss.types, 'type')} such as {miss.example})"


def asked_lines(claim: ResourceClaim) -> tuple[str, ...]:
    """The requests of a claim: a line for each request, alternative and constraint."""
    lines: list[str] = []
    for request in claim.requests:
        if isinstance(request, FirstAvailable):
            lines += [f"{_choice(index)}{_asked(sub)}" for index, sub in enumerate(request.subrequests)]
        else:
            lines.append(_asked(request))
    for constraint in claim.constraints:
        match constraint:
            case MatchAttribute(attribute):
                lines.append(f"all with the same {attribute}")
            case DistinctAttribute(attribute):
                lines.append(f"all with another {attribute}")
    return tuple(lines)


def _asked(request: DeviceRequest) -> str:
    amount = "all" if request.allocation_mode == "All" else f"{request.count} ×"
    where = " and ".join(selector.expression or "?" for selector in request.selectors)
    return f"{amount} {request.device_class}" + (f" where {where}" if where else "")


def _choice(index: int) -> str:
    return "or else " if index else "best "


def lines_of(occurrence: Occurrence) -> list[str]:
    """The lines that describe it; the first is the headline."""
    match occurrence:
        case Arrived(pod, title, asks):
            return [f"pod {pod} is pending: {title}" if title else f"pod {pod} is pending", *asks]
        case Reused(pod, node, why):
            return [f"decided: pod {pod} fits node {node}, no launch", why]
        case Chosen(nodes, pool, offering, price, pods, why, rejected):
            cost = (
                ", prepaid" if offering.block else f" at {money(price)} $/h" if price is not None else ", price unknown"
            )
            count = f"{len(nodes)} × " if len(nodes) > 1 else ""
            served = f" for {', '.join(pods)}" if pods else ""
            names = f"as {', '.join(nodes)} in pool {pool}"
            return [f"decided: {count}{offering_text(offering)}{cost}{served}", f"why: {why}", *rejected, names]
        case NotPlaced(pod, why, nearest):
            return [f"no node for {pod}: {why}", f"nearest miss: {nearest}" if nearest else ""]
        case Launched(node, offering):
            return [f"the provider launches {offering_text(offering)} as {node}"]
        case Registered(node):
            return [f"node {node} has registered"]
        case Published(node, drivers):
            devices = ", ".join(f"{counted(count, 'device')} of {driver}" for driver, count in drivers)
            return [f"drivers on {node} have published {devices}"]
        case Bound(pod, node, devices):
            return [f"pod {pod} runs on {node}", f"devices: {_shortened(devices, 4)}" if devices else ""]
        case Ended(pod, result):
            return [f"pod {pod} has ended: {result}"]
        case Held(node, why):
            return [f"node {node} is kept while empty: {why}"]
        case Noticed(node, ends_at):
            return [f"node {node} and its pods get a notice: the machine ends at {ends_at:%H:%M}"]
        case Draining(node, why):
            return [f"node {node} is being removed: {why}"]
        case Gone(node, hours, usd):
            return [f"node {node} is gone after {hours:.2f} h, {usd:.2f} $"]


def summary_lines(summary: Summary) -> list[str]:
    """The result as lines: nodes, money, and the result of each pod."""
    nodes = f"{counted(summary.launched, 'node')} launched"
    rest = f"{summary.terminated} terminated, {summary.running} still running; {summary.usd:.2f} $ spent"
    lines = [f"{nodes}, {rest}", ""]
    width = max((len(pod.pod) for pod in summary.pods), default=0)
    for pod in summary.pods:
        waited = f"waited {int(pod.waited.total_seconds()):>3} s" if pod.waited is not None else "never ran"
        where = f"; {pod.node}: {_shortened(pod.devices, 2)}" if pod.node else ""
        lines.append(f"  {pod.pod:<{width}}  {pod.result:<9}  {waited}{where}")
    wrong = [f"  {pod.pod}: expected {pod.expected}, found {pod.result}" for pod in summary.pods if not pod.as_expected]
    return [*lines, "", *(["NOT as expected:", *wrong] if wrong else ["All results are as expected."])]


def _shortened(devices: tuple[str, ...], shown: int) -> str:
    more = len(devices) - shown
    return ", ".join(devices[:shown]) + (f" and {more} more" if more > 0 else "")


def order_of(occurrence: Occurrence) -> int:
    """Its order among occurrences at the same time: causes before effects."""
    return _ORDER.index(type(occurrence))


_ORDER = (*get_args(Trigger), *get_args(Change))


def mark_of(occurrence: Occurrence) -> str:
    """A one-character mark at the beginning of the line."""
    match occurrence:
        case Arrived():
            return "+"
        case Chosen() | Reused():
            return "*"
        case NotPlaced():
            return "!"
        case Bound() | Ended():
            return "·"
        case _:
            return " "


def document_of(event: TimelineEvent) -> dict[str, Any]:
    return {"at": event.at.isoformat(), "event": event.occurrence.event, **_plain(event.occurrence)}


def summary_document(summary: Summary) -> dict[str, Any]:
    return {"event": "Summary", "succeeded": summary.succeeded, **_plain(summary)}


def _plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON data: decimals, times and durations as text and seconds."""
    return {field.name: _json(getattr(value, field.name)) for field in fields(value)}


def _json(value: Any) -> Any:
    match value:
        case dict():
            return {key: _json(item) for key, item in value.items()}
        case tuple() | list():
            return [_json(item) for item in value]
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case OfferingRef() | PodResult():
            return _plain(value)
        case _:
            return value

"""What happens in a simulated cluster, as values, and the lines in which a person reads it.

The values are the whole story: the demo's text and its JSON are two renderings of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from autoscaler.model.plan import LeftOut, NearMiss, PlannedNode
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import text_of, texts_of

# Devices named in a line of the summary.
_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Arrived:
    """A pod came in. `title` says what it shows, `asks` what its claims ask for."""

    pod: str
    title: str
    asks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A node was decided on for `pods`, before anything was launched."""

    node: str
    pool: str
    offering: OfferingRef
    usd_per_hour: Decimal | None
    pods: tuple[str, ...]
    why: str
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """No node is bought for a pod."""

    pod: str
    why: str
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """The provider gave a machine."""

    node: str
    offering: OfferingRef


@dataclass(frozen=True, slots=True)
class Registered:
    """The machine's kubelet registered its Node."""

    node: str


@dataclass(frozen=True, slots=True)
class Published:
    """The node's drivers published their devices: (driver, number of devices)."""

    node: str
    drivers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The scheduler bound a pod and allocated devices."""

    pod: str
    node: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A pod ended: "Succeeded", "Failed" or "Evicted"."""

    pod: str
    result: str


@dataclass(frozen=True, slots=True)
class Held:
    """A node is kept although it is idle."""

    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Pods and node were told when the machine goes."""

    node: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Draining:
    """A node is on its way out."""

    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A machine is gone, after `hours`, for `usd`."""

    node: str
    hours: float
    usd: Decimal


What: TypeAlias = (
    Arrived | Chosen | Refused | Launched | Registered | Published | Bound | Ended | Held | Noticed | Draining | Gone
)


@dataclass(frozen=True, slots=True)
class Happening:
    """Something at a moment."""

    at: datetime
    what: What


@dataclass(frozen=True, slots=True)
class PodResult:
    """How a pod fared. `waited` is the time from its arrival until it ran; None: it never did."""

    pod: str
    result: str
    expected: str
    node: str = ""
    devices: tuple[str, ...] = ()
    waited: timedelta | None = None

    @property
    def as_expected(self) -> bool:
        """Whether the scenario came out as it should."""
        return self.result == self.expected


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of the story. `running` are machines that still run."""

    launched: int
    terminated: int
    running: int
    usd: Decimal
    pods: tuple[PodResult, ...]

    @property
    def succeeded(self) -> bool:
        """Whether everything came out as expected."""
        return all(pod.as_expected for pod in self.pods)


def chosen_of(launch: PlannedNode, rejected: Sequence[str]) -> Chosen:
    """The decision for a planned node."""
    return Chosen(
        node=launch.name,
        pool=launch.pool,
        offering=launch.offering,
        usd_per_hour=launch.usd_per_hour,
        pods=launch.pods,
        why=texts_of(launch.reasons),
        rejected=tuple(rejected),
    )


def refused_of(left: LeftOut) -> Refused:
    """The refusal of a pod, with the condition that came nearest to being met."""
    nearest = _nearest(left.near_misses[0]) if left.near_misses else ""
    return Refused(left.pod, texts_of(left.reasons), nearest)


def _nearest(miss: NearMiss) -> str:
    return f"{text_of(miss.reason)} (on {miss.types} types such as {miss.example})"


def lines_of(what: What) -> list[str]:
    """The lines that tell it; the first is the headline, the others belong to it."""
    match what:
        case Arrived(pod, title, asks):
            return [f"pod {pod} is pending: {title}" if title else f"pod {pod} is pending", *asks]
        case Chosen(node, pool, offering, price, pods, why, rejected):
            cost = "prepaid" if offering.block else f"{price} $/h" if price is not None else "price unknown"
            served = f" for {', '.join(pods)}" if pods else ""
            return [f"decided: {offering_text(offering)} at {cost}{served} (node {node}, pool {pool})", why, *rejected]
        case Refused(pod, why, nearest):
            return [f"no node for {pod}: {why}", f"nearest miss: {nearest}" if nearest else ""]
        case Launched(node, offering):
            return [f"the cloud starts {offering_text(offering)} as {node}"]
        case Registered(node):
            return [f"node {node} has registered"]
        case Published(node, drivers):
            devices = ", ".join(f"{count} devices of {driver}" for driver, count in drivers)
            return [f"drivers on {node} have published {devices}"]
        case Bound(pod, node, devices):
            return [f"pod {pod} runs on {node}", f"devices: {', '.join(devices)}" if devices else ""]
        case Ended(pod, result):
            return [f"pod {pod} has ended: {result}"]
        case Held(node, why):
            return [f"node {node} stays although nobody uses it: {why}"]
        case Noticed(node, ends_at):
            return [f"node {node} and its pods are told that it goes at {ends_at:%H:%M}"]
        case Draining(node, why):
            return [f"node {node} goes: {why}"]
        case Gone(node, hours, usd):
            return [f"node {node} is gone after {hours:.2f} h, {usd:.2f} $"]


def summary_lines(summary: Summary) -> list[str]:
    """The end of the story as lines: nodes, money, and how each pod fared."""
    lines = [
        f"{summary.launched} nodes launched, {summary.terminated} terminated, {summary.running} still running; "
        f"{summary.usd:.2f} $ spent",
        "",
    ]
    width = max((len(pod.pod) for pod in summary.pods), default=0)
    for pod in summary.pods:
        verdict = "as expected" if pod.as_expected else f"EXPECTED {pod.expected}"
        waited = f"waited {int(pod.waited.total_seconds())} s" if pod.waited is not None else "never ran"
        where = f" on {pod.node} with {_shortened(pod.devices)}" if pod.node else ""
        lines.append(f"  {pod.pod:<{width}}  {pod.result:<9}  {verdict}; {waited}{where}")
    return lines


def _shortened(devices: tuple[str, ...]) -> str:
    return (
        ", ".join(devices)
        if len(devices) <= _SHOWN
        else f"{', '.join(devices[:_SHOWN])} and {len(devices) - _SHOWN} more"
    )


def mark_of(what: What) -> str:
    """A one-character mark at the beginning of the line."""
    match what:
        case Arrived():
            return "+"
        case Chosen():
            return "*"
        case Refused():
            return "!"
        case Bound() | Ended():
            return "·"
        case _:
            return " "


def document_of(happening: Happening) -> dict[str, Any]:
    """A happening as JSON data."""
    return {"at": happening.at.isoformat(), "event": type(happening.what).__name__, **_plain(happening.what)}


def summary_document(summary: Summary) -> dict[str, Any]:
    """The summary as JSON data."""
    return {"event": "Summary", "succeeded": summary.succeeded, **_plain(summary)}


def _plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON data: decimals, times and durations as text and seconds."""
    return {field.name: _json(asdict(value)[field.name]) for field in fields(value)}


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
        case _:
            return value

"""The first lines of a plan: nodes and price, problems, pods that cannot be placed, and ignored pods.

Pods that cannot be placed read like kube-scheduler's events, with instance types instead of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from autoscaler.model.plan import LeftOut, LeftOutVerdict, NearMiss, Plan
from autoscaler.model.reason import NO_SUBJECT, Code, Reason, Subject
from autoscaler.planning.placement.nothing_has import leaves_open
from autoscaler.planning.policy import Policy
from autoscaler.report.printable import one_line
from autoscaler.report.reason_texts import EITHER_WAY
from autoscaler.report.reasons import fact_text, joined, text_of, texts_of
from autoscaler.report.tables.defragmentation import fragmentation_lines, room_lines
from autoscaler.report.tables.failures import NOT_ASKED_FOR, fail_alike, failure_text, of_volume, plain
from autoscaler.report.tables.first_line import first_line
from autoscaler.report.tables.given import WITH_POOLS, Given, nothing_pending
from autoscaler.report.tables.plan_tables import Table
from autoscaler.report.tables.shortages import none_of_it
from autoscaler.report.words import counted, few, money, ready_text
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.facts import classes_without_prediction, profiles_of_classes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType

SHOWN_GROUPS: Final = 20  # of pods that cannot be placed, without -o wide
_LISTED_MISSES: Final = Policy().near_misses  # if there are fewer, types that are not listed fit
# A type with one of these lacks the class, or would not be launched whatever its devices.
_NEVER_ANYTHING: Final = frozenset(
    {Code.NO_DEVICE_OF_CLASS, Code.NOT_RUNNABLE, Code.FRACTION_UNASKED, Code.NOT_IN_GROUPS}
)
_UNDECIDED: Final = frozenset({Code.RUNTIME_ATTRIBUTE, Code.CATALOG_UNKNOWN})
# Reasons that the counts below give in more words.
_COUNTED: Final = frozenset({Code.NO_CANDIDATE})

# Of these, the types that no plan offers unless a pool or a catalog of one's own says so.
_NOT_OFFERED: Final = frozenset({Code.NOT_RUNNABLE, Code.FRACTION_UNASKED})
_FIT_WITH_DEVICES: Final = "would fit if they had such devices"
# Reasons because of other pods, or of a driver's configuration, do not show which machine is near.
_NEVER_NEAR: Final = NOT_ASKED_FOR | {
    *(Code.POD_AFFINITY, Code.POD_ANTI_AFFINITY, Code.TOPOLOGY_SPREAD, Code.PREPARE_REFUSED)
}
# Smaller gaps to the lower bound are not worth a line.
_TOLD_ABOVE: Final = Decimal("0.0005")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the summary; `level` is "", "good", "warning" or "error"; `step` is what to do next."""

    text: str
    level: str = ""
    step: str = ""


def summary_of(plan: Plan, given: Given = WITH_POOLS) -> list[Line]:
    """The first lines: the totals, every warning, every ignored pod."""
    lines = [Line(*first_line(plan, given))]
    if plan.at_least_usd_per_hour is not None and (above := plan.above_least or 0) >= _TOLD_ABOVE:
        lines.append(
            Line(
                f"no plan for these pods costs less than {money(plan.at_least_usd_per_hour)} $/h: "
                f"this one costs at most {100 * above:.1f}% more than the cheapest"
            )
        )
    lines += map(Line, dict.fromkeys(_ready_lines(plan)))
    if not (plan.placements or plan.left_out or plan.outside):
        lines += map(Line, nothing_pending(given))
    if plan.launches and not given.pools:
        lines.append(
            Line("no CapacityPool given: the whole catalog is on offer; docs/install.md shows how to make one")
        )
    lines += (Line(text) for text in fragmentation_lines(plan))
    lines += (Line(f"proposal: {text}") for text in room_lines(plan))
    lines += map(_warning, joined(plan.warnings))
    lines += (Line(text, "warning") for text in ignored_lines(plan.outside))
    return lines


def _warning(found: Reason) -> Line:
    """The warning, with the next step apart if it is a fact of its own."""
    step = fact_text(found.detail.get("next_step", ""))
    wrong = replace(found, detail=FrozenMap({key: fact for key, fact in found.detail.items() if key != "next_step"}))
    return Line(f"warning: {text_of(wrong, abbreviated=True)}", "warning", one_line(step))


def _ready_lines(plan: Plan) -> Iterator[str]:
    """The time until the new nodes are usable, if such machines were launched in this cluster before."""
    for node in plan.launches:
        if text := ready_text(node.ready_in):
            yield f"{node.offering.instance_type} with {', '.join(node.drivers)}: {text}"


def ignored_lines(outside: Sequence[LeftOut]) -> Iterator[str]:
    """The pods that no pool serves, with the reason and the change that would help: one line for each reason."""
    groups: dict[str, list[str]] = {}
    for entry in outside:
        own = tuple(_without_subject(reason, Subject("pod", entry.pod)) for reason in entry.reasons)
        groups.setdefault(texts_of(own), []).append(entry.pod)
    for why, pods in groups.items():
        yield f"{counted(len(pods), 'pod')} ignored: {few(pods)} ({why})"


def _without_subject(reason: Reason, known: Subject) -> Reason:
    return replace(reason, subject=NO_SUBJECT) if reason.subject == known else reason


# Explanations of verdicts whose names do not suffice.
_MEANING: Final = {LeftOutVerdict.FATAL: " (kube-scheduler stops at the error, whatever other nodes there are)"}

# Reasons of pods that wait for something other than a node.
_WAITING: Final = frozenset({Code.PROVISIONING_REQUEST, Code.SCHEDULING_GATED, Code.SCALE_UP_DELAYED})
# Reasons that need no correction: the wait ends by itself.
_PATIENT: Final = frozenset({Code.WAITS_FOR_BLOCK})


def left_out_table(plan: Plan, *, wide: bool = False) -> Table | None:
    """All pods that cannot be placed; those with the same reasons together."""
    groups: dict[tuple[object, ...], list[LeftOut]] = {}
    for entry in plan.left_out:
        key: object = entry.pod if wide else tuple(_without_names(entry))
        groups.setdefault((entry.verdict, key), []).append(entry)
    lines: list[str] = []
    shown = list(groups.values()) if wide else list(groups.values())[:SHOWN_GROUPS]
    for group in shown:
        first = group[0]
        lines.append(f"{few([entry.pod for entry in group])}: {_verdict_text(first)}")
        lines += (f"  {line}" for line in left_out_lines(first, wide=wide))
    if len(shown) < len(groups):
        rest = sum(len(group) for group in list(groups.values())[SHOWN_GROUPS:])
        lines.append(f"and {counted(rest, 'pod')} more; -o wide shows all")
    return Table("Cannot be placed", notes=tuple(lines)) if lines else None


def _verdict_text(entry: LeftOut) -> str:
    if entry.reasons and all(reason.code in _WAITING for reason in entry.reasons):
        return "waits (no node was tried)"
    if entry.reasons and all(reason.code in _PATIENT for reason in entry.reasons):
        return "waits"
    return f"{entry.verdict}{_MEANING.get(entry.verdict, '')}"


def left_out_lines(entry: LeftOut, *, wide: bool = False) -> Iterator[str]:
    """The reasons why one pod cannot be placed."""
    misses = entry.near_misses
    whole = len(misses) < _LISTED_MISSES
    entry = entry if wide else _offered(entry)
    counts = _counts(entry.near_misses, abbreviated=not wide)
    nearest_texts = {plain(miss.reason, abbreviated=not wide) for miss in entry.near_misses}
    absent = {name for miss in entry.near_misses for name in none_of_it(miss.reason)}
    nowhere = _class_of_nothing(entry)
    foreign = any(reason.code is Code.NOT_PREDICTED for reason in entry.reasons)
    said_elsewhere = (Code.NO_COMBINATION, *((Code.NOT_PREDICTED, Code.NO_DEVICE_OF_CLASS) if foreign else ()))
    lines = [
        _bar_text(reason, abbreviated=not wide)
        for reason in entry.reasons
        if not (nowhere and reason.code in said_elsewhere)
        and not (counts and (reason.code in _COUNTED or plain(reason, abbreviated=not wide) in nearest_texts))
        and not (counts and absent.intersection(none_of_it(reason)))
    ]
    yield from dict.fromkeys(lines)
    if nowhere:
        yield nowhere
        return
    if entry.verdict is LeftOutVerdict.UNKNOWN:
        yield from _what_would_decide(entry)
    open_ = any(map(leaves_open, entry.reasons))
    rest = (_FIT_WITH_DEVICES if open_ else "would fit") if whole else "for other reasons"
    if counts and entry.types:
        yield from _counted_lines(entry, counts, rest, wide=wide)
    elif misses and whole and entry.types and open_:
        yield f"all {entry.types} instance types {rest}"


def _counted_lines(entry: LeftOut, counts: Mapping[str, int], rest: str, *, wide: bool) -> Iterator[str]:
    """What is wrong with volumes, and the number of types for each reason."""
    misses = entry.near_misses
    volumes = dict.fromkeys(plain(miss.reason, abbreviated=not wide) for miss in misses if of_volume(miss.reason))
    yield from volumes
    if volumes and len(counts) == 1 and sum(counts.values()) == entry.types:
        return
    near = len(counts) > 1 and misses[0].reason.code not in _NEVER_NEAR and not _of_every_node(entry)
    text = failure_text(misses[0].reason, abbreviated=not wide, on_all_types=fail_alike(misses)) if near else ""
    ordered = _selected_first(counts, misses, abbreviated=not wide)
    listed = _listed(ordered, entry.types, text, misses[0].example, rest=rest)
    yield f"0/{entry.types} instance types can run {entry.pod}: {', '.join(listed)}"


def _offered(entry: LeftOut) -> LeftOut:
    """The entry without the types that are not on offer, if others are left: where one of them would do, that is a
    reason by itself."""
    offered = tuple(miss for miss in entry.near_misses if miss.reason.code not in _NOT_OFFERED)
    others = sum(miss.types for miss in entry.near_misses) - sum(miss.types for miss in offered)
    there = entry.types > others
    return replace(entry, near_misses=offered, types=entry.types - others) if offered or there else entry


def _of_every_node(entry: LeftOut) -> bool:
    """True if no type is nearer than another: the nearest lacks what all types lack that the pod selects. What types
    have is unknown where a volume already keeps the pod from all nodes: it is checked before devices."""
    reason = entry.near_misses[0].reason
    if reason.code is Code.INSUFFICIENT_RESOURCE:
        return reason.detail.get("free") == 0
    if reason.code is Code.NO_DEVICE_OF_CLASS:
        return True
    return of_volume(reason)


def _class_of_nothing(entry: LeftOut) -> str:
    """The sentence for a pod whose class has no device on any type, if counts of types would add nothing."""
    for apart in (found for found in entry.reasons if found.code is Code.NO_COMBINATION and "classes" in found.detail):
        return f"0/{entry.types} instance types can run {entry.pod}: {text_of(replace(apart, subject=NO_SUBJECT))}"
    codes = {miss.reason.code for miss in entry.near_misses}
    listed = sum(miss.types for miss in entry.near_misses)
    if Code.NO_DEVICE_OF_CLASS not in codes or codes - _NEVER_ANYTHING or listed < entry.types:
        return ""
    missing = (m.reason.detail for m in entry.near_misses if m.reason.code is Code.NO_DEVICE_OF_CLASS)
    names = {str(detail.get("device_class", "")) for detail in missing}
    if len(names) > 1 or any("needs" in m.reason.detail for m in entry.near_misses):  # they lack different things
        return ""
    (name,) = names
    unpredicted = [reason.detail for reason in entry.reasons if reason.code is Code.NOT_PREDICTED]
    classes = dict.fromkeys(text for found in unpredicted for text in fact_text(found["device_class"]).split(", "))
    named = " or ".join(classes) if name in classes else name
    text = f"0/{entry.types} instance types have a device of DeviceClass {named}"
    if profile := profiles_of_classes().get(name):
        return f"{text} with the drivers that are on offer: it needs driver profile {profile}"
    drivers = list(dict.fromkeys(str(found["driver"]) for found in unpredicted))
    if there := [found["nodes"] for found in unpredicted if "nodes" in found]:
        return (
            f"{text}: what driver {drivers[0]} publishes is not predicted, so only existing nodes that publish it can "
            f"serve it, and the pod does not fit on any of these ({there[0]}) now: see in `kubectl get "
            "resourceslices -o yaml` whether each pool of devices is complete, and which devices are tainted or "
            "allocated"
        )
    if drivers or name in classes_without_prediction():
        driver = f"driver {' and '.join(drivers)}" if drivers else "its driver"
        return f"{text}: what {driver} publishes is not predicted, so only {EITHER_WAY}"
    return (
        f"{text}: none on offer has such hardware, or its driver publishes nothing that the class selects; add your "
        "own type with `foreslice catalog add`, or give the Nodes and ResourceSlices of existing nodes"
    )


def _bar_text(reason: Reason, *, abbreviated: bool) -> str:
    """A reason of the whole verdict; for a missing reservation, with the note that everything else fits."""
    text = text_of(_of_any_device(reason), abbreviated=abbreviated)
    if reason.code is Code.NO_PRICE and reason.subject.kind == "offering":
        return f"{reason.subject.name} would fit, but {text}"
    if reason.code not in (Code.NEEDS_RESERVATION, Code.OVERFLOW_NEVER):
        return text
    why = text_of(replace(reason, subject=NO_SUBJECT), abbreviated=abbreviated)
    if reason.code is Code.OVERFLOW_NEVER:
        return f"{reason.subject.name} would fit, but {why}"
    sold = reason.detail.get("sold_as")
    kinds = [CapacityType(str(kind)) for kind in (sold if isinstance(sold, tuple) else ())]
    asked = " or ".join(kind.value for kind in kinds if not kind.needs_reservation)
    instead = f", or allow {asked} (--allow, or spec.capacityTypes of a pool)" if asked else ""
    one = "another" if {"block", "full"} & reason.detail.keys() else "one"
    return f"{reason.subject.name} would fit, but {why}: add {one} for what you have bought{instead}"


def _what_would_decide(entry: LeftOut) -> Iterator[str]:
    """The number of types that depend on an unknown value, and the names of the values."""
    open_ = [
        miss for miss in entry.near_misses if miss.reason.code in _UNDECIDED and "attributes" in miss.reason.detail
    ]
    if not open_:
        return
    names = dict.fromkeys(
        name for miss in open_ if isinstance(found := miss.reason.detail["attributes"], tuple) for name in found
    )
    types = counted(sum(miss.types for miss in open_), "instance type")
    at_run_time = open_[0].reason.code is Code.RUNTIME_ATTRIBUTE
    known = (
        "known only once a node runs: give the Nodes and ResourceSlices of existing nodes"
        if at_run_time
        else "which the catalog does not have"
    )
    yield (
        f"cannot be decided: {types}, such as {open_[0].example}, may fit; that depends on {few(list(names))}, {known}"
    )


def _counts(misses: Sequence[NearMiss], *, abbreviated: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for miss in misses:
        text = failure_text(miss.reason, abbreviated=abbreviated, on_all_types=fail_alike(misses))
        found[text] = found.get(text, 0) + miss.types
    return found


def _selected_first(counts: Mapping[str, int], misses: Sequence[NearMiss], *, abbreviated: bool) -> dict[str, int]:
    """The most frequent reasons first; those of types that the pod does not ask for last."""
    others = {
        failure_text(miss.reason, abbreviated=abbreviated) for miss in misses if miss.reason.code in NOT_ASKED_FOR
    }
    return dict(sorted(counts.items(), key=lambda entry: (entry[0] in others, -entry[1])))


def _listed(counts: Mapping[str, int], types: int, nearest: str, example: str, *, rest: str) -> Iterator[str]:
    for text, number in counts.items():
        yield f"{number} {text}" + (f", nearest {example}" if text == nearest else "")
    others = types - sum(counts.values())
    if others > 0:
        yield f"{others} {rest}"


def _of_any_device(reason: Reason) -> Reason:
    """The reason without its subject if that is a device of a node that does not exist, which is like its equals, or an
    offering without a price, like all types of the region."""
    of_all = reason.code is Code.NO_PRICE or reason.subject.kind == "device"
    return replace(reason, subject=NO_SUBJECT) if of_all else reason


def _without_names(entry: LeftOut) -> Iterator[str]:
    """The lines about a pod without its own names: equal for equal pods."""
    names = [entry.pod, *entry.claims]
    for line in left_out_lines(entry):
        for name in names:
            line = line.replace(name, "·")
        yield line

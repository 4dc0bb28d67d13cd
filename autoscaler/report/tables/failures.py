"""A condition that fails on instance types, in the words of kube-scheduler's events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from autoscaler.model.plan import NearMiss
from autoscaler.model.reason import NO_SUBJECT, Code, Reason
from autoscaler.report.cel_words import one_line_cel, short_cel
from autoscaler.report.reasons import fact_text, text_of
from autoscaler.report.tables.shortages import shortage_text
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import profiles_of_classes

_NO_DEVICES: Final = frozenset(
    {
        Code.SELECTOR_FALSE,
        Code.TOO_FEW_DEVICES,
        Code.DEVICES_IN_USE,
        Code.CONSTRAINT_UNSATISFIED,
        Code.COUNTERS_EXHAUSTED,
        Code.CAPACITY_INSUFFICIENT,
        Code.NO_COMBINATION,
    }
)
_NAME_AS_DOMAIN: Final = re.compile(r"""device\.(?:attributes|capacity)\[["']([^"'/]+)/([^"'/]+)["']\]""")
# Types that the pod does not select, or that are never launched for it: the others show what it lacks.
NOT_ASKED_FOR: Final = frozenset(
    {Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH, Code.NOT_RUNNABLE, Code.FRACTION_UNASKED}
    | {Code.NOT_IN_GROUPS}
)
# Facts of reasons that are sentences about a volume: whatever the type, so that a number of types says nothing.
_OF_VOLUMES: Final = frozenset(
    {"missing_claim", "missing_volume", "immediate", "unsuited", "going_away", "storage_class"}
)


def failure_text(reason: Reason, *, abbreviated: bool = True, on_all_types: bool = True) -> str:
    """A failed condition in the words of kube-scheduler's events; `on_all_types`: on all types that are asked for."""
    detail = reason.detail
    if of_volume(reason):
        return "held up by that volume (whatever else they lack)"
    match reason.code:
        case Code.INSUFFICIENT_RESOURCE:
            return shortage_text(reason, on_all_types=on_all_types)
        case Code.INSUFFICIENT_WITH_CLAIMS:
            return plain(reason, abbreviated=abbreviated).replace(": ", " (", 1) + ")"
        case Code.NODE_SELECTOR_MISMATCH | Code.NODE_AFFINITY_MISMATCH:
            return f"didn't match Pod's node affinity/selector ({plain(reason, abbreviated=abbreviated)})"
        case Code.TAINT_NOT_TOLERATED:
            effect = f":{detail['effect']}" if "effect" in detail else ""
            return f"had untolerated taint {{{detail.get('key')}: {detail.get('value', '')}}}{effect}"
        case Code.NO_DEVICE_OF_CLASS if "needs" in detail:
            return f"have {text_of(replace(reason, subject=NO_SUBJECT))}"
        case Code.NO_DEVICE_OF_CLASS:
            name = str(detail.get("device_class", ""))
            profile = profiles_of_classes().get(name)
            needs = f" (published with driver profile {profile})" if profile else ""
            return f"have no device of DeviceClass {name}".rstrip() + needs
        case Code.SELECTOR_ERROR if named := _NAME_AS_DOMAIN.search(fact_text(detail.get("expression", ""))):
            domain, name = named.groups()
            return f'fail the selector: "{domain}/{name}" is not a domain; write device.attributes["{domain}"].{name}'
        case Code.SELECTOR_ERROR if missing := detail.get("missing_key"):
            shown = fact_text(detail.get("expression", ""))
            text = short_cel(shown) if abbreviated else one_line_cel(shown)
            return f"publish no attribute {missing}, so the selector fails there ({text})"
        case Code.RUNTIME_ATTRIBUTE | Code.CATALOG_UNKNOWN:
            return plain(reason, abbreviated=abbreviated).replace("depends on ", "depend on ", 1)
        case code if code in _NO_DEVICES:
            return f"cannot allocate all claims ({plain(reason, abbreviated=abbreviated)}{_unqualified(reason)})"
        case _:
            return plain(reason, abbreviated=abbreviated)


def _unqualified(reason: Reason) -> str:
    """The name to write for capacities that are named with a domain: drivers publish their own without."""
    found = reason.detail.get("missing", reason.detail.get("capacities", ()))
    names = [name for name in (found if isinstance(found, tuple) else (str(found),)) if "/" in name]
    return f"; drivers publish their own without a domain: {names[0].rpartition('/')[2]}" if names else ""


def plain(reason: Reason, *, abbreviated: bool) -> str:
    """The sentence without the names of pod, claim and device, which are in the line already or do not matter."""
    subject, part = reason.subject, reason.subject.part
    if part and part.kind == "request":
        subject = part
    elif subject.kind in ("pod", "claim", "device", "offering"):
        subject = NO_SUBJECT
    return text_of(replace(reason, subject=subject), abbreviated=abbreviated)


def of_volume(reason: Reason) -> bool:
    """True if it is a sentence about a volume, told once before the types that need it are counted."""
    return not reason.detail.keys().isdisjoint(_OF_VOLUMES)


def fail_alike(misses: Sequence[NearMiss]) -> bool:
    """True if all types that the pod asks for fail for the same reason: otherwise some have what others lack."""
    asked = [miss.reason for miss in misses if miss.reason.code not in NOT_ASKED_FOR]
    return len({(reason.code, reason.detail.get("resource")) for reason in asked}) <= 1

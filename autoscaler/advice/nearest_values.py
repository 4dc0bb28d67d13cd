"""The nearest value that the catalog has for a comparison in a selector: 277.5Gi where 500Gi is asked for.

Only what a person compares with one literal is rewritten: amounts of capacity, and names in attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.claim_changes import Condition, RequestPlace, conditions_of, requests_of
from autoscaler.advice.situation import Situation
from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.common.values import QuantityCell
from autoscaler.cel.program import Program, compile_selector
from autoscaler.lint.devices.effort import Effort, EffortExceededError
from autoscaler.lint.devices.offers import Specimen, catalog_offers, pool_driver_sets, specimens
from autoscaler.lint.devices.readings import look_up
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.spelling import nearest

_AT_LEAST: Final = re.compile(
    r"(?:\.compareTo\(\s*quantity\(\s*(?P<q>[\"'])(?P<amount>[^\"']+)(?P=q)\s*\)\s*\)\s*(?:>=|>|==)\s*0"
    r"|\.isGreaterThan\(\s*quantity\(\s*(?P<p>[\"'])(?P<more>[^\"']+)(?P=p)\s*\)\s*\))\s*\Z"
)
_IS: Final = re.compile(r"==\s*(?P<q>[\"'])(?P<text>[^\"']+)(?P=q)\s*\Z")
_LITERAL: Final = re.compile(r"([\"'])(?P<text>[^\"']+)\1")
# Addresses and unique ids of devices: no other one is what somebody meant.
_ADDRESS: Final = re.compile(
    r"(?:pci)?[0-9a-f]{4}:[0-9a-f]{2}(?::[0-9a-f]{2}\.[0-7])?|(?:GPU|MIG)-[0-9a-f-]{36}", re.IGNORECASE
)
_NEAR_NAMES = 2
_NEAR_AMOUNTS = 3


@dataclass(frozen=True, slots=True)
class _Devices:
    """The distinct devices that types of the catalog will publish."""

    kinds: Sequence[Specimen]
    profile: KubernetesProfile
    effort: Effort

    def meeting(self, expressions: Sequence[str]) -> list[Specimen]:
        """Those that meet every expression, or may."""
        programs = [p for text in expressions if isinstance(p := compile_selector(text, self.profile), Program)]
        return [kind for kind in self.kinds if all(self._meets(p, kind) for p in programs)]

    def _meets(self, program: Program, kind: Specimen) -> bool:
        return self.effort.evaluate(program, kind.view).outcome in (Outcome.TRUE, Outcome.UNKNOWN)


def rewritten_selectors(asked: Situation) -> Iterator[Change]:
    """Each comparison that nothing meets, with the nearest value that devices meeting everything else have."""
    places = [(place, found) for place in requests_of(asked) if (found := conditions_of(asked, place))]
    if not places:
        return
    snapshot = asked.snapshot
    offers = catalog_offers(asked.catalog, snapshot.profile, pool_driver_sets(snapshot, asked.catalog))
    devices = _Devices(specimens(offers, snapshot.profile), snapshot.profile, Effort())
    for place, found in places:
        for condition in found:
            try:
                yield from _rewritten(condition, _rest(asked, place, found, condition), devices)
            except EffortExceededError:
                return


def _rest(asked: Situation, place: RequestPlace, found: Sequence[Condition], one: Condition) -> list[str]:
    """Everything else that the request demands of a device, its class included."""
    classes = (c for c in asked.snapshot.classes if c.name == place.request.device_class)
    of_class = [s.expression for c in classes for s in c.selectors if s.expression]
    return [*of_class, *(other.text for other in found if other is not one)]


def _rewritten(condition: Condition, rest: Sequence[str], devices: _Devices) -> Iterator[Change]:
    if (amount := _AT_LEAST.search(condition.text)) is not None:
        yield from _amounts(condition, amount["amount"] or amount["more"], rest, devices)
    elif (name := _IS.search(condition.text)) is not None and not _ADDRESS.fullmatch(name["text"]):
        yield from _names(condition, name["text"], rest, devices)


def _amounts(condition: Condition, text: str, rest: Sequence[str], devices: _Devices) -> Iterator[Change]:
    try:
        wanted = Quantity.parse(text)
    except QuantityError:
        return
    program = compile_selector(condition.text, devices.profile)
    if isinstance(program, CompileFailure) or not program.reads or len(program.reads) != 1:
        return
    (path,) = program.reads
    cells = (look_up(kind.view, path) for kind in devices.meeting(rest))
    less = {cell.quantity for cell in cells if isinstance(cell, QuantityCell) and cell.quantity < wanted}
    more = condition.text.replace(".isGreaterThan(", ".compareTo(")
    for amount in sorted(less, reverse=True)[:_NEAR_AMOUNTS]:
        # The nearest value itself has to pass, so the comparison becomes >=.
        body = _LITERAL.sub(lambda m, a=amount: f'"{a}"' if m["text"] == text else m[0], more)  # type: ignore[misc]
        instead = re.sub(r"\)\s*(?:(?:>=|>|==)\s*0\s*)?\Z", ") >= 0", body)
        was, value = (text, str(amount)) if ">= 0" in condition.text else (condition.text, instead)
        yield condition.change(ChangeKind.REWRITE_SELECTOR, instead, was=was, value=value)


def _names(condition: Condition, text: str, rest: Sequence[str], devices: _Devices) -> Iterator[Change]:
    program = compile_selector(condition.text, devices.profile)
    if isinstance(program, CompileFailure) or not program.reads or len(program.reads) != 1:
        return
    (path,) = program.reads
    values = {value for kind in devices.meeting(rest) if isinstance(value := look_up(kind.view, path), str)}
    near = [name for name in nearest(text, sorted(values - {text})) if name != text]
    for name in near[:_NEAR_NAMES]:
        instead = condition.text.replace(text, name)
        yield condition.change(ChangeKind.REWRITE_SELECTOR, instead, was=f'"{text}"', value=f'"{name}"')

"""DeviceClasses that let in devices of drivers they do not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.interpreter.device import DeviceView, split_name
from autoscaler.cel.program import Program
from autoscaler.lint.devices.offers import Specimen
from autoscaler.lint.devices.reach import Failing, Reach
from autoscaler.lint.rules import UNGUARDED_CLASS, Finding
from autoscaler.lint.subjects import ClassSubject
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.resource_slice import Device

QUANTITY_LITERAL: Final = re.compile(r"quantity\(\s*[\"']([^\"']*)[\"']\s*\)")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_UNITS: Final = frozenset("KMGTPE")
# A driver that does not exist, with a device that publishes nothing: a guarded class says false.
_STRANGER = "stranger.invalid"


def check_guard(
    subject: ClassSubject, chain: Sequence[Program], found: Reach, profile: KubernetesProfile
) -> Iterator[Finding]:
    """A class must turn down devices of other drivers, whatever they publish."""
    outcome = _for_stranger(chain, profile)
    if outcome is Outcome.FALSE:
        return
    path = ("spec", "selectors", 0, "cel", "expression") if chain else ("spec",)
    verb = "fails on" if outcome is Outcome.ERROR else "selects"
    guard = guard_for(chain, found)
    step = f"put `{guard} && …` in front" if chain else f"add a selector with `{guard}`"
    yield Finding.of(UNGUARDED_CLASS, subject.object, path, f"{verb} devices of drivers it does not know", step)


def guard_for(chain: Sequence[Program], found: Reach) -> str:
    """The condition that keeps other drivers out: the driver of what matches, or of what is read."""
    drivers = {specimen.driver for specimen in found.possible}
    read = {domain for program in chain for _, domain, _ in program.reads or () if domain in drivers}
    right = read or (drivers if len(drivers) == 1 else set())
    driver = min(right) if right else "<driver>"
    return f'device.driver == "{driver}"'


def quantity_mistake(written: str) -> str | None:
    """The correction of an amount that is not a quantity of Kubernetes; None for a valid one."""
    try:
        Quantity.parse(written)
    except QuantityError:
        number = _NUMBER.match(written.strip())
        unit = written.strip()[number.end() :].strip()[:1].upper() if number else ""
        if number and unit in _UNITS:
            return f'quantity("{written}") has an invalid suffix: write "{number[0]}{unit}i" or "{number[0]}{unit}"'
        return f'quantity("{written}") is not a quantity: write a number with a suffix such as Gi, as in "40Gi"'
    return None


def guard_against(failing: Failing, program: Program, found: Reach, devices: Iterable[Specimen]) -> str:
    """The advice that keeps a selector from failing: exclude other drivers, or check that the name exists. With a check
    for a name that none of the `devices` has, nothing would ever match.
    """
    for written in QUANTITY_LITERAL.findall(program.expression):
        if (right := quantity_mistake(written)) is not None:
            return right
    matching = {specimen.driver for specimen in found.possible}
    if matching and failing.specimen.driver not in matching:
        return f"put `{guard_for((program,), found)} && …` in front"
    for group, domain, name in sorted(program.reads or ()):
        if name == failing.missing_key:
            if not any(_publishes(one, group, domain, name) for one in devices):
                absent = f"drop it: no device has {domain}/{name}"
                return f"{absent}, or name a release that publishes it in spec.drivers.profiles of a CapacityPool"
            return f'guard it: `has(device.{group}["{domain}"].{name}) && …`'
    return "guard it with has(…), or with .? and .orValue(…)"


def _publishes(specimen: Specimen, group: str, domain: str, name: str) -> bool:
    names = specimen.device.attributes if group == "attributes" else specimen.device.capacity
    return any(split_name(found, specimen.driver) == (domain, name) for found in names)


def _for_stranger(chain: Sequence[Program], profile: KubernetesProfile) -> Outcome:
    view = DeviceView.of(_STRANGER, Device("device"), profile)
    outcomes = (program.evaluate(view).outcome for program in chain)
    return next((outcome for outcome in outcomes if outcome is not Outcome.TRUE), Outcome.TRUE)

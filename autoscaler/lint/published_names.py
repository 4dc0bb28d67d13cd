"""The names of attributes and capacities that drivers are known to publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from autoscaler.cel.interpreter.device import split_name
from autoscaler.lint.devices.offers import Specimen
from autoscaler.lint.expressions import drivers_named
from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.attribute_names import gated_attributes, renamed_attributes
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import did_you_mean, nearest

_STANDARD = "resource.kubernetes.io"
# A slip of the pen in a driver or domain; those of strangers resemble each other in part.
MISSPELT: Final = 0.85


@dataclass(frozen=True, slots=True)
class PublishedNames:
    """`attributes` and `capacity` are "domain/identifier"; `drivers` publish them.

    `releases` says which release of a driver publishes a name, also of releases that nothing is predicted for.
    `unpredicted` are drivers that exist but whose devices are not known.
    """

    drivers: frozenset[str]
    attributes: frozenset[str]
    capacity: frozenset[str]
    releases: Mapping[str, str]
    unpredicted: frozenset[str]

    @staticmethod
    def of(devices: Iterable[Specimen], releases: Mapping[str, str], profile: KubernetesProfile) -> PublishedNames:
        found = tuple(devices)
        drivers = frozenset(one.driver for one in found)
        charts = tuple(text for row in builtin_device_classes(profile) for text in row.selectors)
        return PublishedNames(
            drivers,
            frozenset("/".join(split_name(n, one.driver)) for one in found for n in one.device.attributes),
            frozenset("/".join(split_name(n, one.driver)) for one in found for n in one.device.capacity),
            releases,
            drivers_named(charts) - drivers,
        )

    def judge(self, group: str, domain: str, identifier: str) -> tuple[str, str] | None:
        """(what is wrong with a name, what to write instead), None for good names and for strangers' domains."""
        name = f"{domain}/{identifier}"
        mine, others = (self.attributes, self.capacity) if group == "attributes" else (self.capacity, self.attributes)
        if name in mine:
            return None
        kind, other = ("attribute", "capacity") if group == "attributes" else ("capacity", "attribute")
        if name in others:
            access = "device.capacity" if group == "attributes" else "device.attributes"
            article = "an" if kind == "attribute" else "a"
            return (
                f"{name} is not {article} {kind} but {'a' if article == 'an' else 'an'} {other}",
                f'read {access}["{domain}"].{identifier}',
            )
        if name in self.releases:
            step = "a CapacityPool's `drivers` says which release its nodes run"
            return f"{kind} {name} is published by {self.releases[name]}, not by the assumed release", step
        if (renamed := renamed_attributes().get(name)) and group == "attributes":
            return f"{renamed.profile} {renamed.since} has renamed attribute {name}", f"read {renamed.reading}"
        if gated := gated_attributes().get(name):
            step = f"turn on feature gate {gated.gate} of the driver, and give the ResourceSlices of such nodes"
            return f"{gated.profile} publishes {kind} {name} only with its feature gate {gated.gate}", step
        if domain in self.domains:
            return f"no known driver publishes {kind} {name}", self._nearest(domain, identifier, mine)
        if domain in self.unpredicted:
            return None
        if domain in self.attributes | self.capacity:
            right, _, left_out = domain.partition("/")
            return f"{domain} is a name, not a domain", f'read device.{group}["{right}"].{left_out}'
        step = did_you_mean(domain, self.domains, equivalence_key=MISSPELT)
        return (f"no known driver publishes names of the domain {domain}", step) if step else None

    @property
    def domains(self) -> frozenset[str]:
        """The domains of all names, and of every driver."""
        names = self.attributes | self.capacity
        return frozenset(name.partition("/")[0] for name in names) | self.drivers | {_STANDARD}

    def _nearest(self, domain: str, identifier: str, known: frozenset[str]) -> str:
        here = {name.partition("/")[2]: name for name in known if name.startswith(f"{domain}/")}
        near = nearest(identifier, here)
        if near:
            return f"did you mean {here[near[0]]}?"
        elsewhere = sorted(name for name in known if name.partition("/")[2] == identifier)
        if elsewhere:
            return f"{elsewhere[0]} exists"
        drivers = {driver.partition(".")[0]: driver for driver in self.drivers}
        driver = nearest(identifier, drivers)
        if driver:
            return f"the nearest that exists is the driver {drivers[driver[0]]}"
        return f"{domain} has {', '.join(sorted(here))}" if here else f"{domain} publishes none"

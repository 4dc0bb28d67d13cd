"""The DRA drivers of a node, with release and gates: the half of a prediction that is not hardware.

A pool's nodes run a DriverSet. Its text form, `nvidia:dynamic-mig,compute-domain,dranet@v1.4.0`, is written in a
CapacityPool or on the command line; `DriverSet.text` returns the same form. Must not know what drivers publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import DriverFacts, Release, assumptions, driver_facts, facts_of
from instance_catalog.drivers.terms import PrepareRules
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.spelling import did_you_mean

GRAMMAR = "NAME[@RELEASE][:OPTION]…, several separated by commas, e.g. nvidia:dynamic-mig,compute-domain,dranet@v1.4.0"
NO_CUSTOM_DRIVERS: Final[Mapping[str, CustomDriver]] = FrozenMap()
_ON: Final = "true"  # the value of a switch
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


class DriverProfileError(ValueError):
    """Text that names no driver profile; the message has the allowed values."""


@dataclass(frozen=True, slots=True)
class NoMig:
    """GPUs are published whole."""


@dataclass(frozen=True, slots=True)
class StaticMig:
    """The node image partitions every GPU before the driver starts, by a layout of nvidia-mig-parted."""

    layout: str


@dataclass(frozen=True, slots=True)
class DynamicMig:
    """Gate DynamicMIG: partitions are made when claimed.

    `mode_enabled`: MIG mode is on when the driver starts. Only Ampere GPUs care, and cloud nodes start with it off.
    """

    mode_enabled: bool = False


MigMode: TypeAlias = NoMig | StaticMig | DynamicMig


@dataclass(frozen=True, slots=True)
class DriverProfile:
    """One driver on a node.

    `gates` holds every gate of the release, `options` the options that differ from their default ("true" for a switch).
    """

    name: str
    driver: str
    release: str
    gates: FrozenMap[str, bool] = field(default_factory=FrozenMap)
    mig: MigMode = NoMig()
    options: FrozenMap[str, str] = field(default_factory=FrozenMap)
    custom: CustomDriver | None = None  # a driver that the catalog describes

    def __hash__(self) -> int:
        return hash((self.name, self.release, self.mig, self.options))

    @property
    def facts(self) -> DriverFacts:
        return driver_facts()[self.name] if self.custom is None else facts_of(self.custom)

    def option(self, name: str) -> str | None:
        """The value of the option, or its default."""
        return self.options.get(name, self.facts.options[name].default)

    def without_image(self) -> DriverProfile:
        """The profile for any node image: without the versions that the image decides."""
        kept = {name: value for name, value in self.options.items() if not self.facts.options[name].of_image}
        return replace(self, options=FrozenMap(kept))

    @property
    def features(self) -> frozenset[str]:
        """The features in which the release publishes differently from others."""
        release = self.facts.release(self.release)
        return release.features if release else frozenset()

    @property
    def prepare(self) -> PrepareRules:
        """The requests that the driver refuses after scheduling."""
        return self.facts.prepare

    @property
    def label(self) -> str:
        """For users: "nvidia v0.4.1, dynamic MIG"."""
        match self.mig:
            case DynamicMig(mode_enabled=True):
                mig = ", dynamic MIG (MIG mode enabled)"
            case DynamicMig():
                mig = ", dynamic MIG"
            case StaticMig(layout):
                mig = f", MIG {layout}"
            case NoMig():
                mig = ""
        # The options that the node image decides would make every label long.
        options = [name if value == _ON else f"{name} {value}" for name, value in self.without_image().options.items()]
        return ", ".join([f"{self.name} {self.release}{mig}", *options])

    @property
    def text(self) -> str:
        """The form that `parse_driver_set` reads; the assumed release and default gates are left out."""
        facts = self.facts
        options = [*_mig_options(self.mig)]
        options += [name if value == _ON else f"{name}={value}" for name, value in self.options.items()]
        for gate, on in self.gates.items():
            if on != facts.gates[gate].default and not (gate == "DynamicMIG" and isinstance(self.mig, DynamicMig)):
                options.append(f"{gate}={str(on).lower()}")
        assumed = assumptions().releases[self.name] if self.custom is None else self.custom.release
        release = "" if self.release == assumed else f"@{self.release}"
        return ":".join([self.name + release, *options])


@dataclass(frozen=True, slots=True)
class DriverSet:
    """The drivers of a node, at most one profile per driver. `notes` warn about assumptions."""

    profiles: tuple[DriverProfile, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """For users: "nvidia v0.4.1, dynamic MIG + compute-domain v0.4.1"."""
        return " + ".join(p.label for p in self.profiles) or "no DRA driver"

    @property
    def text(self) -> str:
        """The form that `parse_driver_set` reads, to be written into a CapacityPool."""
        return ",".join(p.text for p in self.profiles)

    def profile(self, name: str) -> DriverProfile | None:
        return next((p for p in self.profiles if p.name == name), None)

    def with_profile(self, profile: DriverProfile) -> DriverSet:
        """The set with `profile` replacing the one of its name, or added."""
        kept = tuple(profile if p.name == profile.name else p for p in self.profiles)
        return replace(self, profiles=kept if self.profile(profile.name) else (*kept, profile))


@lru_cache(maxsize=4096)  # planning asks for it with every offering
def with_gates(drivers: DriverSet, gates: frozenset[tuple[str, str]]) -> DriverSet | None:
    """The set with feature gates on, or options that are switches, given as (profile name, gate or option); None if
    that changes nothing or cannot be."""
    changed = drivers
    for profile in drivers.profiles:
        wanted = [gate for name, gate in sorted(gates) if name == profile.name]
        known = {gate: True for gate in wanted if gate in profile.gates}
        switches = {
            name: _ON for name in wanted if name in profile.facts.options and profile.facts.options[name].switch
        }
        profile = replace(profile, gates=profile.gates.with_items(known))
        changed = changed.with_profile(_with_options(profile, {**profile.options, **switches}))
    try:
        for profile in changed.profiles:
            _check(profile)
    except DriverProfileError:
        return None
    return None if changed == drivers else changed


@lru_cache(maxsize=1024)  # planning asks for it with every node
def refused_sharing(drivers: DriverSet) -> FrozenMap[str, str]:
    """The sharing strategies that the drivers refuse, each with the feature gate that is off."""
    return FrozenMap(
        {
            strategy: gate
            for profile in drivers.profiles
            if profile.custom is None
            for strategy, gate in profile.facts.sharing_gates.items()
            if not profile.gates.get(gate)
        }
    )


@lru_cache(maxsize=256)  # planning asks for it with every offering
def assumed_profile(name: str, *, mig: MigMode | None = None) -> DriverProfile:
    """The profile of a driver with the release of defaults.yaml and its gates."""
    facts = driver_facts()[name]
    release = assumptions().releases[name]
    return _with_mig(DriverProfile(name, facts.driver, release, _default_gates(facts, release)), mig or NoMig())


def custom_profile(driver: CustomDriver) -> DriverProfile:
    return DriverProfile(driver.name, driver.driver, driver.release, custom=driver)


def parse_driver_set(text: str, *, custom: Mapping[str, CustomDriver] = NO_CUSTOM_DRIVERS) -> DriverSet:
    """Read the text form. Raises DriverProfileError; a release that is not known is replaced, with a note.

    `custom` are the drivers that the catalog describes, by profile name (Catalog.drivers).
    """
    profiles: list[DriverProfile] = []
    notes: list[str] = []
    for part in (p.strip() for p in text.split(",")):
        profile, note = _parse_profile(part, custom)
        if any(p.name == profile.name for p in profiles):
            raise DriverProfileError(f"driver profile {profile.name!r} is given twice; combine its options with ':'")
        profiles.append(profile)
        notes += [note] if note else []
    return DriverSet(tuple(profiles), tuple(notes))


def _parse_profile(text: str, custom: Mapping[str, CustomDriver]) -> tuple[DriverProfile, str]:
    head, *options = text.split(":")
    name, _, wanted = head.partition("@")
    if name not in driver_facts() and name not in custom:
        raise DriverProfileError(f"{_unknown('driver profile', name, [*driver_facts(), *custom])} Write {GRAMMAR}.")
    profile, note = custom_profile(custom[name]) if name in custom else assumed_profile(name), ""
    facts = profile.facts
    if wanted:
        release = _nearest(facts, wanted)
        profile = replace(profile, release=release.name, gates=_default_gates(facts, release.name))
        if release.name.removeprefix("v") != wanted.removeprefix("v"):
            note = f"{name} {wanted} is not known; predicting as {release.name}, the nearest release that is"
    for option in options:
        profile = _with_option(profile, option)
    _check(profile)
    return profile, note


def _with_option(profile: DriverProfile, option: str) -> DriverProfile:
    key, has_value, value = option.partition("=")
    allowed = _allowed_options(profile)
    if key not in allowed or bool(has_value) != allowed[key]:
        shown = [f"{name}=…" if needs_value else name for name, needs_value in allowed.items()]
        raise DriverProfileError(
            f"{_unknown(f'option of {profile.name}', option, shown, near=key)} It takes: {', '.join(shown) or 'none'}."
        )
    match key:
        case "dynamic-mig":
            return _with_mig(profile, DynamicMig(mode_enabled=_mode_enabled(profile)))
        case "mig-mode-on":
            return _with_mig(profile, DynamicMig(mode_enabled=True))
        case "mig":
            return _with_mig(profile, StaticMig(value))
        case _ if key in profile.facts.options:
            return _given(profile, key, value)
        case _:
            return _with_gate(profile, key, value)


def _given(profile: DriverProfile, option: str, value: str) -> DriverProfile:
    facts = profile.facts.options[option]
    if facts.switch:
        return _with_options(profile, {**profile.options, option: _ON})
    if facts.of_image:
        value = value.removeprefix("v")
    if not re.fullmatch(facts.pattern, value):
        raise DriverProfileError(f"option {option} of {profile.name} takes {facts.hint}, not {value!r}")
    return _with_options(profile, {**profile.options, option: value})


def _with_options(profile: DriverProfile, given: Mapping[str, str]) -> DriverProfile:
    """In the order of the facts, so that equal profiles have equal texts; defaults are left out."""
    known = profile.facts.options.items()
    return replace(
        profile, options=FrozenMap({k: given[k] for k, facts in known if given.get(k, facts.default) != facts.default})
    )


def _with_gate(profile: DriverProfile, gate: str, value: str) -> DriverProfile:
    if value not in ("true", "false"):
        raise DriverProfileError(f"gate {gate} of {profile.name} takes true or false, not {value!r}")
    on = value == "true"
    if gate == "DynamicMIG":
        return _with_mig(profile, DynamicMig(mode_enabled=_mode_enabled(profile)) if on else NoMig())
    return replace(profile, gates=profile.gates.with_items({gate: on}))


def _with_mig(profile: DriverProfile, mig: MigMode) -> DriverProfile:
    """MIG mode and gate change together; StaticMig and DynamicMig exclude each other."""
    if isinstance(profile.mig, StaticMig) and isinstance(mig, DynamicMig):
        raise DriverProfileError("mig=LAYOUT and dynamic-mig exclude each other; choose one")
    if isinstance(profile.mig, DynamicMig) and isinstance(mig, StaticMig):
        raise DriverProfileError("dynamic-mig and mig=LAYOUT exclude each other; choose one")
    gates = profile.gates
    if "DynamicMIG" in gates:
        gates = gates.with_items({"DynamicMIG": isinstance(mig, DynamicMig)})
    elif isinstance(mig, DynamicMig):
        raise DriverProfileError(f"{profile.name} {profile.release} has no gate DynamicMIG; take v25.12.0 or newer")
    return replace(profile, mig=mig, gates=gates)


def _check(profile: DriverProfile) -> None:
    for first, second in profile.facts.exclusive_gates:
        if profile.gates.get(first) and profile.gates.get(second):
            raise DriverProfileError(f"gates {first} and {second} of {profile.name} cannot be on together; drop one")
    for option in profile.options:
        gate = profile.facts.options[option].gate
        if gate is not None and not profile.gates.get(gate):
            raise DriverProfileError(
                f"option {option} of {profile.name} does nothing without its gate; add {gate}=true, with a release "
                "that has it, or drop the option"
            )


def _allowed_options(profile: DriverProfile) -> dict[str, bool]:
    """Option → whether it takes a value."""
    mig = {"dynamic-mig": False, "mig-mode-on": False, "mig": True} if profile.facts.mig else {}
    own = {name: not facts.switch for name, facts in profile.facts.options.items()}
    return {**mig, **own, **dict.fromkeys(profile.gates, True)}


def _mig_options(mig: MigMode) -> Iterable[str]:
    match mig:
        case StaticMig(layout):
            yield f"mig={layout}"
        case DynamicMig(mode_enabled):
            yield "dynamic-mig"
            if mode_enabled:
                yield "mig-mode-on"
        case NoMig():
            return


def _mode_enabled(profile: DriverProfile) -> bool:
    return isinstance(profile.mig, DynamicMig) and profile.mig.mode_enabled


def _default_gates(facts: DriverFacts, release: str) -> FrozenMap[str, bool]:
    return FrozenMap({n: g.default for n, g in facts.gates.items() if facts.knows_gate(n, release)})


def _nearest(facts: DriverFacts, wanted: str) -> Release:
    """The newest known release that is not newer than `wanted`, else the oldest."""
    found = _VERSION.match(wanted)
    if not found:
        names = ", ".join(r.name for r in facts.releases)
        raise DriverProfileError(f"{wanted!r} is not a release of {facts.profile}; known are {names}")
    key = _order(facts, wanted)
    not_newer = [r for r in facts.releases if _order(facts, r.name) <= key]
    return not_newer[-1] if not_newer else facts.releases[0]


def _order(facts: DriverFacts, release: str) -> tuple[int, int, int]:
    found = _VERSION.match(release)
    if not found:  # data files are checked by tests
        return (0, 0, 0)
    line = facts.calendar.get(f"{found[1]}.{found[2]}", f"{found[1]}.{found[2]}")
    major, minor = line.split(".")
    return (int(major), int(minor), int(found[3] or 0))


def _unknown(what: str, given: str, allowed: Iterable[str], *, near: str = "") -> str:
    step = did_you_mean(near or given, allowed)
    return f"no {what} {given!r}; {step}" if step else f"no {what} {given!r}."

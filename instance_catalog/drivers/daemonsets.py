"""`Auto`: finds the driver profiles of a cluster's DaemonSets.

A driver's release is its image's tag; its feature gates and options are environment variables and arguments of the
container. The rules are data (data/drivers/daemonsets.yaml). Must not know pools, nodes or predictions; manifests are
plain dicts, since this module must not depend on how they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.facts import DriverFacts, driver_facts
from instance_catalog.drivers.profile import DriverProfile, DriverProfileError, DriverSet, parse_driver_set
from instance_catalog.drivers.recognition import DriverRecognition, Setting, driver_recognition

_RELEASE: Final = re.compile(r"v?\d+\.\d+(?:\.\d+)?")
# Gates that every component has and that change nothing a driver publishes.
_LOGGING_GATES: Final = frozenset({"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"})


@dataclass(frozen=True, slots=True)
class _Container:
    """A container of a DaemonSet. `words` are those of its command line, `environment` holds literal values only."""

    home: str  # namespace/name of the DaemonSet
    repository: str
    tag: str | None
    words: tuple[str, ...]
    environment: Mapping[str, str]

    def is_driver(self, rule: DriverRecognition) -> bool:
        """True if the container runs the driver of the rule."""
        if self.repository.rpartition("/")[2] not in rule.images:
            return False
        return rule.command is None or rule.command in (word.rpartition("/")[2] for word in self.words)

    def setting(self, place: Setting) -> str | None:
        """The value of an argument (which has priority) or an environment variable; "" for a bare switch; None:
        neither."""
        for index, word in enumerate(self.words):
            name, has_value, value = word.partition("=")
            if name == place.argument:
                following = self.words[index + 1] if index + 1 < len(self.words) else ""
                return value if has_value else "" if following.startswith("-") else following
        return self.environment.get(place.environment) if place.environment else None


def profiles_from_daemonsets(daemonsets: Sequence[Mapping[str, Any]]) -> DriverSet:
    """The driver profiles that run where these DaemonSets run; `notes` of the set are assumptions and omissions.

    `daemonsets` are manifests as the Kubernetes API returns them. The caller passes those whose pods the nodes in
    question accept; of two that run one driver differently the first by namespace and name counts, with a note.
    DaemonSets that are no known DRA driver are ignored, so the set may be empty. Never raises on content.
    """
    found: dict[str, DriverProfile] = {}
    homes: dict[str, str] = {}
    notes: list[str] = []
    for container in sorted(_containers(daemonsets), key=lambda c: c.home):
        for rule in driver_recognition():
            if not container.is_driver(rule):
                continue
            profile, said = _profile(container, rule)
            notes += said
            if profile is None:
                continue
            if rule.profile not in found:
                found[rule.profile], homes[rule.profile] = profile, container.home
            elif found[rule.profile] != profile:
                notes.append(
                    f"{rule.profile} runs differently in DaemonSets {homes[rule.profile]} and {container.home}; "
                    "the first counts. Name the drivers in the CapacityPool to decide"
                )
    ordered = tuple(found[rule.profile] for rule in driver_recognition() if rule.profile in found)
    return DriverSet(ordered, tuple(dict.fromkeys(notes)))


def _profile(container: _Container, rule: DriverRecognition) -> tuple[DriverProfile | None, list[str]]:
    """The profile that a container runs, None if it cannot be predicted, and notes about it."""
    release, notes = _release(container, rule)
    try:
        base = parse_driver_set(rule.profile + release)
        gates, unknown = _gates(container, rule, base.profiles[0])
        options = _options(container, rule, base.profiles[0].facts, gates)
        read = parse_driver_set(":".join([rule.profile + release, *options, *gates]))
    except DriverProfileError as error:
        return None, [*notes, f"DaemonSet {container.home} runs {rule.profile}, which is left out: {error}"]
    notes += [f"{note} (DaemonSet {container.home})" for note in read.notes]
    notes += [
        f"gate {gate} of {rule.profile} in DaemonSet {container.home} is not known; taken to change nothing that is "
        "published"
        for gate in unknown
    ]
    return read.profiles[0], notes


def _release(container: _Container, rule: DriverRecognition) -> tuple[str, list[str]]:
    """`@RELEASE` from the image's tag, or nothing with a note: then the assumed release counts."""
    tag = container.tag or ""
    if tag in (release.name for release in driver_facts()[rule.profile].releases):
        return f"@{tag}", []
    version = _RELEASE.match(tag)
    if version:
        return f"@{version[0]}", []
    image = f"{container.repository}:{tag}" if tag else container.repository
    return "", [
        f"image {image} of DaemonSet {container.home} names no release of {rule.profile}; the newest is assumed"
    ]


def _gates(container: _Container, rule: DriverRecognition, base: DriverProfile) -> tuple[list[str], list[str]]:
    """Gates as options of the profile, and unknown gates. One chart passes the same gates to all its plugins."""
    if rule.gates is None:
        return [], []
    text = container.setting(rule.gates) or ""
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    known = [f"{name}={value.lower()}" for name, _, value in pairs if name in base.gates]
    common = _LOGGING_GATES.union(*(facts.gates for facts in driver_facts().values()))
    unknown = [name for name, _, _ in pairs if name not in base.gates and name not in common]
    return known, unknown


def _options(container: _Container, rule: DriverRecognition, facts: DriverFacts, gates: Sequence[str]) -> Iterator[str]:
    """Settings as options of the profile. Charts pass some of them on also where their gate is off."""
    for option in rule.options:
        if option.says:
            if option.says in " ".join(container.words):
                yield option.option
            continue
        value = container.setting(option.setting)
        gate = facts.options[option.option].gate
        if value is None or value in option.ignored or (gate is not None and f"{gate}=true" not in gates):
            continue
        if option.switch:
            if value != "false":
                yield option.option
        else:
            # A comma separates profiles, so lists are written with a plus sign there.
            yield f"{option.option}={value.replace(',', '+')}"


def _containers(daemonsets: Iterable[Mapping[str, Any]]) -> Iterator[_Container]:
    for manifest in daemonsets:
        home = f"{_at(manifest, 'metadata', 'namespace') or 'default'}/{_at(manifest, 'metadata', 'name') or ''}"
        for container in _at(manifest, "spec", "template", "spec", "containers") or ():
            environment = {
                entry["name"]: str(entry["value"])
                for entry in container.get("env") or ()
                if "name" in entry and "value" in entry
            }
            repository, tag = _image(str(container.get("image") or ""))
            line = (*(container.get("command") or ()), *(container.get("args") or ()))
            words = tuple(_expanded(word, environment) for part in line for word in str(part).split())
            yield _Container(home, repository, tag, words, environment)


def _expanded(word: str, environment: Mapping[str, str]) -> str:
    """$(NAME) replaced as the kubelet does."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), word)


def _image(text: str) -> tuple[str, str | None]:
    """registry:5000/path/name:tag@sha256:… → repository and tag."""
    repository, _, _ = text.partition("@")
    head, colon, tag = repository.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (repository, None)


def _at(value: Mapping[str, Any], *path: str) -> Any:
    found: Any = value
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found

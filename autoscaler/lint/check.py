"""The entry point of this package: all checks over all subjects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from autoscaler.lint.claim_names import check_claim_names
from autoscaler.lint.devices.effort import Effort, EffortExceededError
from autoscaler.lint.devices.offers import Offer, Specimen, published_offer, specimens
from autoscaler.lint.devices.reach import Reach, programs_of, reach
from autoscaler.lint.guards import check_guard
from autoscaler.lint.limits import check_admin_access, check_claim_limits, check_class_limits, check_gates
from autoscaler.lint.matching import Holder, check_matching
from autoscaler.lint.nearest import NearestMiss
from autoscaler.lint.placing import check_capacity, check_constraints, check_count, check_tolerations
from autoscaler.lint.published_names import PublishedNames
from autoscaler.lint.rules import MIXED_VERSIONS, NOT_TRIED, SELECTOR_FAILS, Finding
from autoscaler.lint.selector_text import check_selector
from autoscaler.lint.slice_limits import check_slice_limits
from autoscaler.lint.subjects import ClaimSubject, ClassSubject, SliceSubject, Subject
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Path
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile

_V1: Final = "resource.k8s.io/v1"
NO_RELEASES: Final[FrozenMap[str, str]] = FrozenMap()


def lint(
    subjects: Sequence[Subject],
    snapshot: Snapshot,
    offers: Sequence[Offer],
    *,
    releases: Mapping[str, str] = NO_RELEASES,
    effort: Effort | None = None,
) -> tuple[Finding, ...]:
    """The findings about the subjects, in their order. `snapshot` has the profile, the classes (built-in ones
    included), taint rules, namespaces and published slices; `offers` the devices that nodes of the catalog will
    publish, `releases` the names that other driver releases have published, `effort` the work that all selectors may
    take.
    """
    linter = _Linter(snapshot, (*offers, *published_offer(snapshot.slices)), releases, effort or Effort())
    usual = _usual_version(subjects)
    found: list[Finding] = []
    for subject in subjects:
        here = [*_other_version(subject, usual), *linter.findings(subject)]
        found += (finding.at(subject.origin.path, subject.origin.line) for finding in here)
    return tuple(found)


class _Linter:
    """Remembers what selectors let through: many claims ask for the same."""

    def __init__(
        self, snapshot: Snapshot, offers: Sequence[Offer], releases: Mapping[str, str], effort: Effort
    ) -> None:
        self._profile: KubernetesProfile = snapshot.profile
        self._namespaces = snapshot.namespaces
        self._classes = {found.name: found for found in snapshot.classes}
        self._devices: tuple[Specimen, ...] = specimens(offers, snapshot.profile, snapshot.taint_rules)
        self._known = PublishedNames.of(self._devices, releases, snapshot.profile)
        self._reached: dict[tuple[Selector, ...], Reach | None] = {}
        self._untried: set[tuple[Selector, ...]] = set()
        self._effort = effort
        self._nearest = NearestMiss(snapshot.profile, effort)

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """Everything about a subject but its version."""
        match subject:
            case ClassSubject():
                yield from self._class(subject)
            case ClaimSubject():
                yield from self._claim(subject)
            case SliceSubject() if not subject.stored:
                yield from check_slice_limits(subject, self._profile)
            case SliceSubject():
                pass  # an API server has accepted it

    def _class(self, subject: ClassSubject) -> Iterator[Finding]:
        yield from check_class_limits(subject)
        selectors = subject.device_class.selectors
        yield from self._texts(subject.object, ("spec",), selectors, stored=subject.stored)
        programs, found = programs_of(selectors, self._profile), self._reach(selectors)
        yield from self._not_tried(subject.object, ("spec",), selectors)
        if programs is None or found is None:
            return
        matching = [*self._matching(Holder(subject.object, ("spec",), (), programs), found)]
        yield from matching
        if not any(finding.rule is SELECTOR_FAILS for finding in matching):
            yield from check_guard(subject, programs, found, self._profile)

    def _claim(self, subject: ClaimSubject) -> Iterator[Finding]:
        yield from check_claim_limits(subject)
        yield from check_claim_names(subject)
        yield from check_gates(subject, self._profile.gates, self._profile.name)
        yield from check_admin_access(subject, self._namespaces)
        reached: dict[str, Reach] = {}
        for path, name, request in subject.requests():
            yield from self._texts(subject.object, path, request.selectors, stored=subject.stored)
            device_class = self._classes.get(request.device_class)
            if device_class is None:
                continue  # manifests/ reports it
            selectors = (*device_class.selectors, *request.selectors)
            found = self._reach(selectors)
            yield from self._not_tried(subject.object, path, selectors)
            if found is not None:
                reached[name] = found
                yield from self._request(subject.object, path, device_class, request, found)
        yield from check_constraints(subject, reached, self._known)

    def _request(
        self, name: str, path: Path, device_class: DeviceClass, request: DeviceRequest, found: Reach
    ) -> Iterator[Finding]:
        before, own = (programs_of(s, self._profile) for s in (device_class.selectors, request.selectors))
        if before is not None and own is not None:
            yield from self._matching(Holder(name, path, before, own), found)
        yield from check_count(name, path, request, found)
        yield from check_capacity(name, path, request, found, self._known)
        yield from check_tolerations(name, path, request, found, self._profile)

    def _matching(self, holder: Holder, found: Reach) -> Iterator[Finding]:
        yield from check_matching(holder, found, self._devices, known=self._known, nearest=self._nearest)

    def _texts(self, name: str, path: Path, selectors: Sequence[Selector], *, stored: bool) -> Iterator[Finding]:
        for index, selector in enumerate(selectors):
            if selector.expression is not None:
                place = (*path, "selectors", index, "cel", "expression")
                yield from check_selector(
                    name, place, selector.expression, stored=stored, profile=self._profile, known=self._known
                )

    def _not_tried(self, name: str, path: Path, selectors: tuple[Selector, ...]) -> Iterator[Finding]:
        if selectors in self._untried:
            message = "takes too much work to try on every device"
            step = "shorten loops and lists; `foreslice cel` shows what an expression costs"
            yield Finding.of(NOT_TRIED, name, (*path, "selectors"), message, step)

    def _reach(self, selectors: tuple[Selector, ...]) -> Reach | None:
        if selectors not in self._reached:
            chain = programs_of(selectors, self._profile)
            try:
                self._reached[selectors] = None if chain is None else reach(chain, self._devices, self._effort)
            except EffortExceededError:
                self._reached[selectors] = None
                self._untried.add(selectors)
        return self._reached[selectors]


def _usual_version(subjects: Sequence[Subject]) -> str:
    """The version of most objects, v1 winning a draw."""
    counts = Counter(subject.version for subject in subjects)
    return max(sorted(counts), key=lambda version: (counts[version], version == _V1), default=_V1)


def _other_version(subject: Subject, usual: str) -> Iterator[Finding]:
    if subject.version != usual:
        message = f"is written for {subject.version}, others for {usual}"
        step = f"write apiVersion: {usual}" + (
            "; the fields of a request are then below `exactly`" if usual == _V1 else ""
        )
        yield Finding.of(MIXED_VERSIONS, subject.object, ("apiVersion",), message, step)

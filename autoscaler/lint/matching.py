"""The results of selectors on the known devices: nothing matches, some fail, some cannot be decided before launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoscaler.cel.interpreter.device import split_name
from autoscaler.cel.program import Program
from autoscaler.lint.devices.offers import Offer, Specimen
from autoscaler.lint.devices.reach import Failing, Reach, reach
from autoscaler.lint.expressions import drivers_named
from autoscaler.lint.guards import guard_against
from autoscaler.lint.nearest import NearestMiss
from autoscaler.lint.published_names import MISSPELT, PublishedNames
from autoscaler.lint.rules import (
    CATALOG_GAP,
    DRIVER_NOT_PREDICTED,
    NEVER_MATCHES,
    RUN_TIME_ONLY,
    SELECTOR_FAILS,
    SELECTOR_FAILS_ELSEWHERE,
    UNKNOWN_DRIVER,
    Finding,
)
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.resource_slice import RuntimeOnly
from instance_catalog.spelling import did_you_mean

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """Selectors with their path: those of `own` are at `path`; `before` are the class's, which are checked there."""

    object: str
    path: Path
    before: tuple[Program, ...]
    own: tuple[Program, ...]

    @property
    def chain(self) -> tuple[Program, ...]:
        """All selectors in the scheduler's order."""
        return (*self.before, *self.own)

    def place(self, index: int) -> Path:
        """The expression at `index` of the chain."""
        return (*self.path, "selectors", max(index - len(self.before), 0), "cel", "expression")


def check_matching(
    holder: Holder, found: Reach, devices: Sequence[Specimen], *, known: PublishedNames, nearest: NearestMiss
) -> Iterator[Finding]:
    """At most one finding on what matches, and one for each selector that fails."""
    own = [failing for failing in found.failing if failing.index >= len(holder.before)]
    yield from _failures(holder, found, own, devices)
    if found.matching or own or not holder.own:
        return
    if found.unknown:
        yield _undecided(holder, found, devices, nearest)
        return
    other_driver = _other_drivers(holder, known)
    if other_driver is not None:
        yield other_driver
    elif reach(holder.before, devices).possible:
        yield _never(holder, devices, nearest)


def _failures(
    holder: Holder, found: Reach, failures: Sequence[Failing], devices: Sequence[Specimen]
) -> Iterator[Finding]:
    for index in sorted({failing.index for failing in failures}):
        here = [failing for failing in failures if failing.index == index]
        offers = list(dict.fromkeys(offer for failing in here for offer in failing.specimen.counts))
        beside = [offer for offer in offers if offer in found.offers]
        program = holder.chain[index]
        first = next((f for f in here if beside and beside[0] in f.specimen.counts), here[0])
        example = f"{first.message} on {first.specimen.driver} {_devices(first, beside[0] if beside else offers[0])}"
        if not found.possible:
            message = f"fails wherever it is reached, and nothing matches: {example}"
        elif beside:
            message = f"fails on {_types(beside)} that also have matching devices: {example}"
        else:
            message = f"fails on {_types(offers)} (none of which has matching devices): {example}"
        rule = SELECTOR_FAILS if beside or not found.possible else SELECTOR_FAILS_ELSEWHERE
        step = guard_against(first, program, found, devices)
        yield Finding.of(rule, holder.object, holder.place(index), message, step)


def _devices(failing: Failing, offer: Offer) -> str:
    return f"devices such as {failing.specimen.device.name} of {offer}"


def _types(offers: Sequence[Offer]) -> str:
    names = list(dict.fromkeys(offer.type for offer in offers))
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} other types" if len(names) > _SHOWN else shown


def _undecided(holder: Holder, found: Reach, devices: Sequence[Specimen], nearest: NearestMiss) -> Finding:
    """Values that only a running node has, or that the catalog might have."""
    names = sorted({name for names in found.unknown.values() for name in names})
    listed = ", ".join(names) or "more work than is done for a selector"
    place = holder.place(len(holder.before))
    if names and all(_is_gap(specimen, names) for specimen in found.unknown):
        message = f"nothing matches for certain: the catalog does not have {listed} of {_types(_offers(found))}"
        known = [one for one in reach(holder.before, devices).possible if one not in found.unknown]
        instead = nearest.of([program.expression for program in holder.own], known)[1]
        step = "add the fact with --catalog; see docs/catalog.md"
        return Finding.of(CATALOG_GAP, holder.object, place, message, f"{step}\n{instead}" if instead else step)
    message = f"depends on {listed}, which no one knows before the node runs"
    step = "select by what the type decides (productName, memory); to keep devices together use matchAttribute"
    return Finding.of(RUN_TIME_ONLY, holder.object, place, message, step)


def _offers(found: Reach) -> list[Offer]:
    return list(dict.fromkeys(offer for specimen in found.unknown for offer in specimen.counts))


def _is_gap(specimen: Specimen, names: Sequence[str]) -> bool:
    """True if all of the names that this device holds as tokens are gaps of the catalog."""
    values = [
        value
        for name, value in specimen.device.attributes.items()
        if "/".join(split_name(name, specimen.driver)) in names and isinstance(value, RuntimeOnly)
    ]
    return all(value.is_catalog_gap for value in values)


def _other_drivers(holder: Holder, known: PublishedNames) -> Finding | None:
    """Selectors that ask for drivers whose devices are not predicted."""
    named = drivers_named(tuple(program.expression for program in holder.own)) or drivers_named(
        tuple(program.expression for program in holder.before)
    )
    if not named or named & known.drivers:
        return None
    place, first = holder.place(len(holder.before)), min(named)
    names = known.drivers | known.unpredicted
    step = "" if first in names else did_you_mean(first, names, equivalence_key=MISSPELT)
    if step:
        message = f"no known driver is called {first}"
        return Finding.of(UNKNOWN_DRIVER, holder.object, place, message, step)
    message = f"devices of {', '.join(sorted(named))} are not predicted, so whether any matches is not known"
    return Finding.of(
        DRIVER_NOT_PREDICTED, holder.object, place, message, "give a node that has some, with its ResourceSlices"
    )


def _never(holder: Holder, devices: Sequence[Specimen], nearest: NearestMiss) -> Finding:
    candidates = reach(holder.before, devices).possible
    own = [program.expression for program in holder.own]
    closest, instead = nearest.of(own, candidates)
    index = len(holder.before) + _blocking(holder.own, candidates)
    message = "no device of the catalog meets it" + (f"; {closest}" if closest else "")
    step = instead or "`foreslice catalog list` shows the types, `foreslice slices TYPE` what their devices publish"
    return Finding.of(NEVER_MATCHES, holder.object, holder.place(index), message, step)


def _blocking(own: Sequence[Program], candidates: Sequence[Specimen]) -> int:
    """The first selector after which nothing is left."""
    return next((i for i in range(len(own)) if not reach(own[: i + 1], candidates).possible), 0)

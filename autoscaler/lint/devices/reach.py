"""The devices that a chain of selectors accepts, class first, and those on which it fails, in kube-scheduler's
order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.program import Program, compile_selector
from autoscaler.lint.devices.effort import Effort
from autoscaler.lint.devices.offers import Offer, Specimen
from autoscaler.model.device_class import Selector
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.profile import KubernetesProfile


@dataclass(frozen=True, slots=True)
class Failing:
    """A device on which the selector at `index` of the chain raises an error."""

    specimen: Specimen
    index: int
    message: str
    missing_key: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """`unknown` maps devices whose match depends on values not known yet to the attributes ("domain/id")."""

    matching: tuple[Specimen, ...]
    unknown: dict[Specimen, frozenset[str]]
    failing: tuple[Failing, ...]

    @property
    def possible(self) -> tuple[Specimen, ...]:
        """Devices that match or may."""
        return (*self.matching, *self.unknown)

    @property
    def offers(self) -> frozenset[Offer]:
        """The offers with devices that match or may match."""
        return frozenset(offer for specimen in self.possible for offer in specimen.counts)


def programs_of(selectors: Iterable[Selector], profile: KubernetesProfile) -> tuple[Program, ...] | None:
    """The stored view of the selectors; None if one of them cannot be evaluated."""
    found = []
    for selector in selectors:
        program = None if selector.expression is None else compile_selector(selector.expression, profile)
        if program is None or isinstance(program, CompileFailure):
            return None
        found.append(program)
    return tuple(found)


def reach(chain: Sequence[Program], devices: Iterable[Specimen], effort: Effort | None = None) -> Reach:
    """Evaluate the chain for every device, stopping at the first false or error as the scheduler does.

    Without `effort`, only results that are already known are used. Raises EffortExceededError.
    """
    effort = effort or Effort()
    matching, failing = [], []
    unknown: dict[Specimen, frozenset[str]] = {}
    for specimen in devices:
        depends: frozenset[str] = frozenset()
        undecided = False
        for index, program in enumerate(chain):
            found = effort.evaluate(program, specimen.view)
            if found.outcome is Outcome.FALSE:
                break
            if found.outcome is Outcome.ERROR:
                failing.append(Failing(specimen, index, found.message, found.missing_key))
                break
            if found.outcome is Outcome.UNKNOWN:
                undecided = True
                depends |= frozenset(found.unknown_attributes)
        else:
            if undecided:
                unknown[specimen] = depends
            else:
                matching.append(specimen)
    return Reach(tuple(matching), unknown, tuple(failing))

"""One case, both sides, and what differs: the same for allocations, selectors and placements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.e2e.binary import control_plane
from tests.oracle import allocations, placements, selections
from tests.oracle.allocation_cases import allocation_case
from tests.oracle.claim_cases import claim_case
from tests.oracle.placement_cases import placement_case
from tests.oracle.selector_cases import selector_case
from tests.oracle.upstream import RELEASES, Given, Json, OracleError, Release, Upstream

# Nothing to compare with: upstream ran into the limit, or crashed (as on a list with an optional entry of type dyn).
UNANSWERED = ("timeout", "panic")
_TIMES = 20  # enough for each of a handful of entries to come first
LIMIT = 2.0  # seconds that upstream may think about one case


@dataclass(frozen=True)
class Kind:
    """What can be compared."""

    name: str
    draw: Callable[[str], Json]
    question: Callable[[Json, Release], Json]
    simulated: Callable[[Json, Release], Given]
    difference: Callable[[Json, Json], str | None]
    versions: tuple[str, ...] = tuple(RELEASES)

    def upstream(self, release: Release) -> Upstream:
        """The program to ask: the scheduler is in the control plane's, which builds with them once."""
        if self.name in ("placement", "claim"):
            return Upstream(control_plane(), "placements")
        return Upstream(release.program)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("allocation", allocation_case, allocations.question, allocations.simulated, allocations.difference),
        Kind("selector", selector_case, selections.question, selections.simulated, selections.difference),
        Kind("placement", placement_case, placements.question, placements.simulated, placements.difference, ("1.36",)),
        Kind("claim", claim_case, placements.question, placements.simulated, placements.difference, ("1.36",)),
    )
}


@dataclass(frozen=True)
class Compared:
    """Upstream's answer, and how the simulator's differs: None where it does not, or where upstream gave none."""

    expected: Json
    difference: str | None
    ours: int  # nanoseconds
    theirs: int

    @property
    def sort(self) -> tuple[str, ...]:
        """Equal for differences of one sort: what differs, upstream's outcome, and the end of its error."""
        what = "" if self.difference is None else self.difference.split(maxsplit=1)[0]
        return what, self.expected["outcome"], self.expected.get("error", "").rpartition(": ")[2]


def compare(kind: Kind, case: Json, release: Release, upstream: Upstream) -> Compared:
    """Ask both. Raises OracleError for a case that is no question at all."""
    question = {**kind.question(case, release), "seconds": LIMIT}
    upstream.ask(question)
    given = kind.simulated(case, release)
    expected = upstream.answer()
    theirs = expected.pop("nanoseconds", 0) + expected.pop("compileNanoseconds", 0)
    if theirs > LIMIT * 1e9:  # the plugins are not stopped by us; what they say then is about their own time limit
        expected = {**expected, "outcome": "timeout"}
    difference = None if expected["outcome"] in UNANSWERED else kind.difference(given.answer, expected)
    if difference is not None and any(
        kind.difference(given.answer, again) is None for again in _answers(upstream, question)
    ):
        difference = None
    return Compared(expected, difference, given.nanoseconds, theirs)


def _answers(upstream: Upstream, question: Json) -> Iterator[Json]:
    """Upstream's answers to a question asked again: Go draws the order in which it walks through a map each time."""
    for _ in range(_TIMES):
        upstream.ask(question)
        yield upstream.answer()


def still_differs(kind: Kind, case: Json, release: Release, upstream: Upstream) -> Callable[[Json], bool]:
    """Whether a smaller case shows a difference of the same sort as this one, as a question for the shrinking."""
    wanted = compare(kind, case, release, upstream).sort

    def differs(smaller: Json) -> bool:
        try:
            found = compare(kind, smaller, release, upstream)
        except OracleError:
            return False
        return found.difference is not None and found.sort == wanted

    return differs

"""One case, both sides, and what differs: the same for every kind of case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.oracle.comparing.chance import Chance
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.upstream import Given, Json, OracleError, Release, Upstream

# Nothing to compare with: upstream ran into the limit, or crashed (as on a list with an optional entry of type dyn).
UNANSWERED = ("timeout", "panic")
RAISED = "raised"  # the simulator's outcome where it ended with an exception, which it never may
_UNDECIDED = "unknown"
_TIMES = 20  # how often upstream is asked again; where its answers vary, up to the number below
_MOST_TIMES = 400


def _never(_: Json) -> bool:
    return False


@dataclass(frozen=True)
class Kind:
    """What can be compared. Shares are parts of one; those of ceilings are parts of the cases drawn.

    `cases` is the share of the asked number that is drawn, `least` the smallest number that a run may compare.
    """

    name: str
    draw: Callable[[str], Json]
    question: Callable[[Json, Release], Json]
    simulated: Callable[[Json, Release], Given]
    differences: Callable[[Json, Json], Sequence[Difference]]
    program: Callable[[Release], Upstream]
    versions: tuple[str, ...]
    chances: tuple[Chance, ...] = ()
    seconds: float = 2.0  # that upstream may think about one case
    cases: float = 1.0
    least: int = 100
    unanswered: float = 0.01  # ceiling for cases that upstream does not answer
    by_chance: float = 0.0  # ceiling for cases to which upstream's own answers vary
    undecided: float = 0.0  # ceiling for cases that the simulator calls unknown, where it may
    undecidable: Callable[[Json], bool] = _never

    def wanted(self, asked: int) -> int:
        """How many cases are drawn if a number of them is asked for. Of slow ones, no fewer than a run owes."""
        return asked if self.cases == 1 else max(2 * self.least, round(asked * self.cases))

    def difference(self, found: Json, expected: Json) -> Difference | None:
        """The first difference."""
        return next(iter(self.differences(found, expected)), None)

    def answered(self, case: Json, release: Release) -> Given:
        """The simulator's answer. An exception is an answer, too, and a wrong one."""
        try:
            return self.simulated(case, release)
        except Exception as error:  # noqa: BLE001 - it is what the comparison is to show
            return Given({"outcome": RAISED, "error": f"{type(error).__name__}: {error}"[:300]}, 0)


@dataclass(frozen=True)
class Compared:
    """Upstream's answer, and how the simulator's differs.

    `difference` is None where nothing differs, where upstream gave no answer, where `chance` explains the difference,
    and where the simulator does not decide (`undecided`).
    """

    expected: Json
    difference: Difference | None
    ours: int  # nanoseconds
    theirs: int
    chance: Chance | None = None
    undecided: bool = False

    @property
    def answered(self) -> bool:
        """Whether upstream gave an answer."""
        return self.expected["outcome"] not in UNANSWERED

    @property
    def sort(self) -> tuple[str, ...]:
        """Equal for differences of one sort: what differs, both outcomes, and the end of upstream's error."""
        if self.difference is None:
            return ()
        return (
            self.difference.field.value,
            self.difference.text.split(maxsplit=1)[0],
            self.expected["outcome"],
            self.expected.get("error", "").rpartition(": ")[2],
        )


def compare(
    kind: Kind,
    case: Json,
    release: Release,
    upstream: Upstream,
    *,
    simulated: Callable[[Json, Release], Given] | None = None,
) -> Compared:
    """Ask both; `simulated` takes the place of the kind's own. Raises OracleError for a case that is no question."""
    question = {**kind.question(case, release), "seconds": kind.seconds}
    upstream.ask(question)
    given = (simulated or kind.answered)(case, release)
    expected = upstream.answer()
    theirs = expected.pop("nanoseconds", 0) + expected.pop("compileNanoseconds", 0)
    if theirs > kind.seconds * 1e9:  # plugins are not stopped by us; what they say then is about their own limit
        expected = {**expected, "outcome": "timeout"}
    if expected["outcome"] in UNANSWERED:
        return Compared(expected, None, given.nanoseconds, theirs)
    undecided = is_undecided(given.answer)
    if undecided and not kind.undecidable(case):
        unknown = Difference(Field.OUTCOME, f"{_UNDECIDED} instead of {expected['outcome']}")
        return Compared(expected, unknown, given.nanoseconds, theirs)
    if given.answer["outcome"] == _UNDECIDED:
        return Compared(expected, None, given.nanoseconds, theirs, undecided=True)
    found = kind.differences(given.answer, expected)
    chance = _explained(kind, case, release, given.answer, _Asked(upstream, question, expected)) if found else None
    difference = found[0] if found and chance is None else None
    return Compared(expected, difference, given.nanoseconds, theirs, chance, undecided)


def is_undecided(answer: Json) -> bool:
    """Whether the simulator calls a part of its answer unknown."""
    return any(one["outcome"] == _UNDECIDED for one in (answer, *answer.get("answers", ())))


@dataclass(frozen=True)
class _Asked:
    """A question and upstream's first answer to it."""

    upstream: Upstream
    question: Json
    first: Json

    def again(self) -> Json:
        """Another answer: Go draws the order in which it walks through a map each time."""
        self.upstream.ask(self.question)
        found = self.upstream.answer()
        found.pop("nanoseconds", None)
        found.pop("compileNanoseconds", None)
        return found


def _explained(kind: Kind, case: Json, release: Release, ours: Json, asked: _Asked) -> Chance | None:
    """The documented reason for which upstream's own answers vary, if each of our differing parts is among them.

    Every part in which upstream contradicts itself, and every part in which the simulator differs from its first
    answer, must be one that the reason speaks of. That some answer agrees is not enough.

    How often upstream is asked bounds only how rare an answer may be; it decides about no difference without a reason.
    """
    open_keys = {difference.key for difference in kind.differences(ours, asked.first)}
    reason = next((chance for chance in kind.chances if _covers(chance, open_keys, case, release)), None)
    if reason is None:
        return None
    varying: set[tuple[Field, str]] = set()
    for time in range(_MOST_TIMES):
        if time >= _TIMES and not varying:
            return None
        other = asked.again()
        if other["outcome"] in UNANSWERED:
            return None
        changed = {difference.key for difference in kind.differences(other, asked.first)}
        if any(field not in reason.fields for field, _ in changed):
            return None
        varying |= changed
        still = {difference.key for difference in kind.differences(ours, other)}
        open_keys &= still
        if not (still if reason.whole else open_keys):
            return reason
    return None


def _covers(chance: Chance, keys: set[tuple[Field, str]], case: Json, release: Release) -> bool:
    return all(field in chance.fields for field, _ in keys) and chance.possible(case, release)


def still_differs(
    kind: Kind,
    case: Json,
    release: Release,
    upstream: Upstream,
    *,
    simulated: Callable[[Json, Release], Given] | None = None,
) -> Callable[[Json], bool]:
    """Whether a smaller case shows a difference of the same sort as this one, as a question for the shrinking."""
    wanted = compare(kind, case, release, upstream, simulated=simulated).sort

    def differs(smaller: Json) -> bool:
        try:
            found = compare(kind, smaller, release, upstream, simulated=simulated)
        except OracleError:
            return False
        return found.difference is not None and found.sort == wanted

    return differs

"""What a run of one kind and release came to, and what it owes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from tests.oracle.comparing.comparison import Compared, Kind

# A run compares nearly all of the cases that it was asked for: the time was chosen too short otherwise.
_SHARE = 0.9


@dataclass
class Tally:
    """Counts of cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    undecided: int = 0
    chances: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    ours: int = 0
    theirs: int = 0
    differing: list[tuple[str, str]] = field(default_factory=list)  # seed and text

    @property
    def drawn(self) -> int:
        """All cases."""
        return self.outcomes.total()

    @property
    def compared(self) -> int:
        """Cases that both sides decided."""
        return self.drawn - self.unanswered - self.undecided

    def add(self, seed: str, found: Compared) -> None:
        """Count one case."""
        self.outcomes[found.expected["outcome"]] += 1
        if not found.answered:
            self.unanswered += 1
            return
        self.ours += found.ours
        self.theirs += found.theirs
        if found.theirs:
            self.ratios.append(found.ours / found.theirs)
        self.undecided += found.undecided
        if found.chance is not None:
            self.chances[found.chance.name] += 1
        if found.difference is not None:
            self.differing.append((seed, str(found.difference)[:300]))

    def merge(self, other: Tally) -> None:
        """Add what another process counted."""
        self.outcomes += other.outcomes
        self.unanswered += other.unanswered
        self.undecided += other.undecided
        self.chances += other.chances
        self.ratios += other.ratios
        self.ours += other.ours
        self.theirs += other.theirs
        self.differing += other.differing

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common())
        chances = "".join(f", {count} by chance ({name})" for name, count in self.chances.items())
        ratio = f"median ratio {median(self.ratios):.2f}" if self.ratios else "nothing compared"
        times = f"{self.ours / 1e9:.2f} s here, {self.theirs / 1e9:.2f} s upstream, {ratio}"
        counts = f"{self.compared} compared, {self.unanswered} unanswered, {self.undecided} undecided{chances}"
        return f"{self.drawn} cases ({outcomes}), {counts}, {len(self.differing)} differ; {times}"


def failings(kind: Kind, tally: Tally, wanted: int) -> Iterator[str]:
    """What is wrong with the run of a kind that was to draw a number of cases. A ceiling lets one case through."""
    if tally.differing:
        yield f"{len(tally.differing)} differences"
    owed = max(kind.least, round(wanted * _SHARE * (1 - kind.unanswered - kind.undecided)))
    if tally.compared < owed:
        yield f"{tally.compared} cases compared, the minimum is {owed}: give it more time (SECONDS) or more cases (N)"
    for count, share, what in (
        (tally.unanswered, kind.unanswered, "without an answer from upstream"),
        (tally.undecided, kind.undecided, "that the simulator does not decide"),
        (tally.chances.total(), kind.by_chance, "to which upstream's own answers vary"),
    ):
        most = max(1, int(tally.drawn * share)) if share else 0
        if count > most:
            yield f"{count} cases {what}, the ceiling is {most}"

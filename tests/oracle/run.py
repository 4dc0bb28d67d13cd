"""`make oracle`: random cases to the simulator and to Kubernetes' own code; counts, times and every difference.

A fixed set of seeds comes first, then fresh ones, until `--cases` per kind and release are done or the time is up. A
difference is made small and written to tests/data/oracle, from where `make test` holds it against the simulator.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from time import monotonic

from tests.oracle.comparison import KINDS, UNANSWERED, Compared, Kind, compare, still_differs
from tests.oracle.recorded import DATA, record
from tests.oracle.shrinking import smallest
from tests.oracle.upstream import RELEASES, Json, Release, Upstream

_MOST_SHRUNK = 3  # per kind and release: what comes after them is mostly the same again


@dataclass
class Tally:
    """What one kind and release came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    ours: int = 0
    theirs: int = 0
    differing: list[tuple[str, Json]] = field(default_factory=list)

    def add(self, seed: str, case: Json, found: Compared) -> None:
        """Count one case."""
        self.outcomes[found.expected["outcome"]] += 1
        if found.expected["outcome"] in UNANSWERED:
            return
        self.ours += found.ours
        self.theirs += found.theirs
        if found.theirs:
            self.ratios.append(found.ours / found.theirs)
        if found.difference is not None:
            self.differing.append((seed, case))
            _say(f"  differs, seed {seed}: {found.difference[:300]}")

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common())
        ratio = f"median ratio {median(self.ratios):.2f}" if self.ratios else "nothing compared"
        times = f"{self.ours / 1e9:.2f} s here, {self.theirs / 1e9:.2f} s upstream, {ratio}"
        return f"{self.outcomes.total()} cases ({outcomes}), {len(self.differing)} differ; {times}"


def main() -> int:
    """The exit status: 1 if anything differs."""
    asked = _arguments()
    _say(f"fresh seed {asked.seed}; again with: make oracle N={asked.cases} SEED={asked.seed}")
    wanted = {name: RELEASES[name] for name in asked.releases}
    jobs = [(kind, wanted[name]) for kind in asked.kinds for name in kind.versions if name in wanted]
    failures, deadline = 0, monotonic() + asked.seconds
    for done, (kind, release) in enumerate(jobs):
        with kind.upstream(release) as upstream:
            until = monotonic() + (deadline - monotonic()) / (len(jobs) - done)
            tally = _run(kind, release, upstream, _seeds(asked.cases, asked.seed), until)
            _say(f"{kind.name} {release.name}: {tally}")
            for seed, case in tally.differing[:_MOST_SHRUNK]:
                small = smallest(case, still_differs(kind, case, release, upstream))
                expected = compare(kind, small, release, upstream).expected
                path = record(kind, release, small, expected)
                _say(f"  seed {seed}: recorded in {path}\n{path.read_text(encoding='utf-8')}")
            failures += len(tally.differing)
    _say(f"{failures} differences" + (f"; made small in {DATA}" if failures else ""))
    return 1 if failures else 0


def _run(kind: Kind, release: Release, upstream: Upstream, seeds: Iterator[str], until: float) -> Tally:
    tally = Tally()
    for seed in seeds:
        if monotonic() > until:
            break
        case = kind.draw(seed)
        try:
            tally.add(seed, case, compare(kind, case, release, upstream))
        except Exception:
            _say(f"failed at seed {seed}")
            raise
    return tally


def _seeds(cases: int, fresh: str) -> Iterator[str]:
    """A tenth are the same in every run."""
    yield from (f"fixed-{index}" for index in range(cases // 10))
    yield from (f"{fresh}-{index}" for index in range(cases - cases // 10))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="per kind and release")
    parser.add_argument("--seconds", type=float, default=600, help="for everything but the build")
    parser.add_argument("--seed", default="", help="of an earlier run, to draw the same cases again")
    parser.add_argument("--kinds", nargs="+", default=tuple(KINDS), choices=tuple(KINDS))
    parser.add_argument("--releases", nargs="+", default=tuple(RELEASES), choices=tuple(RELEASES))
    asked = parser.parse_args()
    asked.seed = asked.seed or secrets.token_hex(4)
    asked.kinds = [KINDS[name] for name in asked.kinds]
    return asked


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

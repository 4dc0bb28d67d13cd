"""Hypothesis in place of seeds: it draws cases with an aim, and makes a difference small by itself.

python -m tests.oracle.explore [--cases 500] [--seed TEXT] [--kinds placement] [--releases 1.36]

The generators are those of the seeded cases, fed by Hypothesis instead of a random number generator.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Mapping
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure

from tests.oracle.cases.allocation_cases import allocation_drawn, list_drawn, pool_drawn
from tests.oracle.cases.claim_cases import claim_drawn
from tests.oracle.cases.cost_cases import cost_drawn
from tests.oracle.cases.placement_cases import placement_drawn
from tests.oracle.cases.selector_cases import selector_drawn
from tests.oracle.cases.text_cases import text_drawn
from tests.oracle.comparing.comparison import Kind, compare
from tests.oracle.kinds import KINDS
from tests.oracle.recorded import record
from tests.oracle.upstream import RELEASES, Json, Release, Upstream

DRAWN: Mapping[str, Callable[[Random], Json]] = {
    "allocation": allocation_drawn,
    "pool": pool_drawn,
    "list": list_drawn,
    "claim": claim_drawn,
    "placement": placement_drawn,
    "selector": selector_drawn,
    "text": text_drawn,
    "cost": cost_drawn,
}


class DifferenceError(AssertionError):
    """What Hypothesis looks for: a case on which the two sides differ."""

    def __init__(self, case: Json, difference: str) -> None:
        super().__init__(difference)
        self.case = case


def cases(kind: str) -> st.SearchStrategy[Json]:
    """Questions of a kind."""
    return st.randoms(use_true_random=False).map(DRAWN[kind])


def smallest_difference(
    kind: Kind, release: Release, upstream: Upstream, *, most: int, start: str = ""
) -> DifferenceError | None:
    """The smallest difference that Hypothesis comes to within `most` cases; always the same ones from one `start`."""

    @seed(start or secrets.token_hex(4))
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(kind.name))
    def holds(case: Json) -> None:
        found = compare(kind, case, release, upstream)
        if found.difference is not None:
            raise DifferenceError(case, str(found.difference))

    try:
        holds()
    except DifferenceError as found:
        return found
    except FlakyFailure as several:  # upstream's own order of maps came out otherwise the second time
        return next((one for one in several.exceptions if isinstance(one, DifferenceError)), None)
    return None


def main() -> int:
    """The exit status: 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="per kind and release")
    parser.add_argument("--seed", default="", help="of an earlier run, to draw the same cases again")
    parser.add_argument("--kinds", nargs="+", default=tuple(DRAWN), choices=tuple(DRAWN))
    parser.add_argument("--releases", nargs="+", default=tuple(RELEASES), choices=tuple(RELEASES))
    asked = parser.parse_args()
    failures = 0
    for kind in (KINDS[name] for name in asked.kinds):
        for release in (RELEASES[name] for name in kind.versions if name in asked.releases):
            with kind.program(release) as upstream:
                found = smallest_difference(kind, release, upstream, most=asked.cases, start=asked.seed)
                if found is None:
                    sys.stdout.write(f"{kind.name} {release.name}: no difference in {asked.cases} cases\n")
                    continue
                failures += 1
                path = record(kind, release, found.case, compare(kind, found.case, release, upstream).expected)
                sys.stdout.write(f"{kind.name} {release.name}: {found}; recorded in {path}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

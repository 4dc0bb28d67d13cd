"""`make bench`: the simulator beside Kubernetes' own code, each side timing itself, against the targets.

python -m benchmarks.upstream [--release 1.36] [--only selectors allocation hostile]

Needs Go once, to build the process that is compared with (tests/oracle/go).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from benchmarks import allocations, selectors
from benchmarks.hostile import TARGET, stopped
from benchmarks.timing import Row, median_ratio
from tests.oracle.upstream import RELEASES, Release, Upstream

_COMPILE_TARGET = 1500.0  # microseconds
_SLOWEST = 1 / 3  # of upstream's speed, for an allocation
_PARTS = ("selectors", "allocation", "hostile")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--release", default="1.36", choices=tuple(RELEASES))
    parser.add_argument("--only", nargs="+", default=_PARTS, choices=_PARTS)
    options = parser.parse_args()
    release = RELEASES[options.release]
    print(f"beside k8s.io/dynamic-resource-allocation {release.name}; ratios above 1 are faster than upstream")
    with Upstream(release.program) as upstream:
        if "selectors" in options.only:
            _selectors(upstream, release)
        if "allocation" in options.only:
            _allocation(upstream, release)
    if "hostile" in options.only:
        print(f"\nhostile expressions, refused or stopped within {TARGET:.0f} ms")
        for found in stopped():
            print(found, flush=True)


def _selectors(upstream: Upstream, release: Release) -> None:
    found = list(selectors.compared(upstream, release))
    warm, again, compiling = ([getattr(one, part) for one in found] for part in ("warm", "again", "compiling"))
    _table(f"evaluation, target: median at least 1; median {median_ratio(warm):.2f}", warm)
    _table(f"the same question again; median {median_ratio(again):.2f}", again)
    median = statistics.median(row.ours for row in compiling)
    _table(f"compilation, target: median at most {_COMPILE_TARGET:.0f} µs; median {median:.0f} µs", compiling)


def _allocation(upstream: Upstream, release: Release) -> None:
    found = list(allocations.compared(upstream, release))
    first, again = [one.first for one in found], [one.again for one in found]
    slowest = min(row.ratio for row in first)
    _table(
        f"allocation, target: at least {_SLOWEST:.2f}; slowest {slowest:.2f}, median {median_ratio(first):.2f}", first
    )
    _table(f"the same question again, target: at least 1; slowest {min(row.ratio for row in again):.2f}", again)
    _table(
        f"searches that explode upstream, target: at most {allocations.TARGET:.0f} µs",
        list(allocations.adversarial(release)),
    )


def _table(title: str, rows: Sequence[Row]) -> None:
    print(f"\n{title}")
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""`make oracle`: random cases to the simulator and to Kubernetes' own code; counts, times and every difference.

A tenth of the seeds are the same in every run, the others fresh, until `--cases` per kind and release are done or the
time is up. The run fails on a difference, and on less than it owes: too few cases compared, too many that upstream did
not answer, to which its own answers vary, or that the simulator did not decide. A difference is made small and written
to tests/data/oracle, from where `make test` holds it against the simulator.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from time import monotonic

from tests.oracle.comparing.alone import Alone
from tests.oracle.comparing.comparison import Kind, compare, still_differs
from tests.oracle.comparing.shrinking import smallest
from tests.oracle.kinds import KINDS
from tests.oracle.recorded import record
from tests.oracle.tally import failings
from tests.oracle.upstream import RELEASES, Given, Json, Release, Upstream
from tests.oracle.workers import counted


def main() -> int:
    """The exit status: 1 if anything differs, or if less was compared than the run owes."""
    asked = _arguments()
    _say(f"fresh seed {asked.seed}; again with: make oracle N={asked.cases} SEED={asked.seed}")
    jobs = [(KINDS[name], minor) for name in asked.kinds for minor in KINDS[name].versions if minor in asked.releases]
    failed: list[str] = []
    for kind, minor in jobs:
        with kind.program(RELEASES[minor]):
            pass  # built, if it was not: minutes that no kind has to share
    deadline = monotonic() + asked.seconds
    with Alone() as alone:
        for done, (kind, minor) in enumerate(jobs):
            wanted = kind.wanted(asked.cases)
            until = monotonic() + (deadline - monotonic()) / (len(jobs) - done)
            seeds = _seeds(wanted, asked.seed)
            started = monotonic()
            tally = counted(kind, minor, seeds, until=until, workers=asked.workers)
            _say(f"{kind.name} {minor}: {tally}; {tally.drawn / max(monotonic() - started, 1e-9):.0f} cases a second")
            found = failings(kind, tally, wanted)
            failed += [f"{kind.name} {minor}: {text}" for text in found]
            with kind.program(RELEASES[minor]) as upstream:
                for seed, _ in tally.differing[: asked.small]:
                    _make_small(kind, RELEASES[minor], upstream, alone, seed)
    for text in failed:
        _say(f"FAILED {text}")
    _say("nothing failed" if jobs and not failed else f"{len(failed) or 'nothing asked, '} failed")
    return 0 if jobs and not failed else 1


def _make_small(kind: Kind, release: Release, upstream: Upstream, alone: Alone, seed: str) -> None:
    def simulated(case: Json, release: Release) -> Given:
        return alone.simulated(kind, case, release)

    case = kind.draw(seed)
    if compare(kind, case, release, upstream, simulated=simulated).difference is None:
        _say(f"  seed {seed}: differs only after the cases before it, which left something behind")
        return
    small = smallest(case, still_differs(kind, case, release, upstream))
    if compare(kind, small, release, upstream, simulated=simulated).difference is None:  # slower, and sure
        small = smallest(case, still_differs(kind, case, release, upstream, simulated=simulated))
    path = record(kind, release, small, compare(kind, small, release, upstream).expected)
    _say(f"  seed {seed}: recorded in {path}\n{path.read_text(encoding='utf-8')}")


def _seeds(cases: int, fresh: str) -> list[str]:
    """A tenth are the same in every run."""
    fixed = [f"fixed-{index}" for index in range(cases // 10)]
    return [*fixed, *(f"{fresh}-{index}" for index in range(cases - len(fixed)))]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="per kind and release")
    parser.add_argument("--seconds", type=float, default=1200, help="for everything but the build")
    parser.add_argument("--seed", default="", help="of an earlier run, to draw the same cases again")
    parser.add_argument("--kinds", nargs="+", default=tuple(KINDS), choices=tuple(KINDS))
    parser.add_argument("--releases", nargs="+", default=tuple(RELEASES), choices=tuple(RELEASES))
    parser.add_argument("--small", type=int, default=3, help="differences to make small, per kind and release")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    asked = parser.parse_args()
    asked.seed = asked.seed or secrets.token_hex(4)
    return asked


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""`make bench-peers`: Foreslice and Karpenter on the same documents, one after the other on the same machine.

python -m benchmarks.peers.run [--only mixed:1000 distinct:400 …]

Both time the planning alone, in wall time, which is all that Karpenter's program prints: compare within one run.
Foreslice plans in this process, after another document has loaded parser, numpy and HiGHS. Karpenter stops after a
minute, as in a cluster. Needs Go; the first build takes minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.documents import KINDS, Document, warming
from benchmarks.workload import line, measured
from tests.go_binary import GoProgram

KARPENTER: Final = GoProgram(
    name="karpenter",
    folder=Path(__file__).parent,
    requires="sigs.k8s.io/karpenter",
    takes="some 6 minutes on two cores",
    toolchain="go1.26.9",  # what the module of Karpenter asks for
)
WORKLOADS: Final = ("mixed:1000", "distinct:400", "frag:9", "frag:100", "blowup:16")


@dataclass(frozen=True, slots=True)
class Compared:
    """One document and what both make of it: the lines of benchmarks.workload."""

    name: str
    ours: dict[str, Any]
    theirs: dict[str, Any]

    def __str__(self) -> str:
        sides = " | ".join(map(_cells, (self.ours, self.theirs)))
        return f"| {self.name} | {sides} | {self.theirs['seconds'] / max(self.ours['seconds'], 1e-6):.1f} |"


def compared(name: str) -> Compared:
    """The workload `kind:size` on both."""
    kind, _, size = name.partition(":")
    document = KINDS[kind](int(size))
    return Compared(name, line(measured(document)), karpenter(document))


def karpenter(document: Document) -> dict[str, Any]:
    """What Karpenter makes of a document: seconds, nodes, scheduled, unscheduled, usd_per_hour, and an error if any."""
    program = [str(KARPENTER.binary())]
    found = subprocess.run(program, input=json.dumps(document), capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def _cells(one: dict[str, Any]) -> str:
    seconds = f"{one['seconds']:.2f}{' (stopped)' if one.get('error') else ''}"
    pods = f"{one['scheduled']} of {one['scheduled'] + one['unscheduled']}"
    return f"{seconds} | {one['nodes']} | {pods} | {one['usd_per_hour']:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", default=WORKLOADS, metavar="KIND:SIZE", help="the workloads")
    options = parser.parse_args(arguments)
    KARPENTER.binary()
    gc.disable()
    measured(warming())
    columns = ("seconds", "nodes", "pods", "$/h")
    print(f"wall seconds; theirs is Karpenter {KARPENTER.version}")
    header = [f"{side}: {column}" for side in ("ours", "theirs") for column in columns]
    print(f"| workload | {' | '.join(header)} | times faster |")
    print("|---" * (len(header) + 2) + "|")
    for name in options.only:
        print(compared(name), flush=True)


if __name__ == "__main__":
    main()

"""`make bench`: the commands a user waits for, as whole processes, against their targets.

python -m benchmarks.run [--rounds 5] [--only WORD]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.processes import ROOT, Measurement, measure

EXAMPLES = ROOT / "docs" / "examples"


def cases() -> list[tuple[str, list[str], float]]:
    """(name, arguments, target in seconds) of everything that is measured."""
    plans = [
        (f"plan {path.stem}", ["plan", "-f", str(path.relative_to(ROOT))], 0.5)
        for path in sorted(EXAMPLES.glob("*.yaml"))
    ]
    return [
        ("--help", ["--help"], 0.35),
        ("catalog list", ["catalog", "list"], 1.5),
        ("slices p5.48xlarge", ["slices", "p5.48xlarge"], 1.5),
        *plans,
        ("demo", ["demo"], 15.0),
    ]


def line(result: Measurement) -> str:
    """One aligned line: median, slowest, target, CPU seconds, memory, exit code."""
    mark = "" if result.median <= result.target else "  above target"
    return (
        f"{result.name:<28} {result.median:6.2f} s  (slowest {max(result.seconds):.2f}, target {result.target:.2f})"
        f"  CPU {result.cpu:.2f} s  {result.peak_mib:5.0f} MiB  exit {result.exit_code}{mark}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5, help="counted runs of each command, after one warm-up")
    parser.add_argument("--only", default="", help="only the cases whose name contains this")
    options = parser.parse_args()
    print(f"{len(list(Path(EXAMPLES).glob('*.yaml')))} examples, median of {options.rounds} runs after one warm-up")
    for name, arguments, target in cases():
        if options.only in name:
            print(line(measure(name, arguments, target=target, rounds=options.rounds)), flush=True)


if __name__ == "__main__":
    main()

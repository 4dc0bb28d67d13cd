"""What the random cases find: defects put into a copy of the simulator, and the case that shows each of them first.

python -m tests.oracle.mutants [--cases 3000] [NAME …]

Differences that the unchanged simulator has are left out. Prints a table for docs/fidelity.md; fails if a defect is not
found, or if its place is not in the code any more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.comparing.comparison import compare
from tests.oracle.kinds import KINDS
from tests.oracle.upstream import RELEASES

_ROOT = Path(__file__).parents[2]
_COPIED = ("autoscaler", "instance_catalog", "providers", "tests")


@dataclass(frozen=True)
class Mutant:
    """A defect: in `file`, `text` becomes `instead`. `kind` and `minor` say whose cases are to find it."""

    name: str
    file: str
    text: str
    instead: str
    kind: str = "allocation"
    minor: str = "1.36"

    def plant(self, root: Path) -> None:
        """Put the defect into a copy of the code. Raises ValueError unless its place is there once."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.text) != 1:
            raise ValueError(f"{self.name}: {self.file} has the text {text.count(self.text)} times: {self.text}")
        path.write_text(text.replace(self.text, self.instead), encoding="utf-8")


_DRA, _SCHEDULING, _CEL = "autoscaler/dra", "autoscaler/scheduling", "autoscaler/cel"
MUTANTS: Sequence[Mutant] = (
    Mutant("NoExecute does not block", f"{_DRA}/inventory/taints.py", '("NoSchedule", "NoExecute")', '("NoSchedule",)'),
    Mutant(
        "one tolerated taint is enough",
        f"{_DRA}/inventory/taints.py",
        "return all(any(",
        "return not taints or any(any(",
    ),
    Mutant(
        "a taint rule is inverted",
        f"{_DRA}/inventory/taints.py",
        "rule.device in (None, device.name)]",
        "rule.device not in (None, device.name)]",
        "claim",
    ),
    Mutant(
        "a taint rule ignores its pool",
        f"{_DRA}/inventory/taints.py",
        " and rule.pool in (None, slice_.pool.name)",
        "",
        "claim",
    ),
    Mutant(
        "taint rules count without their gate",
        f"{_DRA}/inventory/taints.py",
        "        return ()\n    everything",
        "        pass\n    everything",
        "claim",
    ),
    Mutant(
        "a counter is off by one", f"{_DRA}/inventory/counters.py", "] < consumed[counter]:", "] <= consumed[counter]:"
    ),
    Mutant(
        "held counters are free",
        f"{_DRA}/inventory/counters.py",
        "available[counter] -= amount",
        "available[counter] -= 0",
    ),
    Mutant(
        "matchAttribute is ignored",
        f"{_DRA}/allocation/constraints.py",
        "return (count + 1, first) if same(value, first) or (unknown_is_yes and undecided(value, first)) else None",
        "return (count + 1, first)",
    ),
    Mutant(
        "1 is true in a constraint",
        f"{_DRA}/allocation/constraints.py",
        "type(left) is type(right) and isinst",
        "isinst",
    ),
    Mutant(
        "distinctAttribute is ignored",
        f"{_DRA}/allocation/constraints.py",
        "if count and any(_clash(value, other, unknown_is_yes=unknown_is_yes) for other in remembered.values()):",
        "if False:",
    ),
    Mutant(
        "lists of 1 and true meet",
        f"{_DRA}/allocation/constraints.py",
        "(value.kind, item)",
        '("", item)',
        "list",
        "1.37",
    ),
    Mutant(
        "distinct lists may meet",
        f"{_DRA}/allocation/constraints.py",
        "return None if taken or not values else",
        "return None if not values else",
        "list",
        "1.37",
    ),
    Mutant(
        "a share is ignored",
        f"{_DRA}/allocation/capacity.py",
        "amount = in_use[name] + amount",
        "amount = amount + 0 * 1",
    ),
    Mutant(
        "valid values are ignored",
        f"{_DRA}/allocation/capacity.py",
        "return bool(policy.valid_values) and",
        "return False and",
    ),
    Mutant("a full device has room", f"{_DRA}/allocation/capacity.py", "if amount > capacity.value:", "if False:"),
    Mutant(
        "a selector's error is a no",
        f"{_DRA}/inventory/selectable.py",
        "                case Answer.ERROR:\n",
        "                case Answer.ERROR if not found.message:\n",
    ),
    Mutant("an incomplete pool allocates", f"{_DRA}/inventory/pools.py", "if len(current) != wanted:", "if False:"),
    Mutant(
        "an old generation counts",
        f"{_DRA}/inventory/pools.py",
        "if group and slice_.pool.generation < group[0]",
        "if False and group[0]",
    ),
    Mutant(
        "administrative access takes a device",
        f"{_DRA}/inventory/allocated.py",
        "if not result.admin_access:",
        "if True:",
    ),
    Mutant(
        "a claim has room for 257",
        f"{_DRA}/claims/pod_claims.py",
        "MAX_CONSUMERS = 256",
        "MAX_CONSUMERS = 257",
        "claim",
    ),
    Mutant(
        "the oldest class serves",
        f"{_DRA}/claims/extended_resources.py",
        "(-device_class.created,",
        "(device_class.created,",
        "claim",
    ),
    Mutant(
        "init containers reuse nothing",
        f"{_DRA}/claims/extended_resources.py",
        "for j, request in lasting.items() if j >= i)",
        "for j, request in lasting.items() if j < 0)",
        "claim",
    ),
    Mutant(
        "a pool of 1.34 is always complete",
        f"{_DRA}/inventory/pools.py",
        "    if len(group) == wanted:",
        "    if True:",
        "pool",
        "1.34",
    ),
    Mutant(
        "the skew is off by one",
        f"{_SCHEDULING}/pod_filters.py",
        "if skew > constraint.max_skew:",
        "if skew >= constraint.max_skew:",
        "placement",
    ),
    Mutant(
        "anti-affinity of others is ignored",
        f"{_SCHEDULING}/pod_filters.py",
        "if domain is not None and term_matches(term, pod, world):",
        "if False and term_matches(term, pod, world):",
        "placement",
    ),
    Mutant(
        "a node is full too early",
        f"{_SCHEDULING}/node_filters.py",
        "amount > there - state.used.get(resource, 0):",
        "amount >= there - state.used.get(resource, 0):",
        "placement",
    ),
    Mutant(
        "every address is another",
        f"{_SCHEDULING}/node_filters.py",
        " or one.host_ip in _ANY_ADDRESS or other.host_ip in _ANY_ADDRESS",
        "",
        "placement",
    ),
    Mutant(
        "NoExecute taints of nodes let in",
        f"{_SCHEDULING}/node_filters.py",
        'taint.effect in ("NoSchedule", "NoExecute")',
        'taint.effect in ("NoSchedule",)',
        "placement",
    ),
    Mutant(
        "no number is a whole one",
        f"{_CEL}/library/comparison.py",
        "return b in _NUMBERS and _compare_numbers(left, right) == 0",
        "return a is b and left == right",
        "selector",
    ),
    Mutant(
        "true is a number",
        f"{_CEL}/library/comparison.py",
        "_NUMBERS = frozenset({int, UInt, float})",
        "_NUMBERS = frozenset({int, UInt, float, bool})",
        "selector",
    ),
    Mutant(
        "every device is shared",
        f"{_CEL}/interpreter/device.py",
        '"allowMultipleAllocations": multiple,',
        '"allowMultipleAllocations": True,',
        "selector",
    ),
    Mutant(
        "names without a domain belong to nobody",
        f"{_CEL}/interpreter/device.py",
        "return (domain, identifier) if slash else (driver, name)",
        'return (domain, identifier) if slash else ("", name)',
        "selector",
    ),
    Mutant(
        "a sum may overflow",
        f"{_CEL}/library/arithmetic.py",
        "return value if INT_MIN <= value <= INT_MAX else _INT_OVERFLOW",
        "return value",
        "selector",
    ),
)


def main() -> int:
    """The exit status: 1 if a defect is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the defects, all if none is named")
    parser.add_argument("--cases", type=int, default=3000, help="to look for each of them")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        return _look(*json.load(sys.stdin))
    chosen = [mutant for mutant in MUTANTS if not asked.names or mutant.name in asked.names]
    missed = 0
    _say("| defect | cases of | found within |\n|---|---|---|")
    for mutant in chosen:
        found = _first(mutant, asked.cases)
        missed += found is None
        number = f"none of {asked.cases}" if found is None else str(found + 1)
        _say(f"| {mutant.name} | {mutant.kind} {mutant.minor} | {number} |")
    _say(f"\n{len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


def _first(mutant: Mutant, cases: int) -> int | None:
    """The number of the first case that shows the defect, and not the unchanged simulator as well."""
    kind, release = KINDS[mutant.kind], RELEASES[mutant.minor]
    with TemporaryDirectory() as folder, kind.program(release) as upstream:
        root = Path(folder)
        for name in _COPIED:
            shutil.copytree(_ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.plant(root)
        start = 0
        while start < cases:
            number, text = _searched(root, mutant, start, cases)
            if number < 0:
                return None
            if str(compare(kind, kind.draw(f"fixed-{number}"), release, upstream).difference) != text:
                return number
            start = number + 1
    return None


def _searched(root: Path, mutant: Mutant, start: int, cases: int) -> tuple[int, str]:
    """The number of the first differing case of the code below `root`, from `start` on, or -1."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.oracle.mutants", "--child"],
        input=json.dumps([mutant.kind, mutant.minor, start, cases]),
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
    )
    number, text = json.loads(child.stdout)
    return number, text


def _look(name: str, minor: str, start: int, cases: int) -> int:
    kind, release, found = KINDS[name], RELEASES[minor], (-1, "")
    with kind.program(release) as upstream:
        for number in range(start, cases):
            compared = compare(kind, kind.draw(f"fixed-{number}"), release, upstream)
            if compared.difference is not None:
                found = number, str(compared.difference)
                break
    json.dump(found, sys.stdout)
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

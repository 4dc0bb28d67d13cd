"""Cases that once differed, as YAML with upstream's answer: small, and replayed without Go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.oracle.cases.selector_cases import text
from tests.oracle.comparing.chance import asks_a_contested_class, beyond_libraries
from tests.oracle.comparing.comparison import Kind, is_undecided
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.kinds import KINDS
from tests.oracle.upstream import RELEASES, Json, Release

DATA = Path(__file__).parents[1] / "data" / "oracle"


@dataclass(frozen=True)
class Recorded:
    """A case, upstream's answer to it, and how to ask the simulator."""

    name: str
    kind: Kind
    release: Release
    case: Json
    expected: Json

    def difference(self) -> Difference | None:
        """What the simulator gets wrong, or None."""
        found = self.kind.answered(self.case, self.release).answer
        if not is_undecided(found):
            return self.kind.difference(found, self.expected)
        if "tree" in self.case and beyond_libraries(self.case):
            return None
        if "pod" in self.case and asks_a_contested_class(self.case):
            return None
        return Difference(Field.OUTCOME, f"unknown instead of {self.expected['outcome']}")


def recorded() -> Iterator[Recorded]:
    """All of them, by name."""
    for path in sorted(DATA.glob("*.yaml")):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield Recorded(path.stem, KINDS[found["kind"]], RELEASES[found["release"]], found["case"], found["expected"])


def record(kind: Kind, release: Release, case: Json, expected: Json) -> Path:
    """Write a case; the name follows from its content, so that the same difference is recorded once."""
    if "tree" in case:
        case = {**case, "tree": [text(case["tree"])]}  # people read expressions, not trees
    minor = next(name for name, known in RELEASES.items() if known is release)
    written = yaml.safe_dump(
        json.loads(json.dumps({"kind": kind.name, "release": minor, "case": case, "expected": expected})),  # no anchors
        sort_keys=False,
        width=120,
        allow_unicode=True,
    )
    DATA.mkdir(parents=True, exist_ok=True)
    path = DATA / f"{kind.name}-{minor}-{hashlib.sha256(written.encode()).hexdigest()[:8]}.yaml"
    path.write_text(written, encoding="utf-8")
    return path

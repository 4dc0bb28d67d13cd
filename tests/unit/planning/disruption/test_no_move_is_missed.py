"""While the answer of a try stands, another try would find no move either: random clusters in the production loop."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
import yaml

from autoscaler.planning.disruption.consolidation import consolidation
from autoscaler.planning.disruption.consolidation.moves import RefusedTry, try_move
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.run import Run
from autoscaler.simulation.study.task import Shape, Study, Task, Variant
from tests.builders import pool_manifest, shipped

CATALOG = shipped("g4dn.xlarge", "g4dn.12xlarge", "g6.xlarge", "g6.4xlarge", "g6.12xlarge")
_EVERY = 5


def _study(draw: Random) -> Study:
    """Tasks of few sizes, so that what ends leaves room that others just fill, or just do not."""
    tasks = [
        Task(
            f"t{number:02}",
            timedelta(minutes=draw.randrange(0, 600)),
            timedelta(minutes=draw.choice((20, 90, 240, 700))),
            Shape(draw.choice((1, 1, 1, 2, 4)), cpu=draw.choice((1000, 3500, 3501, 8000)), memory=2048),
            checkpoint=timedelta(minutes=5),
        )
        for number in range(40)
    ]
    manifest = pool_manifest(nodes=draw.choice((9, 40)), disruption={"after": "0s"})
    return Study("random", tuple(sorted(tasks, key=lambda task: task.arrives)), (yaml.safe_load(yaml.dump(manifest)),))


@pytest.mark.parametrize("seed", range(3))
def test_no_move_is_missed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    found_again, calls = list[object](), 0
    tried = consolidation._tried

    def watched(batch: Any, together: Any, found: Any, context: Any, seen: Any) -> Any:
        nonlocal calls
        calls += 1
        due = {node.name for node in batch}
        for node in found.nodes if calls % _EVERY == 0 else ():
            if node.name in seen.refused and node.name not in due:
                found_again.append(try_move([node], context))
        return tried(batch, together, found, context, seen)

    monkeypatch.setattr(consolidation, "_tried", watched)
    prepared = prepare(_study(Random(seed)), CATALOG, skip=False)
    Run(prepared.study, Variant("cheaper"), prepared.catalog).outcome()
    assert len(found_again) > 20
    assert [answer for answer in found_again if not isinstance(answer, RefusedTry)] == []

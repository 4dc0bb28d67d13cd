"""How long pods are expected to run on, and which moves are worth it because of that."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.pod import Pod
from autoscaler.planning.disruption.running import expected_rest
from tests.builders import NOW
from tests.unit.planning.disruption.moving import drained, launch, moved, node, served, state, step

LEAST = timedelta(hours=2)
DAY = timedelta(days=1)


def aged(hours: float, says: float | None = None, name: str = "web", on: str = "old") -> Pod:
    """A pod that was created so many hours ago and says that it runs for so many."""
    fields: dict[str, Any] = {} if says is None else {"expected_duration": timedelta(hours=says)}
    return served(name, on, created=NOW.timestamp() - hours * 3600, **fields)


@pytest.mark.parametrize(
    ("pods", "hours"),
    [
        pytest.param([aged(0.5)], 2, id="young: at least that"),
        pytest.param([aged(5)], 5, id="as long as it has run"),
        pytest.param([aged(30)], 24, id="it waited before: the node is a day old"),
        pytest.param([served()], 24, id="its age is unknown: that of the node"),
        pytest.param([aged(5, says=5.5)], 0.5, id="it says that it ends before"),
        pytest.param([aged(5, says=105)], 100, id="it says that it runs for longer"),
        pytest.param([aged(5, says=4)], 5, id="it outlives what it said"),
        pytest.param([aged(5, says=5.5), aged(3, name="b")], 3, id="the last of two ends"),
        pytest.param([aged(5, says=15), aged(3, name="b")], 10, id="the last of two says so"),
        pytest.param([], 2, id="no pods"),
    ],
)
def test_the_rest_of_a_nodes_pods(pods: list[Pod], hours: float) -> None:
    assert expected_rest(node(phase_since=NOW - DAY), pods, LEAST, NOW) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("pod", "goes"),
    [
        pytest.param(aged(1), False, id="within two hours it would not pay"),
        pytest.param(aged(3), True, id="within three hours it pays"),
        pytest.param(aged(1, says=5), True, id="within the four hours that are left"),
        pytest.param(aged(3, says=4), False, id="not within the hour that is left"),
    ],
)
def test_a_move_pays_for_itself_while_the_pods_run(pod: Pod, goes: bool) -> None:
    """At 15 percent of 40 $ an hour the least saving is 6; moving costs 12.33 $."""
    found = state([pod], [node(phase_since=NOW - DAY)])
    assert len(step(found, moved(launch(price=Decimal("33.99")))).plan.launches) == goes


def test_of_several_nodes_the_first_that_would_end_decides() -> None:
    nodes = [node(name, phase_since=NOW - DAY) for name in ("a", "b")]
    tried = moved(launch(price=Decimal("67.90"), pods=("default/p", "default/q")), pods=("default/p", "default/q"))

    def launched(young: float) -> int:
        found = state([aged(20, name="p", on="a"), aged(young, name="q", on="b")], nodes)
        return len(
            step(
                found, lambda s: tried if sum(p.node_name is None for p in s.pods) == 2 else moved(pods=())
            ).plan.launches
        )

    assert (launched(20), launched(1)) == (1, 0)


@pytest.mark.parametrize(
    ("there", "replaces", "goes"),
    [
        pytest.param(aged(0.1, name="there", on="other"), (), False, id="they may end within minutes as well"),
        pytest.param(aged(0.2, name="there", on="other"), (), True, id="they have run longer than the move costs"),
        pytest.param(aged(9, says=9.1, name="there", on="other"), (), False, id="they say that they end"),
        pytest.param(aged(0.1, name="there", on="other"), ("old",), True, id="the node was launched for these pods"),
    ],
)
def test_pods_move_to_a_node_that_others_keep(there: Pod, replaces: tuple[str, ...], goes: bool) -> None:
    """Otherwise they soon have it alone, and move back if that costs more. Moving costs 10 minutes of 40 $ an hour."""
    other = node("other", phase_since=NOW - DAY, replaces=replaces)
    found = state([aged(20), there], [node(phase_since=NOW - DAY), other])
    assert drained(step(found, moved())) == (["old"] if goes else [])

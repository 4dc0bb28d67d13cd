"""Plans say how long such machines took to boot in this cluster, and people read it."""

from __future__ import annotations

from datetime import timedelta

from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import BootTimes, OfferingRef, Phase, PhaseChange
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.explanation import explanation_lines, explanation_of
from autoscaler.report.plan_document import document_of
from autoscaler.report.tables.plan_summary import summary_of
from autoscaler.report.words import ready_text
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from tests.builders import NOW, TEAM, claim, ours, plan, pod, snapshot

MINUTE = timedelta(minutes=1)


def after(*minutes: float, drivers: tuple[str, ...] = ("nvidia",)) -> tuple[Snapshot, Plan]:
    """A plan for one GPU, with nodes of such machines that are full or gone by now."""
    offering = OfferingRef("s1", "any", CapacityType.ON_DEMAND)
    booted = [
        replace(
            ours(f"n{number}", offering=offering, drivers=drivers, phase=Phase.GONE),
            history=(PhaseChange(Phase.LAUNCHED, NOW, "x"), PhaseChange(Phase.READY, NOW + each * MINUTE, "y")),
        )
        for number, each in enumerate(minutes)
    ]
    team = replace(TEAM, drivers=("nvidia",))
    state = snapshot([pod("a", "c")], [claim("c")], pools=(team,), provisioned=tuple(booted))
    return state, plan(state)


def test_a_new_node_is_foretold_by_others_of_its_kind() -> None:
    _, result = after(3, 4, 9)
    assert [node.ready_in for node in result.launches] == [BootTimes(3, 4 * MINUTE)]


def test_without_them_nothing_is_said() -> None:
    for _, result in (after(), after(3, drivers=("dranet",))):
        assert [node.ready_in for node in result.launches] == [None]
        assert not any("ready in" in line.text for line in summary_of(result))
        assert "readyIn" not in document_of(result)["launches"][0]


def test_people_and_programs_read_it() -> None:
    state, result = after(3, 3.5, 9)
    text = "ready in about 4 min (3 boots seen)"
    assert f"s1 with nvidia: {text}" in [line.text for line in summary_of(result)]
    assert text in map(str.strip, explanation_lines(explanation_of(state.pods[0], state, result, (), ())))
    assert document_of(result)["launches"][0]["readyIn"] == {"boots": 3, "medianSeconds": 210}


def test_nine_in_ten() -> None:
    _, result = after(*range(1, 11))
    (node,) = result.launches
    assert ready_text(node.ready_in) == "ready in about 5 min, 9 in 10 within 9 min (10 boots seen)"
    assert document_of(result)["launches"][0]["readyIn"] == {"boots": 10, "medianSeconds": 300, "p90Seconds": 540}

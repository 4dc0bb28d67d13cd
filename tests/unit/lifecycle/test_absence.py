"""What is not listed is not gone: what is concluded from machines that are missing from their provider's list."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.lifecycle.absence import absence
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from instance_catalog.dataclass import replace
from tests.builders import NOW, ours

WINDOW = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def node(number: int, phase: Phase = Phase.READY, provider: str = "sim") -> ProvisionedNode:
    machine = {"provider": provider, "provider_id": f"{provider}:///{number}"}
    return ours(f"n{number}", phase=phase, phase_since=NOW - HOUR, **machine)


def concluded(
    nodes: list[ProvisionedNode], missing: int, *, ready: int = 0, phase: Phase | None = None
) -> tuple[int, int]:
    """How many machines are gone and how many wait, when the first `missing` of the nodes' are not listed, and of these
    the first `ready` have a Ready Node."""
    if phase is not None:
        nodes = [replace(found, phase=phase) for found in nodes]
    listed = [found.provider_id for found in nodes[missing:]]
    there = OwnNodes(Node(found.node_name, provider_id=found.provider_id) for found in nodes[:ready])
    found = absence(nodes, there, listed=listed, windows={"sim": WINDOW}, now=NOW)
    return len(found.gone), sum(map(len, found.waiting.values()))


@pytest.mark.parametrize(
    ("machines", "missing", "gone"),
    [(2, 2, 2), (3, 3, 0), (20, 2, 2), (20, 3, 0), (40, 4, 4), (40, 5, 0), (100, 10, 10), (100, 11, 0)],
)
def test_more_than_two_and_a_tenth_of_a_providers_machines_do_not_vanish_at_once(
    machines: int, missing: int, gone: int
) -> None:
    assert concluded([node(number) for number in range(machines)], missing) == (gone, missing - gone)


def test_a_machine_whose_node_is_ready_is_there() -> None:
    assert concluded([node(1)], 1, ready=1) == (0, 1)
    assert concluded([node(1), node(2)], 2, ready=1) == (1, 1)
    assert concluded([node(1), node(2), node(3)], 3, ready=1) == (0, 3), "three are missing, whoever speaks for one"


@pytest.mark.parametrize("phase", [Phase.TERMINATING, Phase.FAILED])
def test_a_machine_that_is_to_end_leaves_the_list_but_not_while_its_node_is_ready(phase: Phase) -> None:
    ended = [node(number) for number in range(50)]
    assert concluded(ended, 50, phase=phase) == (50, 0)
    assert concluded(ended, 50, ready=20, phase=phase) == (30, 0)


def test_other_providers_and_new_machines_are_not_missed() -> None:
    young = replace(node(1), phase_since=NOW - WINDOW / 2)
    found = absence([young, node(2, provider="silent")], OwnNodes(()), listed=(), windows={"sim": WINDOW}, now=NOW)
    assert (found.gone, dict(found.waiting)) == (frozenset(), {})


def test_machines_of_another_provider_do_not_raise_the_bound() -> None:
    others = [node(number, provider="other") for number in range(100, 200)]
    missing = [node(number) for number in range(3)]
    listed = [found.provider_id for found in others]
    windows = {"sim": WINDOW, "other": WINDOW}
    found = absence([*missing, *others], OwnNodes(()), listed=listed, windows=windows, now=NOW)
    assert (found.gone, len(found.waiting["sim"])) == (frozenset(), 3)

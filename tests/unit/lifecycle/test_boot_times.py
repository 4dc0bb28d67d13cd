"""How long machines took to boot, by the histories of the nodes that exist."""

from __future__ import annotations

from datetime import timedelta

from autoscaler.lifecycle.boot_times import boot_time, boot_times
from autoscaler.model.provisioned_node import BootTimes, Phase, PhaseChange, ProvisionedNode
from instance_catalog.dataclass import replace
from tests.builders import NOW, ours

MINUTE = timedelta(minutes=1)
KIND = ("s4", ("nvidia",))


def booted(minutes: float, *, at: timedelta = timedelta(0), name: str = "n") -> ProvisionedNode:
    """A node that was launched at a moment and became Ready so many minutes later."""
    history = (
        PhaseChange(Phase.LAUNCHING, NOW + at - MINUTE, "Recorded"),
        PhaseChange(Phase.LAUNCHED, NOW + at, "Created"),
        PhaseChange(Phase.REGISTERED, NOW + at + minutes * MINUTE / 2, "NodeSeen"),
        PhaseChange(Phase.READY, NOW + at + minutes * MINUTE, "NodeReady"),
    )
    return replace(ours(name, phase=Phase.READY), history=history)


def test_it_counts_from_the_launch_to_the_first_ready() -> None:
    again = PhaseChange(Phase.READY, NOW + 60 * MINUTE, "Undrained")
    node = booted(4)
    assert boot_time(replace(node, history=(*node.history, again))) == (NOW + 4 * MINUTE, 4 * MINUTE)


def test_a_node_that_is_not_ready_or_was_adopted_says_nothing() -> None:
    node = booted(4)
    assert boot_time(replace(node, history=node.history[:3])) is None
    assert boot_time(replace(node, history=node.history[3:])) is None


def test_the_median_is_one_that_was_seen() -> None:
    nodes = [booted(minutes) for minutes in (9, 3, 5, 4)]
    assert boot_times(nodes, {KIND}) == {KIND: BootTimes(4, 4 * MINUTE)}


def test_nine_in_ten_are_known_from_ten_on() -> None:
    nodes = [booted(minutes) for minutes in range(1, 11)]
    assert boot_times(nodes[:9], {KIND})[KIND].slow is None
    assert boot_times(nodes, {KIND}) == {KIND: BootTimes(10, 5 * MINUTE, 9 * MINUTE)}


def test_the_newest_fifty_count() -> None:
    old = [booted(30, at=-timedelta(days=1)) for _ in range(100)]
    new = [booted(4) for _ in range(50)]
    assert boot_times([*new, *old], {KIND}) == {KIND: BootTimes(50, 4 * MINUTE, 4 * MINUTE)}


def test_kinds_that_nobody_asks_for_are_not_counted() -> None:
    assert boot_times([booted(4)], {("s4", ("dranet",))}) == {}
    assert boot_times([booted(4)], set()) == {}

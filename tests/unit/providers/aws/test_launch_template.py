"""Launch templates are tidied: nothing that a launch under way might name goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from instance_catalog.frozen_map import FrozenMap
from providers.aws.launch_template import LaunchTemplates
from tests.aws import CLUSTER, TEMPLATE, Rig, request

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def templates_of(rig: Rig) -> Mapping[str, list[int]]:
    """The numbers of the versions that EC2 has, by template."""
    return {one.name: sorted(one.versions) for one in rig.fake.account.templates.values()}


def filled(rig: Rig, versions: int) -> LaunchTemplates:
    """As an earlier run of the controller left them; the answer is a new run's, three hours old."""
    before = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    for number in range(versions):
        before.version(TEMPLATE, {"UserData": str(number)})
        rig.clock.advance(timedelta(seconds=1))
    rig.clock.advance(DAY)
    made = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    rig.clock.advance(3 * HOUR)
    return made


def test_old_versions_go_and_the_newest_stay() -> None:
    rig = Rig()
    filled(rig, 210).tidy({"gpu"})
    # The first is the default, which EC2 does not delete.
    assert templates_of(rig) == {f"foreslice-{CLUSTER}-gpu": [1, *range(11, 211)]}


def test_what_was_used_lately_stays_however_old_it_is() -> None:
    rig = Rig()
    made = filled(rig, 210)
    used = made.version(TEMPLATE, {"UserData": "4"}).number
    made.tidy({"gpu"})
    assert templates_of(rig) == {f"foreslice-{CLUSTER}-gpu": [1, used, *range(11, 211)]}
    assert made.version(TEMPLATE, {"UserData": "4"}).number == used


def test_what_is_young_stays_however_much_there_is() -> None:
    rig = Rig()
    made = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    rig.clock.advance(3 * HOUR)
    for number in range(210):
        LaunchTemplates(rig.aws, rig.clock, CLUSTER).version(TEMPLATE, {"UserData": str(number)})
        rig.clock.advance(timedelta(seconds=1))
    made.tidy({"gpu"})
    assert len(templates_of(rig)[f"foreslice-{CLUSTER}-gpu"]) == 210


def test_a_version_that_was_deleted_is_made_again() -> None:
    rig = Rig()
    made = filled(rig, 210)
    made.tidy({"gpu"})
    assert made.version(TEMPLATE, {"UserData": "5"}).number == 211


def test_after_a_start_nothing_goes_before_every_launch_was_repeated() -> None:
    rig = Rig()
    filled(rig, 210)
    young = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    rig.clock.advance(HOUR)
    young.tidy(())
    assert len(templates_of(rig)[f"foreslice-{CLUSTER}-gpu"]) == 210


@pytest.mark.parametrize(
    ("wanted", "age", "left"),
    [
        pytest.param({"gpu"}, DAY, {"gpu"}, id="the node template is gone"),
        pytest.param({"gpu", "old"}, DAY, {"gpu", "old"}, id="the node template is there"),
        pytest.param({"gpu"}, 4 * HOUR, {"gpu", "old"}, id="it was made today"),
    ],
)
def test_launch_templates_go_with_their_node_templates(wanted: set[str], age: timedelta, left: set[str]) -> None:
    rig = Rig()
    made = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    made.version(TEMPLATE, {})
    made.version(replace(TEMPLATE, name="old"), {})
    rig.clock.advance(age + HOUR)
    made.tidy(wanted)
    assert set(templates_of(rig)) == {f"foreslice-{CLUSTER}-{name}" for name in left}


def test_templates_of_other_clusters_are_left_alone() -> None:
    rig = Rig()
    LaunchTemplates(rig.aws, rig.clock, "another-cluster").version(TEMPLATE, {})
    made = LaunchTemplates(rig.aws, rig.clock, CLUSTER)
    rig.clock.advance(2 * DAY)
    made.tidy(())
    assert set(templates_of(rig)) == {"foreslice-another-cluster-gpu"}


def test_tidying_that_fails_leaves_everything_else_as_it_is() -> None:
    rig = Rig()
    rig.fake.denied.add("ec2:DescribeLaunchTemplates")
    rig.clock.advance(3 * HOUR)
    (found,) = rig.provider.judged()
    assert found.faults == ()
    rig.write(tags=FrozenMap({"team": "x"}))
    assert len(rig.provider.launch(request()).instances) == 1

"""Launch templates are tidied: nothing that a launch under way might name goes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from providers.aws.node_template.launch_template import LaunchTemplates
from providers.aws.node_template.template import ROOT, Volume
from providers.errors import TemplateError
from tests.aws import CLUSTER, TEMPLATE, Rig, request

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
KEPT = 5


def templates_of(rig: Rig) -> Mapping[str, list[int]]:
    """The numbers of the versions that EC2 has, by template."""
    return {one.name: sorted(one.versions) for one in rig.fake.account.templates.values()}


def templates(rig: Rig) -> LaunchTemplates:
    """What a controller that has just started has."""
    return LaunchTemplates(rig.aws, rig.clock, CLUSTER, kept=KEPT)


def filled(rig: Rig, versions: int, age: timedelta = DAY) -> LaunchTemplates:
    """As an earlier run of the controller left them; the answer is a new run's, three hours old."""
    before = templates(rig)
    for number in range(1, versions + 1):
        before.version(TEMPLATE, {"UserData": str(number)})
    rig.clock.advance(age)
    made = templates(rig)
    rig.clock.advance(3 * HOUR)
    return made


def test_old_versions_go_and_the_newest_stay() -> None:
    rig = Rig()
    filled(rig, 9).tidy({"gpu"})
    # The first is the default, which EC2 does not delete.
    assert templates_of(rig) == {f"foreslice-{CLUSTER}-gpu": [1, 5, 6, 7, 8, 9]}


def test_what_was_used_lately_stays_however_old_it_is() -> None:
    rig = Rig()
    made = filled(rig, 9)
    assert made.version(TEMPLATE, {"UserData": "3"}).number == 3
    made.tidy({"gpu"})
    assert templates_of(rig) == {f"foreslice-{CLUSTER}-gpu": [1, 3, 5, 6, 7, 8, 9]}
    assert made.version(TEMPLATE, {"UserData": "3"}).number == 3


def test_what_is_young_stays_however_much_there_is() -> None:
    rig = Rig()
    filled(rig, 9, age=HOUR).tidy({"gpu"})
    assert len(templates_of(rig)[f"foreslice-{CLUSTER}-gpu"]) == 9


def test_a_version_that_was_deleted_is_made_again() -> None:
    rig = Rig()
    made = filled(rig, 9)
    made.tidy({"gpu"})
    assert made.version(TEMPLATE, {"UserData": "2"}).number == 10


def test_after_a_start_nothing_goes_before_every_launch_was_repeated() -> None:
    rig = Rig()
    filled(rig, 9)
    young = templates(rig)
    rig.clock.advance(HOUR)
    young.tidy(())
    assert len(templates_of(rig)[f"foreslice-{CLUSTER}-gpu"]) == 9


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
    made = templates(rig)
    made.version(TEMPLATE, {})
    made.version(replace(TEMPLATE, name="old"), {})
    rig.clock.advance(age + HOUR)
    made.tidy(wanted)
    assert set(templates_of(rig)) == {f"foreslice-{CLUSTER}-{name}" for name in left}


def test_templates_of_other_clusters_are_left_alone() -> None:
    rig = Rig()
    LaunchTemplates(rig.aws, rig.clock, "another-cluster").version(TEMPLATE, {})
    made = templates(rig)
    rig.clock.advance(2 * DAY)
    made.tidy(())
    assert set(templates_of(rig)) == {"foreslice-another-cluster-gpu"}


def test_tidying_that_fails_leaves_everything_else_as_it_is() -> None:
    rig = Rig()
    rig.fake.denied.add("ec2:DescribeLaunchTemplates")
    rig.clock.advance(3 * HOUR)
    (found,) = rig.provider.template_statuses()
    assert found.faults == ()
    rig.write(tags=FrozenMap({"team": "x"}))
    for batch in ("b1", "b2"):
        assert len(rig.provider.launch(request(batch=batch)).instances) == 1
    assert rig.fake.calls["DescribeLaunchTemplates"] == 1  # no launch waits for it again


def test_launches_tidy_and_looks_change_nothing() -> None:
    rig = Rig()
    rig.provider.launch(request())
    templates(rig).version(replace(TEMPLATE, name="old"), {})
    rig.clock.advance(2 * DAY)
    rig.provider.template_statuses()
    assert len(templates_of(rig)) == 2
    rig.provider.launch(request(batch="b2"))
    assert set(templates_of(rig)) == {f"foreslice-{CLUSTER}-gpu"}


def test_a_long_name_fits_and_stays_its_own() -> None:
    rig = Rig()
    names = {"n" * 200 + end: template for end, template in (("a", TEMPLATE), ("b", TEMPLATE))}
    found = {LaunchTemplates(rig.aws, rig.clock, CLUSTER).name(replace(TEMPLATE, name=name)) for name in names}
    assert len(found) == 2
    assert {len(name) for name in found} == {120}
    rig.write(name="n" * 253)
    assert rig.provider.launch(request()).instances


def test_the_root_volume_has_the_name_that_the_image_gives_it() -> None:
    rig = Rig()
    rig.write(root=Volume(ROOT, gibibytes=200, key="alias/nodes"), volumes=(Volume("/dev/xvdb", gibibytes=1),))
    rig.provider.launch(request())
    (machine,) = rig.fake.account.alive()
    root, other = machine.order.launch["BlockDeviceMappings"]
    assert root["DeviceName"] == "/dev/xvda"
    assert (root["Ebs"]["VolumeSize"], root["Ebs"]["Encrypted"], root["Ebs"]["KmsKeyId"]) == (200, True, "alias/nodes")
    assert other["DeviceName"] == "/dev/xvdb"


def test_a_root_volume_that_is_described_twice_is_refused() -> None:
    rig = Rig()
    rig.write(root=Volume(ROOT, gibibytes=200), volumes=(Volume("/dev/xvda", gibibytes=1),))
    with pytest.raises(TemplateError, match="not clear") as caught:
        rig.provider.launch(request())
    assert "not in both" in caught.value.next_step

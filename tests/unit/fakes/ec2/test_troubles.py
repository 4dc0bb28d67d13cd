"""What an account may do to its users: protected machines, answers that lack members, templates that name what is
gone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from tests.fakes.ec2 import PROMPT, FakeEc2
from tests.unit.fakes.ec2.account import code, image, subnet
from tests.unit.fakes.ec2.test_fleets import P5, fleet


def run(aws: FakeEc2, zone: str) -> str:
    answer = aws.client("ec2").run_instances(
        ImageId=image(aws), InstanceType=P5, SubnetId=subnet(aws, zone), MinCount=1, MaxCount=1
    )
    return str(answer["Instances"][0]["InstanceId"])


def test_a_protected_machine_keeps_those_of_its_zone() -> None:
    aws = FakeEc2(VirtualClock())
    protected, beside, elsewhere = run(aws, "us-east-1a"), run(aws, "us-east-1a"), run(aws, "us-east-1b")
    aws.account.machines[protected].protected = True
    with pytest.raises(ClientError) as error:
        aws.client("ec2").terminate_instances(InstanceIds=[protected, beside, elsewhere])
    assert code(error) == "OperationNotPermitted"
    assert {machine.id for machine in aws.account.alive()} == {protected, beside}


def test_answers_lack_optional_members_and_never_ids() -> None:
    aws = FakeEc2(VirtualClock(), behaviour=replace(PROMPT, leaves_out=1), rates_apply=False)
    rows = [row for _ in range(40) for row in fleet(aws, 1, P5)["Instances"]]
    assert len(rows) == 40
    assert all(row["InstanceIds"] for row in rows)
    assert 0 < sum("InstanceType" not in row for row in rows) < 20
    assert any("Overrides" not in row.get("LaunchTemplateAndOverrides", {}) for row in rows)


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_template_names_is_refused_as_a_whole_or_inside_an_answer(whole: bool) -> None:
    clock = VirtualClock()
    aws = FakeEc2(clock, behaviour=replace(PROMPT, refuses_templates=whole))
    aws.account.break_templates("InvalidAMIID.NotFound", until=clock.now() + timedelta(minutes=5))
    if whole:
        with pytest.raises(ClientError) as error:
            fleet(aws, 1, P5)
        assert code(error) == "InvalidAMIID.NotFound"
    else:
        answer = fleet(aws, 1, P5)
        assert [row["ErrorCode"] for row in answer["Errors"]] == ["InvalidAMIID.NotFound"]
    assert len(aws.failed["CreateFleet"]) == 1
    clock.advance(timedelta(minutes=5))
    assert len(fleet(aws, 1, P5)["Instances"]) == 1

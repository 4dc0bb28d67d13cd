"""What the AWS adapter does, step by step, on an account in moto. Each step asserts what AWS promises."""

from __future__ import annotations

import base64
import email
import json
import tomllib
from datetime import timedelta
from typing import Any

from autoscaler.clock import SystemClock
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from providers.aws.interruptions import Interruptions, notices_of
from providers.aws.node_template.template import Interfaces, UserData, Volume
from providers.aws.sales.listing import PRICES, SPOT, TYPES, ZONES, AwsListing
from providers.aws.sales.prices import Prices
from providers.contract import TAG_CLUSTER, InstanceState, LaunchAnswer, OfferingKey
from providers.errors import PermissionDeniedError
from providers.listing import Rows
from providers.market import CapacityQuery
from tests.aws import CLUSTER, catalog
from tests.moto.account import GPU, QUEUE, ZONE, MotoAccount, request
from tests.moto.account import SPOT as SPOT_GPU


def _ids(answer: LaunchAnswer) -> list[str]:
    return [machine.id for machine in answer.instances]


def _described(account: MotoAccount) -> dict[str, Any]:
    return {one.id: one for one in account.provider.describe({TAG_CLUSTER: CLUSTER}).instances}


def _raw(account: MotoAccount, machine: str) -> dict[str, Any]:
    found = account.admin("ec2").describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
    return dict(found)


def fleet_on_demand(account: MotoAccount) -> None:
    answer = account.provider.launch(request("a", "b"))
    assert [machine.node for machine in answer.instances] == ["a", "b"]
    assert {machine.offering for machine in answer.instances} == {GPU}
    found = _described(account)
    assert sorted(found) == sorted(_ids(answer))
    assert {one.offering for one in found.values()} == {GPU}
    assert {one.tags[labels.LAUNCH_TOKEN] for one in found.values()} == {request("a").token}


def fleet_of_several_types(account: MotoAccount) -> None:
    other = replace(GPU, instance_type="g5.2xlarge")
    answer = account.provider.launch(replace(request("a"), offerings=(GPU, other)))
    assert answer.instances[0].offering in (GPU, other)
    assert _described(account)[_ids(answer)[0]].offering == answer.instances[0].offering


def two_subnets_in_a_zone(account: MotoAccount) -> None:
    block = {"VpcId": account.vpc, "CidrBlock": "172.31.128.0/20", "AvailabilityZone": ZONE}
    made = account.admin("ec2").create_subnet(**block)["Subnet"]["SubnetId"]
    account.admin("ec2").create_tags(Resources=[made], Tags=[{"Key": "cluster", "Value": "test"}])
    account.restart()
    assert len(account.provider.launch(request("a", "b")).instances) == 2


def fleet_spot(account: MotoAccount) -> None:
    answer = account.provider.launch(request("a", offering=SPOT_GPU))
    assert [one.offering for one in answer.instances] == [SPOT_GPU]
    assert _raw(account, _ids(answer)[0])["InstanceLifecycle"] == "spot"
    assert _described(account)[_ids(answer)[0]].offering == SPOT_GPU


def gang(account: MotoAccount) -> None:
    answer = account.provider.launch(request("a", "b", minimum=2))
    assert len({_raw(account, key)["SubnetId"] for key in _ids(answer)}) == 1
    assert [machine.node for machine in answer.instances] == ["a", "b"]


def gang_spot(account: MotoAccount) -> None:
    answer = account.provider.launch(request("a", "b", offering=SPOT_GPU, minimum=2))
    assert {_raw(account, key)["InstanceLifecycle"] for key in _ids(answer)} == {"spot"}


def versions_are_found_again(account: MotoAccount) -> None:
    account.provider.launch(request("a"))
    account.restart()
    account.provider.launch(request("b", batch="b2"))
    account.write(monitoring=True)
    account.provider.launch(request("c", batch="b3"))
    (template,) = account.admin("ec2").describe_launch_templates()["LaunchTemplates"]
    # The first two differ in nothing: a node's name is in no user data.
    assert template["LatestVersionNumber"] == 2
    assert template["LaunchTemplateName"].startswith(f"foreslice-{CLUSTER}")


def deleted_launch_template(account: MotoAccount) -> None:
    account.provider.launch(request("a"))
    (template,) = account.admin("ec2").describe_launch_templates()["LaunchTemplates"]
    account.admin("ec2").delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    assert len(account.provider.launch(request("b", batch="b2")).instances) == 1


def deleted_launch_template_of_a_gang(account: MotoAccount) -> None:
    account.provider.launch(request("a", "b", minimum=2))
    (template,) = account.admin("ec2").describe_launch_templates()["LaunchTemplates"]
    account.admin("ec2").delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    assert len(account.provider.launch(request("c", "d", batch="b2", minimum=2)).instances) == 2


def _user_data(account: MotoAccount) -> str:
    newest = {"Versions": ["$Latest"]}
    (template,) = account.admin("ec2").describe_launch_templates()["LaunchTemplates"]
    found = account.admin("ec2").describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], **newest
    )
    return base64.b64decode(found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"]).decode()


def user_data_al2023(account: MotoAccount) -> None:
    taint = Taint("nvidia.com/gpu", "present", "NoSchedule")
    account.provider.launch(replace(request("a"), labels=FrozenMap({"pool": "gpu"}), taints=(taint,)))
    (part,) = (one for one in email.message_from_string(_user_data(account)).walk() if not one.is_multipart())
    node = json.loads(str(part.get_payload()))
    assert (part.get_content_type(), node["spec"]["cluster"]["name"]) == ("application/node.eks.aws", "test")
    assert node["spec"]["kubelet"]["config"]["registerWithTaints"][0]["key"] == "nvidia.com/gpu"


def user_data_bottlerocket(account: MotoAccount) -> None:
    account.write(user_data=UserData.BOTTLEROCKET)
    account.provider.launch(request("a"))
    assert tomllib.loads(_user_data(account))["settings"]["kubernetes"]["cluster-name"] == "test"


def single_interface(account: MotoAccount) -> None:
    account.write(interfaces=Interfaces.SINGLE)
    answer = account.provider.launch(request("a", offering=replace(GPU, instance_type="p5.48xlarge")))
    assert len(_raw(account, _ids(answer)[0])["NetworkInterfaces"]) == 1


def strangers_are_not_listed(account: MotoAccount) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": TAG_CLUSTER, "Value": CLUSTER}]}]
    image = account.image
    account.admin("ec2").run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)
    assert _described(account) == {}


def end_own(account: MotoAccount) -> None:
    (machine,) = _ids(account.provider.launch(request("a")))
    assert account.provider.terminate([machine]).terminating == (machine,)
    assert _described(account)[machine].state in (InstanceState.TERMINATING, InstanceState.TERMINATED)
    again = account.provider.terminate([machine])
    assert again.gone + again.terminating == (machine,)


def end_foreign(account: MotoAccount) -> None:
    image = account.image
    found = account.admin("ec2").run_instances(ImageId=image, MinCount=1, MaxCount=1)
    machine = found["Instances"][0]["InstanceId"]
    assert isinstance(account.provider.terminate([machine]).failures[machine], PermissionDeniedError)
    assert _raw(account, machine)["State"]["Name"] == "running"


def end_unknown(account: MotoAccount) -> None:
    (machine,) = _ids(account.provider.launch(request("a")))
    unknown = "i-0123456789abcdef0"
    answer = account.provider.terminate([unknown, machine])
    assert (answer.gone, answer.terminating) == ((unknown,), (machine,))


def end_stopped(account: MotoAccount) -> None:
    (machine,) = _ids(account.provider.launch(request("a")))
    account.admin("ec2").stop_instances(InstanceIds=[machine])
    assert machine in _described(account)
    assert account.provider.terminate([machine]).terminating == (machine,)
    assert _raw(account, machine)["State"]["Name"] in ("shutting-down", "terminated")


def end_protected(account: MotoAccount) -> None:
    kept, other = _ids(account.provider.launch(request("a", "b")))
    account.admin("ec2").modify_instance_attribute(InstanceId=kept, DisableApiTermination={"Value": True})
    answer = account.provider.terminate([kept, other])
    assert (answer.terminating, list(answer.failures)) == ((other,), [kept])


def verdicts(account: MotoAccount) -> None:
    (found,) = account.provider.template_statuses()
    assert (found.faults, found.resolved["nodeRole"]) == ((), "nodes")
    assert ZONE in found.zones


def verdict_of_a_wrong_subnet(account: MotoAccount) -> None:
    account.admin("ec2").delete_tags(Resources=list(account.subnets), Tags=[{"Key": "cluster"}])
    (found,) = account.provider.template_statuses()
    assert [fault.field for fault in found.faults] == ["spec.subnets"]


def check_looks_at_templates(account: MotoAccount) -> None:
    found = {one.subject: one for one in account.provider.check()}
    parts = ("cluster", "subnets", "security groups", "image", "instance profile")
    assert {part: found[f"AWSNodeTemplate gpu: {part}"].passed for part in parts} == dict.fromkeys(parts, True)


def check_tries_permissions(account: MotoAccount) -> None:
    tried = [one for one in account.provider.check() if ": ec2:" in one.subject]
    assert [one for one in tried if one.required and not one.passed] == []
    assert sum(one.passed for one in tried) == 2  # RunInstances and CreateLaunchTemplate; no version for a fleet yet


def check_queue(account: MotoAccount) -> None:
    found = {one.subject: one for one in account.provider.check() if one.subject.startswith("queue")}
    # It has no policy and no rule yet.
    assert {subject: one.passed for subject, one in found.items()} == {
        "queue": True, "queue: sqs:ReceiveMessage": True, "queue: policy": False, "queue: events": False
    }  # fmt: skip


def _listing(account: MotoAccount, *steps: str) -> dict[str, list[Any]]:
    listing = AwsListing(account.aws, SystemClock())
    rows: dict[str, list[Any]] = {}
    for step in steps:
        token, rows[step] = "", []
        while True:
            page = listing.page(step, token, _rows(rows))
            rows[step].extend(page.rows)
            token = page.next_page
            if not token:
                break
    return rows


def _rows(rows: dict[str, list[Any]]) -> Rows:
    return {step: tuple(found) for step, found in rows.items()}


def catalog_types(account: MotoAccount) -> None:
    found = AwsListing(account.aws, SystemClock()).interpreted(
        _rows(_listing(account, TYPES, ZONES)), date="2026-11-22"
    )
    by_name = {one.name: one for one in found.types}
    assert len(by_name) > 50
    assert (by_name["p5.48xlarge"].vcpu, by_name["p5.48xlarge"].rdma_cards) == (192, 32)


def catalog_spot_prices(account: MotoAccount) -> None:
    assert len(_listing(account, TYPES, SPOT)[SPOT]) > 50


def catalog_list_prices(account: MotoAccount) -> None:
    types = _listing(account, TYPES)[TYPES]
    assert AwsListing(account.aws, SystemClock()).page(PRICES, "0", {TYPES: tuple(types)}).rows


def queue_of_notices(account: MotoAccount) -> None:
    machine = "i-0123456789abcdef0"
    event = {
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "time": "2026-11-22T12:00:00Z",
        "detail": {"instance-id": machine, "instance-action": "terminate"},
    }
    account.admin("sqs").send_message(QueueUrl=QUEUE, MessageBody=json.dumps(event))
    queue = Interruptions(account.aws, QUEUE)
    assert queue.announced(timedelta(0))
    assert list(queue.poll()) == list(notices_of(json.dumps(event)))
    assert not queue.announced(timedelta(0))


def group_by_size(account: MotoAccount) -> None:
    groups = account.groups()
    answer = groups.launch(request("a", "b"))
    assert [machine.node for machine in answer.instances] == ["a", "b"]
    assert _ids(groups.launch(request("a", "b"))) == _ids(answer)
    shown = groups.describe({TAG_CLUSTER: CLUSTER}).instances
    assert sorted(one.id for one in shown) == sorted(_ids(answer))
    assert account.provider.describe({TAG_CLUSTER: CLUSTER}).instances == ()
    groups.terminate(_ids(answer)[:1])
    found = account.admin("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"][0]
    assert found["DesiredCapacity"] == 1


def group_tags_that_propagate(account: MotoAccount) -> None:
    groups = account.groups(size=2, propagate=True)
    assert groups.describe({TAG_CLUSTER: CLUSTER}).instances == ()
    members = account.admin("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"][0]["Instances"]
    failures = groups.terminate([members[0]["InstanceId"]]).failures
    assert isinstance(failures[members[0]["InstanceId"]], PermissionDeniedError)


def other_tags_of_other_groups(account: MotoAccount) -> None:
    groups = account.groups(tags={TAG_CLUSTER: CLUSTER, "foreslice.dev/slot": "somebody's own words"})
    assert len(groups.launch(request("a")).instances) == 1


def trial(account: MotoAccount) -> None:
    """moto knows no tokens: the trial says so, goes on, and ends also the machines that the second calls started."""
    trial = account.provider.trial("gpu", "g5.xlarge", lambda _: None)
    trial.run()
    found = {one.name: one.passed for one in trial.outcomes}
    assert {name for name, passed in found.items() if passed is False} == {
        "on-demand: token again", "spot: token again", "gang of two: token again", "token of ended machines"
    }  # fmt: skip
    assert (found["on-demand: tags"], found["spot: market"], found["gang of two: one subnet"]) == (True, True, True)
    pages = account.admin("ec2").describe_instances()["Reservations"]
    states = [one["State"]["Name"] for page in pages for one in page["Instances"]]
    assert (len(states), set(states)) == (9, {"terminated"})


# --- what moto lacks -------------------------------------------------------------------------------------------------


def token_of_a_fleet(account: MotoAccount) -> None:
    assert _ids(account.provider.launch(request("a"))) == _ids(account.provider.launch(request("a")))


def token_of_run_instances(account: MotoAccount) -> None:
    gang = request("a", "b", minimum=2)
    assert _ids(account.provider.launch(gang)) == _ids(account.provider.launch(gang))


def fleet_twice_in_a_zone(account: MotoAccount) -> None:
    account.provider.launch(request("a"))
    (template,) = account.admin("ec2").describe_launch_templates()["LaunchTemplates"]
    subnet = next(iter(account.subnets))
    place = {"InstanceType": GPU.instance_type, "SubnetId": subnet}
    named = {"LaunchTemplateId": template["LaunchTemplateId"], "Version": "1"}
    answer = account.admin("ec2").create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[{"LaunchTemplateSpecification": named, "Overrides": [place, place]}],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    )
    assert not answer["Instances"]


def reservations(account: MotoAccount) -> None:
    assert account.provider.reservations() == ()


def blocks(account: MotoAccount) -> None:
    account.provider.find(CapacityQuery("p5.48xlarge", 1, timedelta(days=1)))


def block_launch(account: MotoAccount) -> None:
    held = OfferingKey("p5.48xlarge", ZONE, CapacityType.CAPACITY_BLOCK, "cr-0123456789abcdef0")
    account.provider.launch(request("a", offering=held))


def prices(account: MotoAccount) -> None:
    (shown,) = Prices(account.aws, SystemClock(), catalog()).listed([GPU.instance_type])
    assert shown.usd_per_hour


def quotas(account: MotoAccount) -> None:
    assert any(one.subject.startswith("quota ") for one in account.provider.check())


def placement_group(account: MotoAccount) -> None:
    account.admin("ec2").create_placement_group(GroupName="rack", Strategy="cluster")


def launch_instances(account: MotoAccount) -> None:
    account.groups()
    group = {"AutoScalingGroupName": "gpus", "RequestedCapacity": 1, "ClientToken": "t"}
    account.aws.autoscaling.launch_instances(**group)


def volumes(account: MotoAccount) -> None:
    account.write(volumes=(Volume("/dev/xvda", gibibytes=100),))
    answer = account.provider.launch(request("a", "b", minimum=2))
    attached = _raw(account, _ids(answer)[0])["BlockDeviceMappings"][0]["Ebs"]
    volume = account.admin("ec2").describe_volumes(VolumeIds=[attached["VolumeId"]])["Volumes"][0]
    assert (volume["Size"], volume["Encrypted"], attached["DeleteOnTermination"]) == (100, True, True)


def efa_interfaces(account: MotoAccount) -> None:
    answer = account.provider.launch(request("a", offering=replace(GPU, instance_type="p5.48xlarge")))
    assert len(_raw(account, _ids(answer)[0])["NetworkInterfaces"]) == 32

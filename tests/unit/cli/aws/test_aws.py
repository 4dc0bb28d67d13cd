"""`aws check` looks at everything a launch needs, and says what is missing and how to get it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.aws.group import aws
from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import AWS_GROUP_NODE_TEMPLATES, AWS_NODE_TEMPLATES, CAPACITY_POOLS, NAMESPACES
from autoscaler.simulation.api_server import ApiServer
from providers.aws.provider import Account, AwsProvider
from tests.aws import CLUSTER, P5, PARAMETER, Rig, catalog, request
from tests.fakes.ec2 import refused
from tests.unit.deploy.test_aws_policies import recorded, tagged_kinds
from tests.unit.providers.aws.launch.test_node_groups import group

SPEC: dict[str, Any] = {
    "cluster": {"name": "test"},
    "subnets": [{"tags": {"kubernetes.io/cluster/test": "owned"}}],
    "securityGroups": [{"id": "sg-0123456789abcdef0"}],
    "ami": {"ssmParameter": PARAMETER},
    "instanceProfile": "nodes",
}


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr("autoscaler.composition.aws.Aws", lambda *_, **__: rig.aws)
    return rig


def checked(monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any] | None) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the findings by subject, of a cluster with this template."""
    api = ApiServer(VirtualClock())
    if not any(item["metadata"]["name"] == "kube-system" for item in api.list(NAMESPACES).items):
        api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    if spec is not None:
        api.create(AWS_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})
    monkeypatch.setattr("autoscaler.cli.common.preflight.connected", lambda *_: api)
    result = CliRunner().invoke(aws, ["check", "-o", "json"], catch_exceptions=False)
    return result.exit_code, {one["subject"]: one for one in json.loads(result.output)}


def test_an_account_that_is_ready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = checked(monkeypatch, SPEC)
    missing = [one["subject"] for one in found.values() if not one["passed"] and one["required"]]
    assert (code, missing) == (0, [])
    assert found["account"]["message"].startswith("123456789012 as ")
    for part in ("cluster", "subnets", "security groups", "image", "instance profile", "ec2:RunInstances"):
        assert found[f"AWSNodeTemplate gpu: {part}"]["passed"], part
    assert any(subject.startswith("quota ") for subject in found)
    assert rig.fake.account.alive() == []


@pytest.mark.parametrize(
    ("change", "subject", "message", "step"),
    [
        pytest.param(
            {"subnets": [{"id": "subnet-gone"}]},
            "subnets",
            "spec.subnets[0] (subnet-gone) finds nothing",
            "correct",
            id="subnet",
        ),
        pytest.param(
            {"securityGroups": [{"tags": {"a": "b"}}]}, "security groups", "(a=b) finds nothing", "correct", id="group"
        ),
        pytest.param({"ami": {"id": "ami-0123"}}, "image", "ami-0123", "node template", id="image"),
        pytest.param(
            {"ami": {"ssmParameter": "/foreslice/none"}}, "image", "/foreslice/none", "node template", id="parameter"
        ),
        pytest.param({"instanceProfile": "nobody"}, "instance profile", "nobody", "", id="profile"),
        pytest.param({"cluster": {"name": "other"}}, "cluster", "other", "node template", id="cluster"),
    ],
)
def test_what_is_missing_in_a_template(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], subject: str, message: str, step: str
) -> None:
    code, found = checked(monkeypatch, {**SPEC, **change})
    finding = found[f"AWSNodeTemplate gpu: {subject}"]
    assert (code, finding["passed"]) == (3, False)
    assert message in finding["message"]
    assert step in finding["nextStep"]


def test_a_missing_permission_names_its_action(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.denied.add("ec2:CreateFleet")
    code, found = checked(monkeypatch, SPEC)
    assert code == 3
    assert "allow ec2:CreateFleet" in found["AWSNodeTemplate gpu: ec2:CreateFleet"]["nextStep"]
    assert found["AWSNodeTemplate gpu: ec2:RunInstances"]["passed"]


def test_a_dry_run_carries_the_tags_and_the_role_of_a_launch(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a try lacks would be told as a permission that is missing."""
    with recorded(rig) as asked:
        checked(monkeypatch, SPEC)
    for action, kinds in tagged_kinds().items():
        # A fleet's network interfaces have their tags from the launch template that it names.
        wanted = kinds - {"network-interface"} if action == "CreateFleet" else kinds
        assert {one["ResourceType"] for one in asked[action][0]["TagSpecifications"]} == wanted, action
    assert asked["RunInstances"][0]["IamInstanceProfile"] == {"Name": "nodes"}


POOL: dict[str, Any] = {
    "limits": {"nodes": 1},
    "nodeTemplateRef": {"kind": "AWSNodeTemplate", "name": "gpu"},
    "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}],
}


def checked_with_pool(monkeypatch: pytest.MonkeyPatch, instance_type: str) -> dict[str, dict[str, Any]]:
    api = ApiServer(VirtualClock())
    api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    api.create(AWS_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": SPEC})
    named = [{**POOL["requirements"][0], "values": [instance_type]}]
    api.create(CAPACITY_POOLS, {"metadata": {"name": "train"}, "spec": {**POOL, "requirements": named}})
    monkeypatch.setattr("autoscaler.cli.common.preflight.connected", lambda *_: api)
    result = CliRunner().invoke(aws, ["check", "-o", "json"], catch_exceptions=False)
    return {one["subject"]: one for one in json.loads(result.output)}


def test_a_type_of_each_pool_is_tried_with_its_interfaces(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(rig) as asked:
        found = checked_with_pool(monkeypatch, "p5.48xlarge")
    (tried,) = asked["RunInstances"]
    assert (tried["InstanceType"], tried["DryRun"], len(tried["NetworkInterfaces"])) == ("p5.48xlarge", True, 32)
    assert {one["SubnetId"] for one in tried["NetworkInterfaces"]} == {"subnet-00000000000000000"}
    message = found["AWSNodeTemplate gpu: ec2:RunInstances"]["message"]
    assert message == "allowed (p5.48xlarge in us-east-1a with 32 interfaces, 32 of them EFA)"


def test_a_fleet_cannot_be_tried_before_a_launch(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked_with_pool(monkeypatch, "p5.48xlarge")
    not_yet = found["AWSNodeTemplate gpu: ec2:CreateFleet of p5.48xlarge"]
    assert (not_yet["passed"], not_yet["required"]) == (False, False)
    assert "after the first launch" in not_yet["nextStep"]


@pytest.mark.parametrize("code", ["", "InvalidFleetConfig"])
def test_a_fleet_is_tried_after_a_launch_and_believed(rig: Rig, code: str) -> None:
    rig.provider = AwsProvider(
        Account(rig.aws, rig.clock, catalog(), CLUSTER), rig.templates, tried=lambda _: [P5.instance_type]
    )
    rig.provider.launch(request("a"))
    if code:
        rig.fake.faults.inject("CreateFleet", refused(code))
    (found,) = (one for one in rig.provider.check() if "CreateFleet" in one.subject)
    assert (found.passed, found.required) == (not code, True)
    assert ("p5.48xlarge in us-east-1a" in found.message) == (not code or "refuse" in found.message)


@pytest.mark.parametrize(
    ("code", "required"),
    [
        pytest.param("InvalidParameterValue", True, id="a parameter"),
        pytest.param("InvalidFleetConfig", True, id="the fleet"),
        pytest.param("SomethingNew", True, id="a code nobody knows"),
        pytest.param("RequestLimitExceeded", True, id="throttled"),
        pytest.param("VcpuLimitExceeded", False, id="a quota, which blocks do not count against"),
        pytest.param("InsufficientInstanceCapacity", False, id="a shortage, which passes"),
        pytest.param("UnauthorizedOperation", True, id="a permission"),
    ],
)
def test_every_answer_but_dry_run_operation_is_a_finding_with_a_next_step(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, code: str, *, required: bool
) -> None:
    rig.fake.faults.inject("RunInstances", refused(code))
    _, found = checked(monkeypatch, SPEC)
    finding = found["AWSNodeTemplate gpu: ec2:RunInstances"]
    assert (finding["passed"], finding["required"]) == (False, required)
    assert finding["nextStep"]


def test_a_zone_that_does_not_sell_a_type_is_not_the_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.faults.inject("RunInstances", refused("Unsupported"))
    found = checked_with_pool(monkeypatch, "p5.48xlarge")
    finding = found["AWSNodeTemplate gpu: ec2:RunInstances"]
    assert finding["passed"]
    assert "us-east-1b" in finding["message"]


@pytest.mark.parametrize(
    ("public", "interfaces", "told"),
    [
        pytest.param(("us-east-1a",), "EFA", ["us-east-1a"], id="one zone"),
        pytest.param(("us-east-1a",), "Single", [], id="one interface"),
        pytest.param((), "EFA", [], id="private"),
    ],
)
def test_zones_with_public_subnets_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, public: tuple[str, ...], interfaces: str, told: list[str]
) -> None:
    subnets = rig.fake.account.geography.subnets.values()
    for subnet in subnets:
        subnet.public = subnet.zone in public
    code, found = checked(monkeypatch, {**SPEC, "networkInterfaces": interfaces})
    warned = [found.get(f"AWSNodeTemplate gpu: {s.id}") for s in subnets if f"AWSNodeTemplate gpu: {s.id}" in found]
    assert (code, len(warned)) == (0, len(told))
    for finding, zone in zip(warned, told, strict=True):
        assert finding is not None
        assert finding["message"].startswith(f"the subnets in {zone} are public")
        assert "kubernetes.io/role/internal-elb" in finding["nextStep"]


def test_a_block_in_a_zone_without_subnet(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    day = timedelta(days=1)
    block = rig.fake.account.block("p5.48xlarge", "us-east-1b", 4, starts_in=day, lasts=day)
    only_a = next(s.id for s in rig.fake.account.geography.subnets.values() if s.zone == "us-east-1a")
    code, found = checked(monkeypatch, {**SPEC, "subnets": [{"id": only_a}]})
    finding = found[f"reservation {block.id}"]
    assert (code, finding["passed"]) == (3, False)
    assert "create a subnet in us-east-1b" in finding["nextStep"]


@pytest.mark.parametrize(
    ("tags", "passed", "step"),
    [
        pytest.param({"foreslice.dev/cluster": "{uid}"}, True, "", id="tagged"),
        pytest.param({}, False, "tag the group foreslice.dev/cluster=", id="not tagged"),
        pytest.param({"foreslice.dev/cluster": "{uid}!"}, False, "tag the group again with Prop", id="propagated"),
    ],
)
def test_groups_are_enough_and_need_the_clusters_tag(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, tags: dict[str, str], passed: bool, step: str
) -> None:
    api = ApiServer(VirtualClock())
    uid = api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})["metadata"]["uid"]
    api.create(AWS_GROUP_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"autoScalingGroups": ["gpus"]}})
    group(rig, "gpus", tags={key: (value.format(uid=uid).strip("!"), "!" in value) for key, value in tags.items()})
    monkeypatch.setattr("autoscaler.cli.common.preflight.connected", lambda *_: api)
    result = CliRunner().invoke(aws, ["check", "-o", "json"], catch_exceptions=False)
    found = {one["subject"]: one for one in json.loads(result.output)}
    finding = found["AWSGroupNodeTemplate gpu: group gpus"]
    assert (finding["passed"], result.exit_code) == (passed, 0 if passed else 3)
    assert finding["nextStep"].startswith(step)
    assert "AWSNodeTemplates" not in found


def test_without_credentials_nothing_else_is_asked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.fake.faults.inject("GetCallerIdentity", refused("ExpiredToken", status=403))
    code, found = checked(monkeypatch, SPEC)
    assert code == 3
    assert list(found) == ["account"]


def test_a_cluster_without_templates_is_told_how_to_begin(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = checked(monkeypatch, None)
    assert code == 3
    assert "docs/aws.md" in found["AWSNodeTemplates"]["nextStep"]


def test_the_queue_is_looked_at_where_it_is_named(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "queue" not in checked(monkeypatch, SPEC)[1]
    monkeypatch.setenv("FORESLICE_AWS_QUEUE", rig.fake.account.notices.queue("foreslice").url)
    code, found = checked(monkeypatch, SPEC)
    assert found["queue"]["passed"]
    assert (code, found["queue: events"]["passed"]) == (0, False)


def test_an_image_that_has_moved_on_is_a_note(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    _, before = checked(monkeypatch, SPEC)
    assert "AWSNodeTemplate gpu: image drift" not in before
    rig.restart()
    rig.provider.launch(request())
    newer = next(i.id for i in rig.fake.account.geography.images.values() if "1.34" in i.name)
    rig.fake.account.geography.parameters[PARAMETER] = newer
    drift = rig.provider.check()
    (found,) = (one for one in drift if one.subject.endswith("image drift"))
    assert (found.passed, found.required) == (False, False)
    assert newer in found.message

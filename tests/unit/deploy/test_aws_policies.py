"""The policies allow what the adapter calls and nothing more; and the table of calls is what the adapter calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore import xform_name

from autoscaler.cluster.resources import AWS_GROUP_NODE_TEMPLATES, AWS_NODE_TEMPLATES
from instance_catalog.dataclass import replace
from providers.aws.calls import CALLS, PARAMETERS, Call, Role
from providers.aws.interruptions import KINDS
from providers.aws.node_template.images import resolve
from providers.aws.node_template.template import Image
from providers.aws.session import UnlistedCallError
from providers.contract import TAG_CLUSTER
from providers.errors import TemplateError
from tests.aws import CLUSTER, P5, FakeAws, Rig, request
from tests.fakes.ec2.requests import service_model

ROOT = Path(__file__).parents[3]
POLICIES = {Role.CONTROLLER: "controller", Role.BUYER: "buyer", Role.PERSON: "person"}
UID = "${cluster_uid}"


# Attached to the controller's role where groups or keys are named.
OPTIONAL = ("groups", "volume-keys")
# EC2 makes these calls for whoever launches: no call of the adapter.
THROUGH_EC2 = "kms:"


def actions_of(role: Role) -> frozenset[str]:
    """The IAM actions that a role's policy must allow."""
    return frozenset(action for call in CALLS if role in call.roles for action in call.actions)


def policy(name: str) -> list[dict[str, Any]]:
    found = json.loads((ROOT / f"deploy/aws/{name}-policy.json").read_text(encoding="utf-8"))
    assert found["Version"] == "2012-10-17"
    return list(found["Statement"])


def statements(role: Role) -> list[dict[str, Any]]:
    return [*policy(POLICIES[role]), *(policy("groups") if role is Role.CONTROLLER else ())]


def allowing(role: Role, action: str) -> list[dict[str, Any]]:
    return [statement for statement in statements(role) if action in statement["Action"]]


@pytest.mark.parametrize("role", POLICIES, ids=lambda role: role.value)
def test_a_policy_allows_what_its_role_calls_and_nothing_else(role: Role) -> None:
    found = statements(role)
    assert all(statement["Effect"] == "Allow" for statement in found)
    assert {action for statement in found for action in statement["Action"]} == actions_of(role)


def test_the_controller_may_read_its_templates_and_say_what_they_come_to() -> None:
    roles = yaml.safe_load((ROOT / "deploy/charts/foreslice/files/roles.yaml").read_text(encoding="utf-8"))
    templates = {AWS_NODE_TEMPLATES.plural, AWS_GROUP_NODE_TEMPLATES.plural}
    found = [(set(rule["resources"]), set(rule["verbs"])) for rule in roles["cluster"]["aws"]]
    assert found == [(templates, {"get", "list"}), ({f"{name}/status" for name in templates}, {"patch"})]


def test_the_controller_cannot_buy() -> None:
    assert not any("Purchase" in action for action in actions_of(Role.CONTROLLER))


@pytest.mark.parametrize(
    ("action", "condition"),
    [
        pytest.param("ec2:TerminateInstances", "aws:ResourceTag/foreslice.dev/cluster", id="ends only its own"),
        pytest.param("autoscaling:SetDesiredCapacity", "aws:ResourceTag/foreslice.dev/cluster", id="resizes its own"),
        pytest.param("ec2:CreateLaunchTemplate", "aws:RequestTag/foreslice.dev/cluster", id="tags its templates"),
        pytest.param("ec2:CreateLaunchTemplateVersion", "aws:ResourceTag/foreslice.dev/cluster", id="changes its own"),
        pytest.param("ec2:DeleteLaunchTemplate", "aws:ResourceTag/foreslice.dev/cluster", id="deletes its own"),
    ],
)
def test_the_clusters_tag_is_a_condition(action: str, condition: str) -> None:
    (statement,) = allowing(Role.CONTROLLER, action)
    assert statement["Condition"] == {"StringEquals": {condition: UID}}


def test_a_person_may_try_no_more_than_the_controller_may_do() -> None:
    """What a dry run needs would also launch, so it has the controller's conditions."""
    for tried in (s for s in statements(Role.PERSON) if s["Resource"] != "*"):
        allowed = [
            statement
            for statement in statements(Role.CONTROLLER)
            if set(tried["Action"]) <= set(statement["Action"])
            and (tried["Resource"], tried.get("Condition")) == (statement["Resource"], statement.get("Condition"))
        ]
        assert allowed, tried["Sid"]


@pytest.mark.parametrize("role", [Role.CONTROLLER, Role.PERSON], ids=lambda role: role.value)
def test_machines_are_launched_with_the_clusters_tag_only(role: Role) -> None:
    launching = allowing(role, "ec2:RunInstances")
    made = [s for s in launching if any(":instance/" in resource for resource in s["Resource"])]
    assert [s["Condition"] for s in made] == [{"StringEquals": {"aws:RequestTag/foreslice.dev/cluster": UID}}]


def tagged_kinds() -> dict[str, set[str]]:
    """What launches must tag, by call: the resources that the controller's policy lets pass with the tag only.

    Only fleets make fleets; the request for spot machines is not among them (as in Karpenter 0.32's policy), because
    EC2 refuses its tag where there is no such request.
    """
    found: dict[str, set[str]] = {}
    for statement in statements(Role.CONTROLLER):
        if statement.get("Condition") == {"StringEquals": {"aws:RequestTag/foreslice.dev/cluster": UID}}:
            kinds = {arn.rpartition(":")[2].removesuffix("/*") for arn in statement["Resource"]}
            for action in statement["Action"]:
                found[action.partition(":")[2]] = kinds
    found["RunInstances"] = found["RunInstances"] - {"fleet"}
    return found


@contextmanager
def recorded(rig: Rig) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The parameters of the EC2 calls that are made meanwhile, by operation."""
    asked: dict[str, list[dict[str, Any]]] = {}

    def note(params: dict[str, Any], model: Any, **_: object) -> None:
        asked.setdefault(model.name, []).append(params)

    events = rig.aws.ec2.meta.events
    events.register("provide-client-params.ec2", note, unique_id="recorded")
    try:
        yield asked
    finally:
        events.unregister("provide-client-params.ec2", unique_id="recorded")


def owned_kinds(specifications: list[dict[str, Any]]) -> set[str]:
    """The kinds of resources that get the cluster's tag."""
    return {one["ResourceType"] for one in specifications if {"Key": TAG_CLUSTER, "Value": CLUSTER} in one["Tags"]}


@pytest.mark.parametrize("minimum", [pytest.param(1, id="fleet"), pytest.param(2, id="gang")])
@pytest.mark.parametrize("capacity_type", ["on-demand", "spot"])
def test_launches_tag_what_the_policy_lets_pass_with_the_tag_only(minimum: int, capacity_type: str) -> None:
    rig = Rig()
    with recorded(rig) as asked:
        rig.provider.launch(request("a", "b", offerings=(replace(P5, capacity_type=capacity_type),), minimum=minimum))
    kinds = tagged_kinds()
    calls = [(name, call) for name in kinds for call in asked.get(name, ())]
    assert {name for name, _ in calls} == {"CreateLaunchTemplate", "CreateFleet" if minimum == 1 else "RunInstances"}
    # CreateFleet documents no tags for network interfaces: EC2 takes those of the launch template that it names.
    (template,) = asked["CreateLaunchTemplate"]
    of_template = owned_kinds(template["LaunchTemplateData"]["TagSpecifications"])
    for name, call in calls:
        owned = owned_kinds(call["TagSpecifications"])
        assert owned | (of_template if name == "CreateFleet" else set()) == kinds[name], name


@pytest.mark.parametrize("role", [Role.CONTROLLER, Role.PERSON], ids=lambda role: role.value)
@pytest.mark.parametrize("kind", ["capacity-reservation", "security-group", "subnet"])
def test_what_another_account_shares_is_not_pinned_to_this_one(role: Role, kind: str) -> None:
    """A subnet of a shared VPC and a shared reservation have the account of their owner in their ARN."""
    arns = {arn for s in allowing(role, "ec2:RunInstances") for arn in s["Resource"] if f":{kind}/" in arn}
    assert arns == {f"arn:${{partition}}:ec2:${{region}}:*:{kind}/*"}


@pytest.mark.parametrize("role", [Role.CONTROLLER, Role.PERSON], ids=lambda role: role.value)
def test_the_node_role_is_given_to_ec2_in_every_partition(role: Role) -> None:
    (statement,) = allowing(role, "iam:PassRole")
    services = statement["Condition"]["StringEquals"]["iam:PassedToService"]
    assert services == ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]


def test_no_policy_names_a_partition() -> None:
    for name in (*POLICIES.values(), *OPTIONAL):
        arns = [r for s in policy(name) for r in ([s["Resource"]] if s["Resource"] == "*" else s["Resource"])]
        assert [arn for arn in arns if arn.startswith("arn:") and not arn.startswith("arn:${partition}:")] == []


def test_members_of_named_groups_alone_can_become_ours() -> None:
    tags, resizing = policy("groups")
    assert tags["Condition"]["StringEquals"]["aws:ResourceTag/aws:autoscaling:groupName"] == ["${group_names}"]
    assert (resizing["Resource"], "autoscaling" in str(policy("controller")[1:])) == (["${group_arns}"], False)


def test_keys_serve_ec2_alone() -> None:
    for statement in policy("volume-keys"):
        assert all(action.startswith(THROUGH_EC2) for action in statement["Action"])
        assert statement["Condition"]["StringLike"] == {"kms:ViaService": "ec2.${region}.*"}
        assert statement["Resource"] == ["${volume_key_arns}"]


def test_only_reading_is_allowed_on_everything() -> None:
    verbs = {
        re.split("(?<=[a-z])(?=[A-Z])", action.partition(":")[2])[0]
        for role in POLICIES
        for statement in statements(role)
        if statement["Resource"] == "*"
        for action in statement["Action"]
    }
    assert verbs == {"Describe", "Get", "List"}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.service}:{call.operation}")
def test_every_call_of_the_table_exists_and_is_made(call: Call) -> None:
    assert call.operation in service_model(call.service).operation_names
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "providers/aws").rglob("*.py"))
    name = xform_name(call.operation)
    assert re.search(rf'\.{name}\(|"{name}"', source)


def test_a_call_that_is_not_in_the_table_is_refused() -> None:
    Rig()
    with pytest.raises(UnlistedCallError, match="ec2:DescribeVpcs is missing"):
        FakeAws().ec2.describe_vpcs()


def test_terraform_fills_every_name_and_sends_every_notice() -> None:
    text = (ROOT / "deploy/aws/main.tf").read_text(encoding="utf-8")
    filled = re.search(r"names = \{(.*?)\n  \}", text, re.DOTALL)
    assert filled is not None
    names = set(re.findall(r"^    (\w+) +=", filled.group(1), re.MULTILINE))
    wanted = {
        name
        for which in (*POLICIES.values(), *OPTIONAL)
        for name in re.findall(r"\$\{(\w+)\}", (ROOT / f"deploy/aws/{which}-policy.json").read_text(encoding="utf-8"))
    }
    assert wanted == names
    kinds = re.findall(r'"((?:AWS|Capacity|EC2) [^"]+)"', text)
    assert sorted(kinds) == sorted(KINDS)


@pytest.mark.parametrize("role", [Role.CONTROLLER, Role.PERSON], ids=lambda role: role.value)
def test_parameters_are_read_under_the_prefixes_that_the_adapter_reads(role: Role) -> None:
    (statement,) = allowing(role, "ssm:GetParameter")
    prefixes = {arn.partition(":parameter")[2].removesuffix("*") for arn in statement["Resource"]}
    assert prefixes == set(PARAMETERS)


@pytest.mark.parametrize("name", ["/prod/db/password", "aws/service/x", "arn:aws:ssm:us-east-1:1:parameter/x", ""])
def test_no_client_reads_another_parameter(name: str) -> None:
    with pytest.raises(UnlistedCallError, match="under none of"):
        Rig().aws.ssm.get_parameter(Name=name)


def test_what_a_parameter_holds_is_not_told() -> None:
    rig = Rig()
    rig.fake.account.geography.parameters["/foreslice/secret"] = "hunter2"
    with pytest.raises(TemplateError) as caught:
        resolve(rig.aws, Image(parameter="/foreslice/secret"))
    assert "hunter2" not in f"{caught.value}{caught.value.next_step}"
    with pytest.raises(TemplateError, match="none that Foreslice reads"):
        resolve(rig.aws, Image(parameter="/prod/db/password"))

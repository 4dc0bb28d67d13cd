"""What node templates come to is written once, with conditions that people and tools read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.publishing.template_status import TemplateStatuses
from autoscaler.cluster.resources import AWS_GROUP_NODE_TEMPLATES, AWS_NODE_TEMPLATES, EVENTS
from autoscaler.composition.aws import machine_templates
from autoscaler.execution.launch import Providers
from autoscaler.kube.custom.aws_node_template import AWSGroupNodeTemplateStatus, AWSNodeTemplateStatus
from autoscaler.loop.loop import Loop
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import REFERENCE
from providers.aws.provider import Account, AwsProvider
from providers.contract import TemplateFault, TemplateRef, TemplateStatus
from tests.aws import CLUSTER, PARAMETER, Rig, catalog
from tests.fakes.ec2 import refused

NOW = VirtualClock().now()
GPU = TemplateRef("AWSNodeTemplate", "gpu", 1)
FAULT = TemplateFault("spec.subnets", "Configuration", "subnet-1 finds nothing", "correct it")
SPEC: dict[str, Any] = {
    "cluster": {"name": "test"},
    "subnets": [{"tags": {"kubernetes.io/cluster/test": "owned"}}],
    "securityGroups": [{"id": "sg-0123456789abcdef0"}],
    "ami": {"ssmParameter": PARAMETER},
    "instanceProfile": "nodes",
}


@pytest.fixture
def api() -> ApiServer:
    api = ApiServer(VirtualClock())
    api.create(AWS_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": SPEC})
    return api


def status_of(api: ApiServer) -> dict[str, Any]:
    status: dict[str, Any] = api.get(AWS_NODE_TEMPLATES, "gpu")["status"]
    return status


def conditions(api: ApiServer) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status_of(api)["conditions"]}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(TemplateStatus(GPU, drift=""), ("True", "Resolved", ""), id="nothing is wrong"),
        pytest.param(
            TemplateStatus(GPU, faults=(FAULT,)),
            ("False", "Configuration", "spec.subnets: subnet-1 finds nothing; correct it"),
            id="a field is wrong",
        ),
        pytest.param(
            TemplateStatus(GPU, faults=(replace(FAULT, field="", kind="Throttled", certain=False),)),
            ("Unknown", "Throttled", "subnet-1 finds nothing; correct it"),
            id="the provider could not look",
        ),
        pytest.param(
            TemplateStatus(GPU, faults=(replace(FAULT, kind="Permission", certain=False), FAULT)),
            ("False", "Configuration", "\n".join(["spec.subnets: subnet-1 finds nothing; correct it"] * 2)),
            id="what is certain decides",
        ),
    ],
)
def test_condition_ready(api: ApiServer, verdict: TemplateStatus, expected: tuple[str, str, str]) -> None:
    events = TemplateStatuses(api).write(verdict, NOW)
    assert conditions(api)["Ready"] == expected
    assert [event.reason for event in events] == [fault.kind for fault in verdict.faults]
    assert status_of(api)["conditions"][0]["observedGeneration"] == 1


def test_drift_is_a_condition_and_an_event_and_leaves_the_template_usable(api: ApiServer) -> None:
    (event,) = TemplateStatuses(api).write(TemplateStatus(GPU, drift="launches use ami-1"), NOW)
    assert conditions(api)["Ready"][0] == "True"
    assert conditions(api)["UpToDate"] == ("False", "Drifted", "launches use ami-1")
    assert (event.type, event.reason, event.about.uid) == (
        "Normal",
        "Drifted",
        api.get(AWS_NODE_TEMPLATES, "gpu")["metadata"]["uid"],
    )


def test_what_is_not_resolved_any_more_goes(api: ApiServer) -> None:
    statuses = TemplateStatuses(api)
    statuses.write(TemplateStatus(GPU, {"subnets": [{"id": "subnet-1", "zone": "a"}], "nodeRole": "n"}), NOW)
    assert status_of(api)["subnets"] == [{"id": "subnet-1", "zone": "a"}]
    statuses.write(TemplateStatus(GPU, {"nodeRole": "n"}, (FAULT,)), NOW)
    assert "subnets" not in status_of(api)
    assert status_of(api)["nodeRole"] == "n"


def test_what_could_not_be_looked_at_stays_as_it_was(api: ApiServer) -> None:
    statuses = TemplateStatuses(api)
    statuses.write(TemplateStatus(GPU, {"nodeRole": "n"}, drift=""), NOW)
    statuses.write(TemplateStatus(GPU, faults=(replace(FAULT, field="", certain=False),)), NOW)
    assert status_of(api)["nodeRole"] == "n"
    assert conditions(api)["Ready"][0] == "Unknown"


def test_nothing_is_written_or_told_twice_also_after_a_restart(api: ApiServer) -> None:
    verdict = TemplateStatus(GPU, faults=(FAULT,))
    statuses = TemplateStatuses(api)
    statuses.write(verdict, NOW)
    writes = api.writes
    assert statuses.write(verdict, NOW + timedelta(hours=1)) == ()
    TemplateStatuses(api).write(verdict, NOW + timedelta(hours=1))
    assert api.writes == writes


def test_a_transition_has_its_moment(api: ApiServer) -> None:
    statuses, now = TemplateStatuses(api), NOW
    statuses.write(TemplateStatus(GPU), now)
    statuses.write(TemplateStatus(GPU, {"nodeRole": "n"}), now + timedelta(hours=1))
    (ready,) = status_of(api)["conditions"]
    assert ready["lastTransitionTime"] == now.strftime("%Y-%m-%dT%H:%M:%SZ")
    statuses.write(TemplateStatus(GPU, faults=(FAULT,)), now + timedelta(hours=2))
    (ready,) = status_of(api)["conditions"]
    assert ready["lastTransitionTime"] == (now + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(TemplateRef("AWSNodeTemplate", "gone", 1), id="deleted meanwhile"),
        pytest.param(TemplateRef("TheirTemplate", "gpu", 1), id="a third party's kind"),
    ],
)
def test_what_is_not_there_is_passed_over(api: ApiServer, reference: TemplateRef) -> None:
    assert TemplateStatuses(api).write(TemplateStatus(reference, faults=(FAULT,)), NOW) == ()


def loop_of(rig: Rig, api: ApiServer) -> Loop:
    provider = AwsProvider(Account(rig.aws, rig.clock, catalog(), CLUSTER), machine_templates(ProviderObjects(api)))
    providers = Providers({"AWSNodeTemplate": provider}, cluster=CLUSTER)
    return Loop(api=api, providers=providers, catalog=catalog(), profile=REFERENCE, clock=rig.clock)


def test_a_tick_says_what_the_templates_of_the_cluster_come_to(api: ApiServer) -> None:
    rig = Rig()
    loop = loop_of(rig, api)
    loop.tick()
    assert conditions(api) == {"Ready": ("True", "Resolved", ""), "UpToDate": ("True", "UpToDate", "")}
    assert AWSNodeTemplateStatus.model_validate(status_of(api)).node_role == "nodes"
    rig.fake.account.geography.subnets.clear()
    rig.clock.advance(timedelta(minutes=10))
    loop.tick()
    assert conditions(api)["Ready"][:2] == ("False", "Configuration")
    (event,) = [one for one in api.list(EVENTS).items if one["involvedObject"]["kind"] == "AWSNodeTemplate"]
    assert "finds nothing" in event["message"]


def test_a_tick_without_credentials_says_so_on_every_template(api: ApiServer) -> None:
    rig = Rig()
    for operation in ("DescribeInstances", "DescribeSubnets"):
        rig.fake.faults.inject(operation, refused("ExpiredToken", status=403))
    loop_of(rig, api).tick()
    status, reason, message = conditions(api)["Ready"]
    assert (status, reason) == ("False", "Permission")
    assert "give" in message.lower()


def test_group_statuses_are_of_their_schema(api: ApiServer) -> None:
    api.create(AWS_GROUP_NODE_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"autoScalingGroups": ["g"]}})
    row = {"name": "g", "zones": ["a"], "instanceTypes": ["p5.48xlarge"], "capacityType": "spot", "maxSize": 3}
    verdict = TemplateStatus(TemplateRef("AWSGroupNodeTemplate", "gpu", 1), {"groups": [row]}, zones=("a",))
    TemplateStatuses(api).write(verdict, NOW)
    found = AWSGroupNodeTemplateStatus.model_validate(api.get(AWS_GROUP_NODE_TEMPLATES, "gpu")["status"])
    assert found.groups[0].max_size == 3

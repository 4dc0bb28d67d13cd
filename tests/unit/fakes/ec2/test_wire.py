"""Both directions are held to the SDK's service models, and the tables of the fake too."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from autoscaler.clock import VirtualClock
from providers.aws.calls import CALLS
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2.answers import HttpResponse, render
from tests.fakes.ec2.calls.operation import Operation
from tests.fakes.ec2.errors import ApiError, MisspeltAnswerError
from tests.fakes.ec2.requests import HttpRequest, service_model, understand

AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"


def asked(body: str, service: str = "ec2") -> HttpRequest:
    return HttpRequest("POST", "/", {"authorization": AUTHORIZATION.format(service)}, body.encode())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("Action=Nonsense&Version=2016-11-15", "InvalidAction", id="action"),
        pytest.param("Action=DescribeSubnets&Version=2000-01-01", "NoSuchVersion", id="version"),
        pytest.param("Action=DescribeSubnets&Version=2016-11-15&Colour=red", "UnknownParameter", id="unknown"),
        pytest.param("Action=RunInstances&Version=2016-11-15&MinCount=1", "MissingParameter", id="missing"),
        pytest.param("Action=DescribeSubnets&Version=2016-11-15&MaxResults=x", "InvalidParameterValue", id="number"),
        pytest.param("Action=DescribeSubnets&Version=2016-11-15&DryRun=yes", "InvalidParameterValue", id="boolean"),
        pytest.param("Action=DescribeSubnets&Version=2016-11-15&SubnetId=x", "InvalidParameterValue", id="no list"),
        pytest.param("Action=DescribeSubnets&Version=2016-11-15&SubnetId.a=x", "InvalidParameterValue", id="index"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(body: str, code: str) -> None:
    with pytest.raises(ApiError) as error:
        understand(asked(body))
    assert error.value.code == code


def test_a_request_without_a_signature_is_refused() -> None:
    with pytest.raises(ApiError) as error:
        understand(HttpRequest("POST", "/", {}, b""))
    assert error.value.code == "MissingAuthenticationToken"


def test_lists_and_structures_are_read_as_they_were_written() -> None:
    body = "Action=DescribeSubnets&Version=2016-11-15&Filter.1.Name=tag%3Aa&Filter.1.Value.2=y&Filter.1.Value.1=x"
    assert understand(asked(body)).params == {"Filters": [{"Name": "tag:a", "Values": ["x", "y"]}]}


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        pytest.param({"Subnet": []}, "has no member Subnet", id="member"),
        pytest.param({"Subnets": [{"SubnetID": "x"}]}, "has no member SubnetID", id="deep member"),
        pytest.param({"Subnets": [{"AvailableIpAddressCount": "3"}]}, "is a integer, found '3'", id="type"),
        pytest.param({"Subnets": [{"State": "fine"}]}, "is one of", id="enumeration"),
    ],
)
def test_an_answer_that_does_not_fit_cannot_be_given(answer: dict[str, Any], complaint: str) -> None:
    model = service_model("ec2").operation_model("DescribeSubnets")
    with pytest.raises(MisspeltAnswerError, match=complaint):
        render(model, answer, "1")


def test_text_is_escaped() -> None:
    model = service_model("ec2").operation_model("DescribeSubnets")
    answer = render(model, {"Subnets": [{"SubnetId": "<&>"}]}, "1")
    assert isinstance(answer, HttpResponse)
    assert b"<subnetId>&lt;&amp;&gt;</subnetId>" in answer.body


def operations() -> list[tuple[str, str, Operation]]:
    known = FakeEc2(VirtualClock()).operations
    return [(service, name, operation) for service, table in known.items() for name, operation in table.items()]


@pytest.mark.parametrize(("service", "name", "operation"), operations(), ids=lambda value: str(value)[:40])
def test_the_fake_heeds_parameters_that_exist(service: str, name: str, operation: Operation) -> None:
    shape = service_model(service).operation_model(name).input_shape
    assert set(operation.takes.split()) <= set(shape.members)


def test_the_fake_serves_every_call_of_the_adapter() -> None:
    known = FakeEc2(VirtualClock()).operations
    missing = [(call.service, call.operation) for call in CALLS if call.operation not in known.get(call.service, {})]
    assert missing == []


def test_what_the_fake_does_not_do_is_said() -> None:
    with pytest.raises(ClientError, match="the fake does not know ec2:StopInstances"):
        FakeEc2(VirtualClock()).client("ec2").stop_instances(InstanceIds=["i-00000000000000000"])

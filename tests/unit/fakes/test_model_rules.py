"""A request that AWS's models refuse does not pass a suite, whoever catches the error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.model import Shape

from autoscaler.clock import VirtualClock
from providers.aws.calls import CALLS
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2.transport import session
from tests.model_rules import BadRequestError, Census, compiled

SERVICES = sorted({call.service for call in CALLS})


def client(service: str, census: Census) -> Any:
    """A client of its own on a fake of its own, watched by `census` alone."""
    made = session().client(service)
    made.meta.events.register_first("before-send", FakeEc2(VirtualClock()).wire._send)
    return census.attach(made)


FLEET: dict[str, Any] = {
    "Type": "instant",
    "LaunchTemplateConfigs": [],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
}


@pytest.mark.parametrize(
    ("service", "method", "params", "words"),
    [
        pytest.param("ec2", "create_fleet", FLEET | {"Type": "at once"}, "none of FleetType", id="enum"),
        pytest.param(
            "ec2",
            "create_fleet",
            FLEET | {"OnDemandOptions": {"AllocationStrategy": "cheapest"}},
            ".OnDemandOptions.AllocationStrategy: 'cheapest' is none of",
            id="enum within a structure",
        ),
        pytest.param(
            "ec2",
            "create_launch_template",
            {"LaunchTemplateName": "n" * 129, "LaunchTemplateData": {}},
            ".LaunchTemplateName: 129, and EC2's reference says 3 to 128",
            id="length that the reference alone limits",
        ),
        pytest.param(
            "ec2",
            "create_fleet",
            FLEET | {"LaunchTemplateConfigs": [{"LaunchTemplateSpecification": {"LaunchTemplateName": "a name"}}]},
            "'a name' does not match",
            id="pattern",
        ),
        pytest.param(
            "iam",
            "get_instance_profile",
            {"InstanceProfileName": "n" * 129},
            "129, and instanceProfileNameType has 128 at most",
            id="length",
        ),
        pytest.param(
            "ec2",
            "create_fleet",
            FLEET | {"LaunchTemplateConfigs": [{}] * 51},
            "51, and FleetLaunchTemplateConfigListRequest has 50 at most",
            id="list size",
        ),
        pytest.param("ec2", "describe_images", {"ImageIds": [], "MaxResults": 1}, "", id="what is allowed"),
    ],
)
def test_what_the_models_refuse_is_refused_and_kept(
    service: str, method: str, params: dict[str, Any], words: str
) -> None:
    census = Census()
    watched = client(service, census)
    if not words:
        getattr(watched, method)(**params)
        assert census.violations == []
    else:
        with pytest.raises(BadRequestError) as caught:
            getattr(watched, method)(**params)
        assert words in str(caught.value)
        assert census.violations == [str(caught.value)]
    assert census.calls.total() == 1


@pytest.mark.parametrize("service", SERVICES)
def test_every_pattern_of_the_calls_can_be_checked(service: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    operations = [model.operation_model(call.operation) for call in CALLS if call.service == service]
    for operation in operations:
        assert operation.input_shape is not None
        for shape in _below(operation.input_shape, set()):
            if "pattern" in shape.metadata:
                compiled(shape.metadata["pattern"])


def _below(shape: Shape, seen: set[str]) -> Iterator[Shape]:
    if shape.name in seen:
        return
    seen.add(shape.name)
    yield shape
    members = getattr(shape, "members", None) or {}
    below = [*members.values(), *(getattr(shape, name) for name in ("member", "key", "value") if hasattr(shape, name))]
    for one in below:
        yield from _below(one, seen)

"""Clients make each call once, and say what is missing in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from providers.aws.session import Aws
from providers.errors import PermissionDeniedError
from tests.aws import Rig, request
from tests.fakes.ec2 import INTERNAL_ERROR, THROTTLED, UNAVAILABLE, Fault, refused

SHORT = refused("InsufficientInstanceCapacity", status=500)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(SHORT, id="shortage as a server fault"),
        pytest.param(INTERNAL_ERROR, id="server fault"),
        pytest.param(UNAVAILABLE, id="overload"),
        pytest.param(THROTTLED, id="throttled"),
    ],
)
def test_the_sdk_repeats_nothing(fault: Fault) -> None:
    rig = Rig()
    rig.fake.faults.inject("RunInstances", *[fault] * 3)
    with pytest.raises(rig.aws.ec2.exceptions.ClientError):
        rig.aws.ec2.run_instances(MinCount=1, MaxCount=1)
    assert rig.fake.calls["RunInstances"] == 1


def test_a_shortage_as_a_server_fault_is_a_shortage() -> None:
    rig = Rig()
    rig.fake.faults.inject("RunInstances", SHORT)
    answer = rig.provider.launch(request("a", "b", minimum=2))
    assert [failure.error.kind for failure in answer.failures] == ["Shortage"]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine where nobody has configured AWS."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.mark.parametrize(
    ("aws", "message", "step"),
    [
        pytest.param(Aws(), "no AWS region is configured", "set AWS_REGION", id="no region"),
        pytest.param(Aws("us-east-1", profile="nobody"), "nobody", "correct --profile", id="no such profile"),
        pytest.param(Aws("not a region"), "not a region", "check the region", id="impossible region"),
    ],
)
def test_what_is_missing_is_said(bare: None, aws: Aws, message: str, step: str) -> None:
    with pytest.raises(PermissionDeniedError, match=message) as caught:
        _ = aws.ec2
    assert step in caught.value.next_step

"""One machine that EC2 will not end keeps no other from ending."""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import PermissionDeniedError, RefusedError
from tests.aws import Rig, request
from tests.fakes.ec2 import refused
from tests.fakes.ec2.errors import ApiError


def protect(rig: Rig, protected: str) -> None:
    """Termination protection: EC2 refuses every call that names the machine."""
    whole = rig.fake.operations["ec2"]["TerminateInstances"]

    def run(account: Any, params: Any, *, name: str) -> Any:
        if protected in params["InstanceIds"]:
            raise ApiError("OperationNotPermitted", f"The instance '{protected}' may not be terminated.")
        return whole(account, params, name=name)

    ec2: dict[str, Any] = {**rig.fake.operations["ec2"], "TerminateInstances": run}
    rig.fake.operations = {**rig.fake.operations, "ec2": ec2}


def test_a_protected_machine_fails_alone_and_in_few_calls() -> None:
    rig = Rig()
    ids = [instance.id for instance in rig.provider.launch(request(*(f"n{i}" for i in range(64)))).instances]
    protect(rig, ids[17])
    answer = rig.provider.terminate(ids)
    assert set(answer.terminating) == {*ids} - {ids[17]}
    assert isinstance(answer.failures[ids[17]], RefusedError)
    assert rig.fake.calls["TerminateInstances"] == 13  # one, and two for each halving of 64


def test_missing_permission_is_not_tried_for_each_machine() -> None:
    rig = Rig()
    ids = [instance.id for instance in rig.provider.launch(request("a", "b")).instances]
    rig.fake.faults.inject("TerminateInstances", refused("UnauthorizedOperation", status=403))
    with pytest.raises(PermissionDeniedError):
        rig.provider.terminate(ids)
    assert rig.fake.calls["TerminateInstances"] == 1

"""Systems Manager's parameters, and who is asking (STS)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.requests import Params


def get_parameter(account: Account, params: Params) -> Answer:
    """One parameter."""
    name = params["Name"]
    if name not in account.geography.parameters:
        raise ApiError("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": _parameter(account, name)}


def get_parameters(account: Account, params: Params) -> Answer:
    """Several; those that do not exist are named."""
    known = account.geography.parameters
    found = [_parameter(account, name) for name in params["Names"] if name in known]
    return {"Parameters": found, "InvalidParameters": [name for name in params["Names"] if name not in known]}


def get_caller_identity(account: Account, params: Params) -> Answer:
    """The account and the role."""
    number = account.geography.account
    return {"UserId": "AROA:test", "Account": number, "Arn": f"arn:aws:sts::{number}:assumed-role/foreslice/test"}


def _parameter(account: Account, name: str) -> dict[str, Any]:
    value = account.geography.parameters[name]
    kind = "aws:ec2:image" if value.startswith("ami-") else "text"
    return {"Name": name, "Type": "String", "Value": value, "Version": 1, "DataType": kind}


SSM: Final[Mapping[str, Operation]] = {
    "GetParameter": Operation(get_parameter, "Name"),
    "GetParameters": Operation(get_parameters, "Names"),
}
STS: Final[Mapping[str, Operation]] = {"GetCallerIdentity": Operation(get_caller_identity)}

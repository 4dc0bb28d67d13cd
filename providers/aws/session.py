"""Clients of AWS services: one attempt for each call, short time-outs, and only the calls that calls.py lists.

boto3 would repeat a call that EC2 answered with InsufficientInstanceCapacity (HTTP 500), which takes time; the caller's
back-off is the only one. Nothing happens at import: credentials are read at the first call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.model import OperationModel

from providers.aws.calls import BY_NAME, PARAMETERS
from providers.errors import PermissionDeniedError

# EC2 may take tens of seconds to answer a launch of 100 machines; giving up earlier only makes its outcome unknown.
_CONFIG: Final = Config(
    retries={"total_max_attempts": 1, "mode": "standard"},
    connect_timeout=5,
    read_timeout=60,
    user_agent_extra="foreslice",
)
# The price list API exists in few regions; this one serves the prices of all.
PRICING_REGION: Final = "us-east-1"


class UnlistedCallError(AssertionError):
    """A call that is in no policy; list it in providers/aws/calls.py and in the policies."""


class Aws:
    """One account and region. `endpoint` replaces AWS itself, for tests; `profile` is one of ~/.aws/config."""

    def __init__(self, region: str = "", *, profile: str = "", endpoint: str = "", **credentials: str) -> None:
        # boto3 reads AWS_DEFAULT_REGION only; pods on EKS and most tools have AWS_REGION.
        self._region = region or os.environ.get("AWS_REGION", "")
        self._profile = profile
        self._endpoint = endpoint
        self._credentials = credentials

    @property
    def region(self) -> str:
        """The region of the calls. Raises PermissionDeniedError if none is configured."""
        found = self._region or self._session.region_name
        if not found:
            step = "set AWS_REGION, or region in ~/.aws/config"
            raise PermissionDeniedError("no AWS region is configured", code="NoRegion", next_step=step)
        return str(found)

    @cached_property
    def ec2(self) -> Any:
        """Machines, networks, reservations."""
        return self.client("ec2")

    @cached_property
    def autoscaling(self) -> Any:
        return self.client("autoscaling")

    @cached_property
    def eks(self) -> Any:
        """Clusters and their managed node groups."""
        return self.client("eks")

    @cached_property
    def ssm(self) -> Any:
        """Parameters that name images."""
        return self.client("ssm")

    @cached_property
    def sqs(self) -> Any:
        """Notices."""
        return self.client("sqs")

    @cached_property
    def events(self) -> Any:
        """The rules that send notices."""
        return self.client("events")

    @cached_property
    def sts(self) -> Any:
        """The client of STS, for the caller's account."""
        return self.client("sts")

    @cached_property
    def iam(self) -> Any:
        """Instance profiles."""
        return self.client("iam")

    @cached_property
    def quotas(self) -> Any:
        return self.client("service-quotas")

    @cached_property
    def pricing(self) -> Any:
        return self.client("pricing", PRICING_REGION)

    @cached_property
    def _session(self) -> Any:
        try:
            core = botocore.session.Session(profile=self._profile or None)
            core.register("provide-client-params", _listed)
            return boto3.Session(botocore_session=core, region_name=self._region or None, **self._credentials)
        except BotoCoreError as error:
            step = "correct --profile, or ~/.aws/config"
            raise PermissionDeniedError(str(error), code=type(error).__name__, next_step=step) from error

    def client(self, service: str, region: str = "") -> Any:
        """A new client of a service. Raises PermissionDeniedError if there is no usable configuration."""
        try:
            return self._session.client(
                service, region_name=region or self.region, endpoint_url=self._endpoint or None, config=_CONFIG
            )
        except (BotoCoreError, ValueError) as error:
            step = "check the region and the credentials: aws sts get-caller-identity"
            raise PermissionDeniedError(str(error), code=type(error).__name__, next_step=step) from error


def _listed(model: OperationModel, params: Mapping[str, Any], **_: object) -> None:
    name = (model.service_model.service_name, model.name)
    if name == ("ssm", "GetParameter") and not str(params.get("Name", "")).startswith(PARAMETERS):
        raise UnlistedCallError(f"{name[1]} {params.get('Name')} is under none of {', '.join(PARAMETERS)}")
    if name not in BY_NAME:
        raise UnlistedCallError(f"{name[0]}:{name[1]} is missing in providers/aws/calls.py and in deploy/aws")

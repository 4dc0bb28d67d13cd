"""The fake as a whole: an account, and how calls reach it — over loopback HTTP, or below the SDK without sockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any, Final

from providers.contract import Clock
from tests.fakes.ec2.account import Account
from tests.fakes.ec2.answers import HttpResponse, render, render_error
from tests.fakes.ec2.calls import (
    blocks,
    catalog,
    fleets,
    instances,
    parameters,
    places,
    queues,
    reservations,
    templates,
)
from tests.fakes.ec2.calls.groups import Scaling
from tests.fakes.ec2.calls.operation import Operation
from tests.fakes.ec2.errors import ApiError, unknown_to_the_fake
from tests.fakes.ec2.faults import Faults, Silence
from tests.fakes.ec2.geography import Geography, standard
from tests.fakes.ec2.groups import Groups
from tests.fakes.ec2.machines import PROMPT, Behaviour
from tests.fakes.ec2.rates import Buckets
from tests.fakes.ec2.requests import HttpRequest, Request, understand
from tests.fakes.ec2.sparse import thinned
from tests.fakes.ec2.transport import Wire

OPERATIONS: Final[Mapping[str, Mapping[str, Operation]]] = {
    "ec2": {
        **instances.OPERATIONS,
        **fleets.OPERATIONS,
        **templates.OPERATIONS,
        **places.OPERATIONS,
        **reservations.OPERATIONS,
        **blocks.OPERATIONS,
        **catalog.EC2,
    },
    "events": queues.EVENTS,
    "iam": catalog.IAM,
    "pricing": catalog.PRICING,
    "service-quotas": catalog.QUOTAS,
    "sqs": queues.OPERATIONS,
    "ssm": parameters.SSM,
    "sts": parameters.STS,
}
# Source: AWS Signature Version 4, "requests must be received within five minutes of the time stamp".
_LONGEST_SKEW: Final = timedelta(minutes=5)
# Calls that start machines.
LAUNCHES: Final = ("CreateFleet", "RunInstances", "LaunchInstances", "SetDesiredCapacity")
# Services whose one endpoint serves all regions.
_GLOBAL: Final = frozenset({"iam", "sts", "pricing"})


class FakeEc2:
    """An AWS account for tests. `account` is its state, `groups` its Auto Scaling groups, `faults` what goes wrong,
    `calls` counts what was asked.

    `failed` has the moments of launches that were answered without a machine, by operation. `denied` names actions that
    the caller has no permission for ("ec2:RunInstances"). `rates_apply`: whether the buckets of rates.py do.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        geography: Geography | None = None,
        behaviour: Behaviour = PROMPT,
        rates_apply: bool = True,
        skew: Callable[[], timedelta] = timedelta,
    ) -> None:
        """`skew` is how far the caller's clock is ahead: AWS refuses signatures that are five minutes off."""
        self._skew = skew
        self.account = Account(clock, geography or standard(), behaviour)
        self.groups = Groups(self.account)
        self.faults = Faults()
        self.calls: Counter[str] = Counter()
        self.failed: dict[str, list[datetime]] = {}
        self.denied: set[str] = set()
        self.rates_apply = rates_apply
        self._buckets = Buckets(clock)
        scaling = Scaling(self.groups)
        self.operations: Mapping[str, Mapping[str, Operation]] = {
            **OPERATIONS,
            "autoscaling": scaling.autoscaling,
            "eks": scaling.eks,
        }

    def client(self, service: str) -> Any:
        """A boto3 client of this account, without sockets and without retries."""
        return self.wire.client(service)

    @cached_property
    def wire(self) -> Wire:
        """Where clients that were made elsewhere are attached."""
        return Wire(self)

    def exchange(self, http: HttpRequest) -> HttpResponse | Silence:
        """Answer a request, or do not."""
        number = f"{self.calls.total() + 1:08x}-0000-4000-8000-000000000000"
        try:
            request = understand(http)
        except ApiError as error:
            return render_error(None, error, number)
        self.calls[request.operation] += 1
        answer = self._answer(request, number)
        trial = request.params.get("DryRun", False)
        if request.operation in LAUNCHES and not trial and not _launched(request.operation, answer):
            self.failed.setdefault(request.operation, []).append(self.account.now)
        return answer

    def _answer(self, request: Request, number: str) -> HttpResponse | Silence:
        service = request.model.service_model
        if abs(self._skew()) > _LONGEST_SKEW:
            return render_error(service, ApiError("RequestExpired", "Request has expired."), number)
        fault = self.faults.next(request.operation)
        if fault is None:
            return self._carried_out(request, number)
        if fault.effect:
            self._carried_out(request, number)
        return render_error(service, fault.ending, number) if isinstance(fault.ending, ApiError) else fault.ending

    def _carried_out(self, request: Request, number: str) -> HttpResponse:
        try:
            answer = self._run(request)
            if self.account.behaviour.leaves_out:
                chance = Random(f"{self.account.behaviour.leaves_out}/{number}")
                answer = thinned(request.model, answer, chance)
            return render(request.model, answer, number)
        except ApiError as error:
            return render_error(request.model.service_model, error, number)

    def _run(self, request: Request) -> Mapping[str, Any]:
        operation = self.operations.get(request.service, {}).get(request.operation)
        if operation is None:
            raise unknown_to_the_fake(f"{request.service}:{request.operation}")
        if request.region != self.account.geography.region and request.service not in _GLOBAL:
            raise ApiError("AuthFailure", f"this account has nothing in {request.region}", status=401)
        if self.rates_apply and request.service == "ec2":
            self._buckets.charge(request.operation, request.params)
        action = f"{request.service}:{request.operation}"
        if action in self.denied:
            text = f"You are not authorized to perform this operation: {action}"
            raise ApiError("UnauthorizedOperation", text, status=403)
        self.account.catch_up()
        self.groups.catch_up()
        return operation(self.account, request.params, name=request.operation)


def _launched(operation: str, answer: HttpResponse | Silence) -> bool:
    """Whether the caller learns of machines; who sets a size learns of none, and is not refused."""
    if isinstance(answer, Silence) or answer.status != 200:
        return False
    return operation == "SetDesiredCapacity" or b">i-" in answer.body

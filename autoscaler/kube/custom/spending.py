"""Spending: the account of the spending guards, one object for the whole cluster."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import Field

from autoscaler.kube.custom.objects import custom_object, read_status
from autoscaler.kube.custom.schema import (
    ApiModel,
    Conditions,
    DollarsValue,
    Items,
    Text,
    TimeText,
    dollars,
    moment,
    moment_text,
)
from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import Problems
from autoscaler.model.spending import Spending

# The name of the only object.
CLUSTER: Final = "cluster"
_WITHIN: Final = "WithinGuards"


class SpendingSpec(ApiModel):
    """Nothing to set: the guards are settings of the controller."""


class SpendingStatus(ApiModel):
    """The account at `since`."""

    observed_generation: Annotated[int, Field(ge=0)] = 1
    """The generation of its only spec, which never changes."""
    since: TimeText | None = None
    usd: DollarsValue = "0"
    """Spent on that day (UTC) up to `since`."""
    usd_per_hour: DollarsValue = "0"
    """The rate from `since` on."""
    recent_launches: DollarsValue = "0"
    """Nodes launched and not yet balanced by the allowed rate at `since`."""
    binding: Annotated[Items[Text], Field(max_length=10)] = ()
    """Guards that block launches."""
    conditions: Conditions = ()


def parse_spending(raw: object, problems: Problems | None = None) -> Spending | None:
    """The account; None if it was never written or cannot be read."""
    status = read_status(SpendingStatus, raw, problems)
    if status is None or status.since is None:
        return None
    return Spending(
        since=moment(status.since),
        usd=dollars(status.usd) or Decimal(0),
        usd_per_hour=dollars(status.usd_per_hour) or Decimal(0),
        recent_launches=dollars(status.recent_launches) or Decimal(0),
        binding=status.binding,
        binding_since=next((moment(c.last_transition_time) for c in status.conditions if c.type == _WITHIN), None),
        resource_version=Fields(raw).child("metadata").text("resourceVersion"),
    )


def write_spending(account: Spending) -> dict[str, Any]:
    status = SpendingStatus.model_validate(
        {
            "since": moment_text(account.since),
            "usd": f"{account.usd:f}",
            "usdPerHour": f"{account.usd_per_hour:f}",
            "recentLaunches": f"{account.recent_launches:f}",
            "binding": list(account.binding),
            "conditions": [_within(account)],
        }
    )
    return custom_object("Spending", CLUSTER, spec=SpendingSpec(), status=status, version=account.resource_version)


def _within(account: Spending) -> dict[str, Any]:
    """The condition that is True if no guard blocks a launch."""
    return {
        "type": _WITHIN,
        "observedGeneration": 1,
        "status": "False" if account.binding else "True",
        "reason": "GuardBinds" if account.binding else "NothingWithheld",
        "message": f"raise {', '.join(account.binding)} to launch what waits" if account.binding else "",
        "lastTransitionTime": moment_text(account.binding_since or account.since),
    }

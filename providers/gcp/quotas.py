"""Google's allocation quotas by name: the resource that each one counts, and so the error if it is exhausted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from instance_catalog.dataclass import dataclass
from providers.errors import (
    AcceleratorQuotaError,
    AccountLimitError,
    FamilyQuotaError,
    ProviderError,
    QuotaError,
    RegionQuotaError,
)

PREEMPTIBLE: Final = "PREEMPTIBLE_"
# In messages: Quota 'A2_CPUS' exceeded ..., or with the metric: compute.googleapis.com/cpus_per_vm_family.
_NAMED: Final = re.compile(
    r"(?:quota '|metric name = compute\.googleapis\.com/)(preemptible_|committed_)?([a-z0-9_]+)", re.IGNORECASE
)
# Limit: 24.0 in region us-central1, or dimensions = map[region:us-central1 vm_family:C4]; otherwise: globally.
_WHERE: Final = re.compile(r"(?:\bin region |\bregion:)([a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota by name. `prefix` is PREEMPTIBLE_, COMMITTED_ or "". `region` is where it applies, "" if the message has
    none."""

    prefix: str
    name: str
    region: str = ""

    @property
    def error(self) -> type[ProviderError]:
        """The class of error if the quota is exhausted."""
        known = facts()
        if self.name in known["everywhere"]:
            return AccountLimitError
        if re.fullmatch(known["of_accelerator"], self.name):
            return AcceleratorQuotaError
        if re.fullmatch(known["of_family"], self.name):
            return FamilyQuotaError
        return RegionQuotaError if self.region else QuotaError


def quota_of(message: str) -> Quota | None:
    """The quota that a message of Google names."""
    found, where = _NAMED.search(message), _WHERE.search(message)
    if found is None:
        return None
    return Quota((found[1] or "").upper(), found[2].upper(), where[1] if where is not None else "")


@cache
def facts() -> Mapping[str, Any]:
    """The content of quotas.yaml."""
    found: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "quotas.yaml").read_text(encoding="utf-8"))
    return found

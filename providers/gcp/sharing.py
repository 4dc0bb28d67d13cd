"""Which offerings share a quota of Google's, so that one refusal rests them all and no others.

What a quota counts is in its name, and a machine of the refused offering is counted in it: so machines with the same
accelerator, or of the same family, in the same region are counted in it, too; and so are all machines in a region of
which Google says that its quota of what all need is used up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from instance_catalog.types.clouds import region_of
from providers.contract import OfferingKey
from providers.errors import AcceleratorQuotaError, FamilyQuotaError, ProviderError, RegionQuotaError
from providers.gcp.node_template.groups import Group
from providers.gcp.quotas import PREEMPTIBLE, facts, quota_of


@dataclass(slots=True)
class Exceeded:
    """The quotas that a launch has met, each with the group whose machine it refused."""

    met: list[tuple[ProviderError, Group]] = field(default_factory=list)

    def add(self, error: ProviderError, group: Group) -> None:
        self.met.append((error, group))

    def refuses(self, group: Group) -> ProviderError | None:
        """Why nothing need be asked of this group."""
        return next((error for error, refused in self.met if shares(error, refused, group)), None)


def sharing(error: ProviderError, refused: Group, groups: Iterable[Group]) -> tuple[OfferingKey, ...]:
    """What else of these groups the quota keeps from starting which refused a machine of `refused`."""
    return tuple(
        dict.fromkeys(
            one.offering for one in groups if one.offering != refused.offering and shares(error, refused, one)
        )
    )


def shares(error: ProviderError, refused: Group, other: Group) -> bool:
    """Whether machines of both groups are counted in the quota that refused one of `refused`."""
    region = region_of(refused.ref.zone)
    if isinstance(error, AcceleratorQuotaError):
        alike = bool(_accelerator(refused)) and _accelerator(refused) == _accelerator(other)
    elif isinstance(error, FamilyQuotaError):
        alike = _family(refused) == _family(other)
    elif isinstance(error, RegionQuotaError) and (quota := quota_of(error.message)) is not None:
        alike, region = True, quota.region
    else:
        return False
    return alike and region_of(other.ref.zone) == region and not other.reservation and _counted(error, refused, other)


def _counted(error: ProviderError, refused: Group, other: Group) -> bool:
    """Whether the quota counts machines of the other's capacity type. On-demand machines have one of their own beside a
    PREEMPTIBLE_ one; and that Spot was counted in the plain one says that the project has no other."""
    quota, preemptible = quota_of(error.message), facts()["preemptible"]
    if other.capacity_type == refused.capacity_type:
        return True
    if quota is not None and quota.prefix == PREEMPTIBLE:
        return other.capacity_type in preemptible
    return refused.capacity_type in preemptible


def _accelerator(group: Group) -> str:
    """What tells its accelerator from others; "" where that is not known."""
    known: Mapping[str, str] = facts()["accelerators"]
    kind = next((name for prefix, name in known.items() if group.instance_type.startswith(f"{prefix}-")), "")
    return kind or ",".join(sorted(group.accelerators))


def _family(group: Group) -> str:
    return group.instance_type.partition("-")[0]

"""Finds offerings that share one of Google's quotas, so that one refusal pauses all of them and no others.

The name of a quota contains what it counts, and it counts the machine of the refused offering. So it also counts
machines with the same accelerator, or of the same family, in the same region. A quota of a resource that all machines
need counts all machines in the region that Google's message names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from instance_catalog.dataclass import dataclass, field
from instance_catalog.types.clouds import region_of
from providers.contract import OfferingKey
from providers.errors import AcceleratorQuotaError, FamilyQuotaError, ProviderError, RegionQuotaError
from providers.gcp.node_template.groups import Group
from providers.gcp.quotas import PREEMPTIBLE, facts, quota_of


@dataclass(slots=True)
class Exceeded:
    """The exhausted quotas of a launch, each with the group whose machine it refused."""

    met: list[tuple[ProviderError, Group]] = field(default_factory=list)

    def add(self, error: ProviderError, group: Group) -> None:
        self.met.append((error, group))

    def refuses(self, group: Group) -> ProviderError | None:
        """The reason why the launch requests nothing of this group."""
        return next((error for error, refused in self.met if shares(error, refused, group)), None)


def sharing(error: ProviderError, refused: Group, groups: Iterable[Group]) -> tuple[OfferingKey, ...]:
    """The other offerings of these groups that the quota which refused a machine of `refused` stops as well."""
    return tuple(
        dict.fromkeys(
            one.offering for one in groups if one.offering != refused.offering and shares(error, refused, one)
        )
    )


def shares(error: ProviderError, refused: Group, other: Group) -> bool:
    """True if the quota that refused a machine of `refused` counts machines of both groups."""
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
    """True if the quota counts machines of the other group's capacity type.

    Beside a PREEMPTIBLE_ quota, on-demand machines have a quota of their own. If Google counted a Spot machine in the
    plain quota, the project has no PREEMPTIBLE_ quota.
    """
    quota, preemptible = quota_of(error.message), facts()["preemptible"]
    if other.capacity_type == refused.capacity_type:
        return True
    if quota is not None and quota.prefix == PREEMPTIBLE:
        return other.capacity_type in preemptible
    return refused.capacity_type in preemptible


def _accelerator(group: Group) -> str:
    """The key of the group's accelerator; "" if it is not known."""
    known: Mapping[str, str] = facts()["accelerators"]
    kind = next((name for prefix, name in known.items() if group.instance_type.startswith(f"{prefix}-")), "")
    return kind or ",".join(sorted(group.accelerators))


def _family(group: Group) -> str:
    return group.instance_type.partition("-")[0]

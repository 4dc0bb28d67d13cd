"""Facts about names of attributes: the cloud in which they are published, and their former names."""

from __future__ import annotations

from functools import cache

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents


@dataclass(frozen=True, slots=True)
class RenamedAttribute:
    """An attribute that a driver calls `now`, "domain/identifier", from release `since` on."""

    now: str
    profile: str
    since: str
    source: str

    @property
    def reading(self) -> str:
        """As a selector reads it."""
        domain, _, identifier = self.now.partition("/")
        return f'device.attributes["{domain}"].{identifier}'


@cache
def renamed_attributes() -> FrozenMap[str, RenamedAttribute]:
    """By the name that no release publishes any more, "dra.net/cloudNetwork"."""
    return FrozenMap(
        {
            row["was"]: RenamedAttribute(row["now"], content["profile"], row["since"], row["source"])
            for content in contents("drivers").values()
            for row in content.get("renamed", ())
        }
    )


@dataclass(frozen=True, slots=True)
class RemovedAttribute:
    """An attribute that a driver does not publish from release `since` on, nor its value under another name."""

    profile: str
    since: str
    instead: str


@cache
def removed_attributes() -> FrozenMap[str, RemovedAttribute]:
    """By name, "gpu.nvidia.com/index"."""
    return FrozenMap(
        {
            name: RemovedAttribute(content["profile"], row["since"], row["instead"])
            for content in contents("drivers").values()
            for row in content.get("removed", ())
            for name in row["was"]
        }
    )


@dataclass(frozen=True, slots=True)
class GatedAttribute:
    """An attribute that a driver publishes from release `since` on with its feature gate `gate`, off by default."""

    profile: str
    gate: str
    since: str


@cache
def gated_attributes() -> FrozenMap[str, GatedAttribute]:
    """By name, "gpu.nvidia.com/partition2"; what their values are is not predicted."""
    return FrozenMap(
        {
            f"{content['driver']}/{name}": GatedAttribute(content["profile"], gate, content["gates"][gate]["since"])
            for content in contents("drivers").values()
            for gate, names in content.get("gated_attributes", {}).items()
            for name in names
        }
    )


@cache
def clouds_of_domains() -> FrozenMap[str, str]:
    """The cloud of each domain of attributes that drivers publish on its machines alone."""
    rows = contents("drivers").values()
    return FrozenMap({domain: cloud for row in rows for domain, cloud in row.get("clouds_of_domains", {}).items()})

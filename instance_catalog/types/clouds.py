"""How clouds spell regions, zones and provider ids, from data/clouds. A cloud without a file has any spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents


@dataclass(frozen=True, slots=True)
class CloudNames:
    """Patterns of whole names. The group of `in_region` is the region of a zone. `provider_id` is what begins the
    spec.providerID of a node, before "://". `regular` is how regions are named as a rule."""

    region: re.Pattern[str]
    zone: re.Pattern[str]
    in_region: re.Pattern[str]
    provider_id: str
    regular: re.Pattern[str]


@cache
def cloud_names() -> FrozenMap[str, CloudNames]:
    """By cloud."""
    return FrozenMap({cloud: _names(row) for cloud, row in contents("clouds").items()})


def _names(row: Mapping[str, str]) -> CloudNames:
    keys = ("region", "zone", "in_region", "regular")
    region, zone, in_region, regular = (re.compile(rf"(?:{row[key]})\Z", re.ASCII) for key in keys)
    return CloudNames(region, zone, in_region, row["provider_id"], regular)


def is_regular_region(name: str) -> bool:
    """Whether a cloud may have a region of this name, so that it is no misspelling of another one."""
    return any(names.regular.match(name) for names in cloud_names().values())


@cache
def region_of(zone: str) -> str:
    """us-east-1 of us-east-1a, us-central1 of us-central1-a; what has another form is its own region."""
    found = (names.in_region.match(zone) for names in cloud_names().values())
    return next((match[1] for match in found if match), zone)

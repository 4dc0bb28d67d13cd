"""The listings that the settings ask for: with `process.py` the only place of the controller that names clouds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from autoscaler.catalog_refresh.periodic import Opened
from autoscaler.errors import ConfigurationError
from autoscaler.settings.settings import Settings
from providers.contract import Clock
from providers.listing import Listing


def listings_of(settings: Settings, clock: Clock) -> tuple[Opened, ...]:
    """The listings to read, cloud by cloud; makes no call yet. Raises ConfigurationError where a cloud's extra is
    missing."""
    regions = tuple(partial(_aws, settings, clock, region) for region in settings.sync.aws)
    projects = tuple(partial(_gcp, settings, project) for project in settings.sync.gcp)
    try:
        if regions:
            import providers.aws.sales.listing
        if projects:
            import providers.gcp.listing  # noqa: F401  # Google's clients are an extra; found out now, not at night
    except ModuleNotFoundError as error:
        cloud = "gcp" if (error.name or "").partition(".")[0] == "google" else "aws"
        raise ConfigurationError(
            f"sync.{cloud} cannot be used: {error}", next_step=f"install foreslice[{cloud}]"
        ) from error
    return (*regions, *projects)


def _aws(settings: Settings, clock: Clock, region: str, known: Iterable[str]) -> Listing:
    from providers.aws.sales.listing import AwsListing
    from providers.aws.session import Aws

    return AwsListing(Aws(region, profile=settings.aws.profile), clock, spot=settings.sync.spot)


def _gcp(settings: Settings, project: str, known: Iterable[str]) -> Listing:
    from providers.gcp.listing import GcpListing

    prices = Path(settings.sync.gcp_prices) if settings.sync.gcp_prices else None
    return GcpListing(project, known=frozenset(known), prices=prices)

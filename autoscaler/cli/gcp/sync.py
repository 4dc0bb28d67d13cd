"""`foreslice catalog sync gcp`: imports the listing of a project of Google Cloud."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cli.catalog.edit import present
from autoscaler.cli.catalog.sync import removals_option, sync_listing, write_option
from autoscaler.cli.common.choices import chosen_catalog
from autoscaler.cli.common.commands import below_option, into_option


@click.command("gcp")
@click.option("--project", required=True, metavar="ID", help="Project whose zones and machine types are listed.")
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Prices instead of those of the billing catalogue; see docs/catalog.md.",
)
@click.option("--endpoint", default="", hidden=True, help="Instead of Google, for tests.")
@into_option
@write_option
@removals_option
@below_option
def sync_gcp(
    *,
    project: str,
    prices: Path | None,
    endpoint: str,
    target: Path,
    write: bool,
    accept_removals: bool,
    directories: tuple[Path, ...],
) -> None:
    """Needs the role roles/compute.viewer and, without --prices, the Cloud Billing API. Prices of the catalogue are
    sums of what is billed apart, for some families only, and without local SSDs: give your own where it matters.

    \b
    Try:
      foreslice catalog sync gcp --project my-project --into my-types/
      foreslice catalog sync gcp --project my-project --prices prices.yaml --into my-types/ --write
    """
    from providers.gcp.listing import GcpListing

    known = [machine.name for machine in chosen_catalog(present(directories, target)) if machine.cloud == "gcp"]
    listing = GcpListing(project, known=known, prices=prices, endpoint=endpoint)
    sync_listing(listing, target, directories, write=write, accept_removals=accept_removals)

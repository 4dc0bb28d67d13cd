"""`foreslice catalog sync`: what a cloud lists, merged into a directory of catalog files after it was shown."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autoscaler.catalog_refresh.sync import Synced, layers_of, synced
from autoscaler.cli.catalog.diff import print_changes
from autoscaler.cli.catalog.edit import present
from autoscaler.cli.common.choices import chosen_catalog
from autoscaler.cli.common.commands import below_option, into_option
from autoscaler.cli.common.output import print_table
from autoscaler.cli.common.terminal import show_progress
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from providers.errors import ProviderError
from providers.listing import Listing, Progress

_write_option = click.option("--write", is_flag=True, help="Write what was shown, as synced-CLOUD-SCOPE.yaml.")
_removals_option = click.option(
    "--accept-removals", is_flag=True, help="Believe a listing that lost more than 20 % of its types."
)


@click.group("sync")
def sync() -> None:
    """Reads only; nothing is launched or bought.

    What the cloud says is shown first, and kept with --write in a file that the sync alone owns. Whatever people wrote
    or nodes taught has a higher priority and stays in force; where the cloud says otherwise, that is listed. An
    interrupted sync continues where it stopped if it is started again within an hour.
    """


@sync.command("aws")
@click.option("--region", default="", metavar="REGION", help="[default: as the AWS command line]")
@click.option("--profile", default="", metavar="NAME", help="Profile of ~/.aws/config.")
@click.option("--no-spot", is_flag=True, help="Leave out spot prices, which change by the hour.")
@click.option("--endpoint", default="", hidden=True, help="Instead of AWS, for tests.")
@into_option
@_write_option
@_removals_option
@below_option
def sync_aws(
    region: str,
    profile: str,
    no_spot: bool,
    endpoint: str,
    target: Path,
    write: bool,
    accept_removals: bool,
    directories: tuple[Path, ...],
) -> None:
    """Types with accelerators of an AWS region: sizes, zones, how they are sold, spot and on-demand prices.

    Needs ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory and
    pricing:GetProducts.

    \b
    Try:
      foreslice catalog sync aws --region us-east-1 --into my-types/
      foreslice catalog sync aws --region us-east-1 --into my-types/ --write
    """
    from providers.aws.sales.listing import AwsListing
    from providers.aws.session import Aws

    aws = Aws(region, profile=profile, endpoint=endpoint)
    _sync(
        AwsListing(aws, SystemClock(), spot=not no_spot),
        target,
        directories,
        write=write,
        accept_removals=accept_removals,
    )


@sync.command("gcp")
@click.option("--project", required=True, metavar="ID", help="Project whose zones and machine types are listed.")
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Prices instead of those of the billing catalogue; see docs/catalog.md.",
)
@click.option("--endpoint", default="", hidden=True, help="Instead of Google, for tests.")
@into_option
@_write_option
@_removals_option
@below_option
def sync_gcp(
    project: str,
    prices: Path | None,
    endpoint: str,
    target: Path,
    write: bool,
    accept_removals: bool,
    directories: tuple[Path, ...],
) -> None:
    """Machine types with accelerators of a Google Cloud project: sizes, zones, and prices from the billing catalogue.

    Needs the role roles/compute.viewer and, without --prices, the Cloud Billing API. Prices of the catalogue are sums
    of what is billed apart, for some families only, and without local SSDs: give your own where it matters.

    \b
    Try:
      foreslice catalog sync gcp --project my-project --into my-types/
      foreslice catalog sync gcp --project my-project --prices prices.yaml --into my-types/ --write
    """
    from providers.gcp.listing import GcpListing

    known = [machine.name for machine in chosen_catalog(present(directories, target)) if machine.cloud == "gcp"]
    listing = GcpListing(project, known=known, prices=prices, endpoint=endpoint)
    _sync(listing, target, directories, write=write, accept_removals=accept_removals)


def _sync(listing: Listing, target: Path, directories: tuple[Path, ...], *, write: bool, accept_removals: bool) -> None:
    try:
        found = synced(
            listing,
            SystemClock(),
            directory=target,
            layers=layers_of((*directories, target)),
            accept_removals=accept_removals,
            told=_told,
        )
    except ProviderError as error:
        raise BadInputError(f"{listing.cloud}: {error.message}", next_step=error.next_step) from error
    click.echo("", err=True)
    _print_notes(found)
    if not print_changes(found.before, found.after):
        click.echo("no fact changes")
    if write:
        found.write()
        click.echo(f"{found.path} is written")
    elif found.changed:
        click.echo(f"\nnothing is written; --write keeps it in {found.path}")


def _told(step: str, progress: Progress) -> None:
    """Progress on one line of a terminal, else only the end of each step."""
    text = f"{step}: {len(progress.rows[step])}"
    if sys.stderr.isatty():
        show_progress(text)
    elif step in progress.done:
        click.echo(text, err=True)


def _print_notes(found: Synced) -> None:
    for note in found.merged.notes:
        click.echo(f"note: {note}", err=True)
    if found.merged.gone:
        click.echo(f"no longer listed: {', '.join(found.merged.gone)}\n")
    if found.merged.conflicts:
        click.echo("The cloud says otherwise; the catalog's value stays in force:\n")
        rows = [(c.type_name, c.field, c.theirs, c.ours) for c in found.merged.conflicts]
        print_table(("type", "field", "cloud", "catalog"), rows)
        click.echo("")

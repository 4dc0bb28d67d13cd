"""`foreslice catalog sync aws`: imports the listing of an AWS region."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cli.catalog.sync import removals_option, sync_listing, write_option
from autoscaler.cli.common.commands import below_option, into_option
from autoscaler.clock import SystemClock


@click.command("aws")
@click.option("--region", default="", metavar="REGION", help="[default: as the AWS command line]")
@click.option("--profile", default="", metavar="NAME", help="Profile of ~/.aws/config.")
@click.option("--no-spot", is_flag=True, help="Leave out spot prices, which change by the hour.")
@click.option("--endpoint", default="", hidden=True, help="Instead of AWS, for tests.")
@into_option
@write_option
@removals_option
@below_option
def sync_aws(
    *,
    region: str,
    profile: str,
    no_spot: bool,
    endpoint: str,
    target: Path,
    write: bool,
    accept_removals: bool,
    directories: tuple[Path, ...],
) -> None:
    """Needs ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory and
    pricing:GetProducts.

    \b
    Try:
      foreslice catalog sync aws --region us-east-1 --into my-types/
      foreslice catalog sync aws --region us-east-1 --into my-types/ --write
    """
    from providers.aws.sales.listing import AwsListing
    from providers.aws.session import Aws

    aws = Aws(region, profile=profile, endpoint=endpoint)
    sync_listing(
        AwsListing(aws, SystemClock(), spot=not no_spot),
        target,
        directories,
        write=write,
        accept_removals=accept_removals,
    )

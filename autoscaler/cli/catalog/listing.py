"""`foreslice catalog list` and `show`: print the catalog."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cli.catalog.origins import COLUMNS as ORIGIN_COLUMNS
from autoscaler.cli.catalog.origins import origin_data, origin_rows
from autoscaler.cli.catalog.view import COLUMNS, WIDE_COLUMNS, as_data, as_row, as_sheet, as_wide_row
from autoscaler.cli.common.choices import chosen_catalog, chosen_type
from autoscaler.cli.common.commands import catalog_option
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.files.loader import value_origins
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

SORTS = ("name", "price", "memory", "count", "vcpu", "accelerator")


@click.command("list")
@click.option("--accelerator", metavar="NAME", help="Part of an accelerator's name: H100, l40s, trainium, tpu-v6e.")
@click.option("--cloud", metavar="CLOUD", help="aws, gcp, or a cloud of your own files.")
@click.option("--min-memory", metavar="QUANTITY", help="Minimum memory of one accelerator, such as 40Gi.")
@click.option("--sort", type=click.Choice(SORTS), default="name", show_default=True, help="Unpriced types come last.")
@catalog_option
@output_option("wide")
def list_types(
    accelerator: str | None,
    cloud: str | None,
    min_memory: str | None,
    sort: str,
    directories: tuple[Path, ...],
    output: str,
) -> None:
    """Prices are on-demand list prices in one region; types without a price are never bought; add a price with an
    overlay. MEMORY/ACC is what the driver reports (~ where only the cloud's figure is known). `-o wide` adds the
    value of the label foreslice.dev/accelerator, the architecture and how a type is sold.

    \b
    Try:
      foreslice catalog list --accelerator H100 --sort price
      foreslice catalog list --cloud aws --min-memory 40Gi
      foreslice catalog list --catalog my-types/ -o json
    """
    opened = chosen_catalog(directories)
    _check_known(opened, accelerator=accelerator, cloud=cloud)
    found = opened.query(accelerator=accelerator, cloud=cloud, min_memory=_quantity(min_memory), sort=sort)
    match output:
        case "table":
            print_table(COLUMNS, [as_row(instance_type) for instance_type in found])
        case "wide":
            print_table(WIDE_COLUMNS, [as_wide_row(instance_type) for instance_type in found])
        case _:
            print_data([as_data(instance_type) for instance_type in found], output)
    if not found:
        click.echo("no instance type meets all conditions", err=True)


@click.command("show")
@click.argument("name", metavar="TYPE")
@click.option("--provenance", is_flag=True, help="For every value, the file and line that won, and what it overrides.")
@catalog_option
@output_option()
def show_type(*, name: str, provenance: bool, directories: tuple[Path, ...], output: str) -> None:
    """\b
    Try:
      foreslice catalog show p5.48xlarge
      foreslice catalog show n1-standard-8+1xnvidia-tesla-t4 -o yaml
      foreslice catalog show p5.48xlarge --provenance --catalog my-types/
    """
    instance_type = chosen_type(name, chosen_catalog(directories))
    if provenance:
        _print_origins(instance_type, directories, output)
    elif output == "table":
        print_table(("field", "value", "source"), as_sheet(instance_type))
    else:
        print_data(as_data(instance_type), output)


def _print_origins(instance_type: InstanceType, directories: tuple[Path, ...], output: str) -> None:
    origins = value_origins(instance_type.name, extra_dirs=directories, now=SystemClock().now())
    if output == "table":
        print_table(ORIGIN_COLUMNS, origin_rows(instance_type, origins))
    else:
        print_data(origin_data(instance_type, origins), output)


def _check_known(opened: Catalog, *, accelerator: str | None, cloud: str | None) -> None:
    """A name that nothing in the catalog has is more likely mistyped than a question."""
    clouds = sorted({instance_type.cloud for instance_type in opened})
    if cloud is not None and cloud not in clouds:
        step = did_you_mean(cloud, clouds, f"the clouds are {', '.join(clouds)}")
        raise BadInputError(f"no instance type of cloud {cloud!r}", next_step=step)
    if accelerator is not None and not opened.query(accelerator=accelerator):
        names = sorted({name for a in opened.accelerators.values() for name in (a.key, a.model)})
        step = did_you_mean(accelerator, names, "`foreslice catalog list --sort accelerator` shows all", most=3)
        raise BadInputError(f"no accelerator is called {accelerator!r}", next_step=step)


def _quantity(text: str | None) -> Quantity | None:
    if text is None:
        return None
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise click.BadParameter(
            f"{text!r} is not a quantity; write it like 40Gi", param_hint="--min-memory"
        ) from error

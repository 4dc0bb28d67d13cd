"""`foreslice catalog`: what can be bought, and whether catalog files are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autoscaler.cli.catalog.add import add
from autoscaler.cli.catalog.diff import diff, export
from autoscaler.cli.catalog.edit import edit, set_values
from autoscaler.cli.catalog.import_probe import import_probe
from autoscaler.cli.catalog.learn import learn
from autoscaler.cli.catalog.sync import sync
from autoscaler.cli.catalog.verify import verify
from autoscaler.cli.common.command_group import Group
from autoscaler.cli.common.options import catalog_option
from autoscaler.cli.common.output import output_option, print_data, print_table

if TYPE_CHECKING:
    from instance_catalog.kubernetes.quantity import Quantity
    from instance_catalog.types.catalog import Catalog
    from instance_catalog.types.instance_type import InstanceType

SORTS = ("name", "price", "memory", "count", "vcpu", "accelerator")


@click.group(cls=Group)
def catalog() -> None:
    """List, show, check and change the catalog of instance types.

    The catalog is data: directories given with --catalog add types and correct facts or prices. Their files come from
    you (add, set, edit), from nodes (import, learn, verify) and from clouds (sync). See docs/catalog.md.
    """


for _command in (add, set_values, edit, learn, sync, verify, import_probe, diff, export):
    catalog.add_command(_command)


@catalog.command("list")
@click.option("--accelerator", metavar="NAME", help="Part of an accelerator's name: H100, l40s, trainium, tpu-v6e.")
@click.option("--cloud", metavar="CLOUD", help="aws, gcp, or a cloud of your own files.")
@click.option("--min-memory", metavar="QUANTITY", help="Least memory of one accelerator, such as 40Gi.")
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
    """List instance types.

    Prices are on-demand list prices in one region; types without one are never bought until an overlay prices them.
    MEMORY/ACC is what the driver reports (~ where only the cloud's figure is known). `-o wide` adds the architecture
    and how a type is sold.

    \b
    Try:
      foreslice catalog list --accelerator H100 --sort price
      foreslice catalog list --cloud aws --min-memory 40Gi
      foreslice catalog list --catalog my-types/ -o json
    """
    from autoscaler.cli.catalog.view import COLUMNS, WIDE_COLUMNS, as_data, as_row, as_wide_row

    opened = _opened(directories)
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


@catalog.command("show")
@click.argument("name", metavar="TYPE")
@click.option("--provenance", is_flag=True, help="For every value, the file and line that won, and what it overrides.")
@catalog_option
@output_option()
def show_type(name: str, provenance: bool, directories: tuple[Path, ...], output: str) -> None:
    """Show everything known about an instance type, and where it is known from.

    \b
    Try:
      foreslice catalog show p5.48xlarge
      foreslice catalog show n1-standard-8+1xnvidia-tesla-t4 -o yaml
      foreslice catalog show p5.48xlarge --provenance --catalog my-types/
    """
    from autoscaler.cli.catalog.view import as_data, as_sheet
    from autoscaler.errors import BadInputError
    from instance_catalog.types.catalog import UnknownInstanceTypeError

    try:
        instance_type = _opened(directories).get(name)
    except UnknownInstanceTypeError as error:
        raise BadInputError(str(error)) from error
    if provenance:
        _print_origins(instance_type, directories, output)
    elif output == "table":
        print_table(("field", "value", "source"), as_sheet(instance_type))
    else:
        print_data(as_data(instance_type), output)


def _print_origins(instance_type: InstanceType, directories: tuple[Path, ...], output: str) -> None:
    from autoscaler.cli.catalog.origins import COLUMNS, origin_data, origin_rows
    from autoscaler.clock import SystemClock
    from instance_catalog.files.loader import value_origins

    origins = value_origins(instance_type.name, extra_dirs=directories, now=SystemClock().now())
    if output == "table":
        print_table(COLUMNS, origin_rows(instance_type, origins))
    else:
        print_data(origin_data(instance_type, origins), output)


@catalog.command("validate")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def validate(directory: Path | None) -> None:
    """Check the shipped catalog and, over it, the files of a directory.

    Every defect is reported at once, with file, line, field, what was found and what is allowed; exit code 1 then.
    Overlays that have expired are checked as well. They are named, and so are overlays that contradict each other with
    the same priority.

    \b
    Try:
      foreslice catalog validate my-types/
    """
    from autoscaler.cli.catalog.selectors import selector_problems
    from autoscaler.errors import BadInputError
    from instance_catalog.files.findings import CatalogError
    from instance_catalog.files.loader import directory_layers

    opened = _opened((directory,) if directory else (), with_expired=True)
    if wrong := tuple(selector_problems(directory_layers(directory))) if directory else ():
        raise BadInputError(str(CatalogError(wrong)))
    for note in _notes(directory) if directory else ():
        click.echo(f"note: {note}", err=True)
    click.echo(f"{len(opened.types)} instance types, {len(opened.accelerators)} accelerators: no defects")


def _notes(directory: Path) -> Iterator[str]:
    """What is right in a directory, and yet may not be what its author wants."""
    from autoscaler.clock import SystemClock
    from instance_catalog.files.loader import directory_layers, shipped_layers
    from instance_catalog.files.merging import disputes_of

    now = SystemClock().now()
    layers = directory_layers(directory)
    for layer in layers:
        if layer.expires is not None and layer.expires <= now:
            yield f"{layer.name} expired at {layer.expires:%Y-%m-%d %H:%M}Z and does not count"
    for dispute in disputes_of([*shipped_layers(), *layers], now=now):
        won, lost = dispute.won, dispute.lost
        yield (
            f"{dispute.field} of {dispute.name} is {won.value} in {won.file}:{won.line}, which counts because its name "
            f"comes later, and {lost.value} in {lost.file}:{lost.line}; give one of them a higher priority"
        )


def _opened(directories: tuple[Path, ...], *, with_expired: bool = False) -> Catalog:
    from autoscaler.clock import SystemClock
    from autoscaler.errors import BadInputError
    from instance_catalog.files.findings import CatalogError
    from instance_catalog.files.loader import load_catalog

    try:
        return load_catalog(extra_dirs=directories, now=None if with_expired else SystemClock().now())
    except CatalogError as error:
        raise BadInputError(str(error)) from error


def _check_known(opened: Catalog, *, accelerator: str | None, cloud: str | None) -> None:
    """A name that nothing in the catalog has is more likely mistyped than a question."""
    from autoscaler.errors import BadInputError
    from instance_catalog.spelling import did_you_mean

    clouds = sorted({instance_type.cloud for instance_type in opened})
    if cloud is not None and cloud not in clouds:
        step = did_you_mean(cloud, clouds, f"the clouds are {', '.join(clouds)}")
        raise BadInputError(f"no instance type of cloud {cloud!r}", next_step=step)
    if accelerator is not None and not opened.query(accelerator=accelerator):
        names = sorted({name for a in opened.accelerators.values() for name in (a.key, a.model)})
        step = did_you_mean(accelerator, names, "`foreslice catalog list --sort accelerator` shows all", most=3)
        raise BadInputError(f"no accelerator is called {accelerator!r}", next_step=step)


def _quantity(text: str | None) -> Quantity | None:
    from instance_catalog.kubernetes.quantity import Quantity, QuantityError

    if text is None:
        return None
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise click.BadParameter(
            f"{text!r} is not a quantity; write it like 40Gi", param_hint="--min-memory"
        ) from error

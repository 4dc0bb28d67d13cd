"""`foreslice catalog validate`: checks catalog files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from autoscaler.cli.catalog.files import selector_problems
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.files.findings import CatalogError
from instance_catalog.files.loader import directory_layers, load_catalog, shipped_layers
from instance_catalog.files.merging import disputes_of


@click.command("validate")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def validate(directory: Path | None) -> None:
    """Reports all defects in one run, each with file, line, field, what was found and what is allowed; the exit code is
    then 1. Expired overlays are checked as well, and listed; so are overlays that have the same priority and contradict
    each other.

    \b
    Try:
      foreslice catalog validate my-types/
    """
    try:
        opened = load_catalog(extra_dirs=(directory,) if directory else (), now=None)  # expired overlays, too
    except CatalogError as error:
        raise BadInputError(str(error)) from error
    if wrong := tuple(selector_problems(directory_layers(directory))) if directory else ():
        raise BadInputError(str(CatalogError(wrong)))
    for note in _notes(directory) if directory else ():
        click.echo(f"note: {note}", err=True)
    click.echo(f"{len(opened.types)} instance types, {len(opened.accelerators)} accelerators: no defects")


def _notes(directory: Path) -> Iterator[str]:
    """Notes about a directory whose files are valid, but may not have the effect that their author wants."""
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

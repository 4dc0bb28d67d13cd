"""`foreslice catalog sync`: shows a cloud's listing and merges it into a directory of catalog files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autoscaler.catalog_refresh.sync import Synced, layers_of, synced
from autoscaler.cli.catalog.diff import print_changes
from autoscaler.cli.common.commands import LazyGroup
from autoscaler.cli.common.output import print_table
from autoscaler.cli.common.terminal import show_progress
from autoscaler.clock import SystemClock
from autoscaler.composition.commands import SYNC_COMMANDS
from autoscaler.errors import BadInputError
from providers.errors import ProviderError
from providers.listing import Listing, Progress

write_option = click.option("--write", is_flag=True, help="Write what was shown, as synced-CLOUD-SCOPE.yaml.")
removals_option = click.option(
    "--accept-removals", is_flag=True, help="Believe a listing that lost more than 20 % of its types."
)


@click.group("sync", cls=LazyGroup, lazy=SYNC_COMMANDS)
def sync() -> None:
    """Reads only; nothing is launched or bought.

    It shows what the cloud lists. With --write it saves this in a file that only the sync writes. Facts that people
    wrote or that nodes published have a higher priority and stay in use; the command lists where the cloud differs from
    them. An interrupted sync continues where it stopped if you start it again within an hour.
    """


def sync_listing(
    listing: Listing, target: Path, directories: tuple[Path, ...], *, write: bool, accept_removals: bool
) -> None:
    """Shows the changes of a listing, and writes them with `write`."""
    try:
        found = synced(
            listing,
            SystemClock(),
            directory=target,
            layers=layers_of((*directories, target)),
            accept_removals=accept_removals,
            on_page=_print_progress,
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


def _print_progress(step: str, progress: Progress) -> None:
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

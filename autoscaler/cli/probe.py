"""`foreslice probe`: reads the facts of a GPU node into a record that the catalog can import."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cli.common.output import print_data
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.probe.read_nvml import probe as read
from instance_catalog.probe.record import ProbeError


@click.command()
@click.option(
    "--host-root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("/"),
    show_default=True,
    help="Where the node's /proc and /sys are; in a container, where its root is mounted.",
)
@click.option("-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="Form.")
def probe(host_root: Path, output: str) -> None:
    """Reads GPUs, MIG profiles, NVLinks, the PCI tree and network cards.

    Run it on a node of the type, or apply deploy/probe-job.yaml. It changes nothing. Values that the driver does not
    report, or that the process may not read, are left out, and the record lists them; MIG placements need root. See
    docs/probe.md.

    \b
    Try:
      sudo foreslice probe > probe.yaml
      foreslice catalog import probe.yaml --as my.type --cloud aws
    """
    today = SystemClock().now().date().isoformat()
    try:
        record = read(taken_on=today, host_root=host_root)
    except ProbeError as error:
        raise BadInputError(str(error), next_step=error.next_step) from error
    for note in record.notes:
        click.echo(f"note: {note}", err=True)
    print_data(record.model_dump(mode="json", by_alias=True, exclude_none=True), output)

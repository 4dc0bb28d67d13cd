"""`foreslice blocks find` for machine types of Google Cloud: calendar mode, of which Google names no price."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from autoscaler.cli.common.commands import as_input_error
from autoscaler.cli.common.output import print_data, print_table
from autoscaler.errors import BadInputError
from providers.contract import Clock
from providers.market import CapacityQuery

_COLUMNS: Final = ("zone", "starts", "ends", "hours", "count")


def find_calendar(query: CapacityQuery, *, region: str, clock: Clock, output: str) -> None:
    """Print what Google recommends, and the command that reserves it. Raises BadInputError."""
    if not region:
        raise BadInputError("calendar capacity is found region by region", next_step="give --region, as us-central1")
    # With google-cloud-compute; `--help` needs none of it.
    from autoscaler.composition.gcp import calendar_advice

    with as_input_error():
        found = calendar_advice(query, region=region, now=clock.now())
    commands = [window.command for window in found.windows]
    if output != "table":
        rows = [
            {
                "zone": window.zone,
                "instanceType": query.instance_type,
                "count": query.count,
                "startsAt": window.starts_at.isoformat(),
                "endsAt": window.ends_at.isoformat(),
                "command": line,
            }
            for window, line in zip(found.windows, commands, strict=True)
        ]
        print_data({"windows": rows, "elsewhere": dict(found.elsewhere)}, output)
        return
    if found.windows:
        print_table(_COLUMNS, [_row(window.zone, window.starts_at, window.ends_at, query) for window in found.windows])
    else:
        click.echo(f"Google recommends nothing in {region}; try fewer machines, other hours or --within more days")
    if found.elsewhere:
        click.echo()
        print_table(("zone", "not recommended because"), sorted(found.elsewhere.items()))
    for line in commands:
        click.echo(
            "\nIt is paid for from its start on, and Google may not let it be withdrawn once it has approved it:"
        )
        click.echo(f"  {line}")


def _row(zone: str, starts_at: datetime, ends_at: datetime, query: CapacityQuery) -> tuple[str, ...]:
    hours = (ends_at - starts_at).total_seconds() / 3600
    return zone, f"{starts_at:%a %d %b %Y %H:%MZ}", f"{ends_at:%a %d %b %Y %H:%MZ}", f"{hours:.0f}", str(query.count)

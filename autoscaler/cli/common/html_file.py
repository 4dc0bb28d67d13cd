"""A page written to a file that opens in a browser without a server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.errors import BadInputError
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from instance_catalog.frozen_map import EMPTY


def write_page(
    file: Path, snapshot: Snapshot, plan: Plan, now: datetime, *, title: str, helping: Mapping[str, str] = EMPTY
) -> None:
    """The status page of a plan; `helping` are changes by pod. Raises BadInputError where it cannot be written."""
    from autoscaler.serve.html import one_file

    if not file.parent.is_dir():
        step = "create it, or choose one that is there"
        raise BadInputError(f"{file}: there is no directory {file.parent}", next_step=step)
    replace_file(file, one_file(snapshot, plan, now, title=title, helping=helping))
    click.echo(f"{file} is written; open it in a browser", err=True)

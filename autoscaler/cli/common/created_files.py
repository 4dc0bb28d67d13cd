"""The option that writes the objects which the changes below a plan have somebody create."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.cli.common.commands import Command
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.common.output import yaml_text
from autoscaler.errors import BadInputError

if TYPE_CHECKING:  # at runtime imported only where there is something to advise
    from autoscaler.advice.trial import Advice


def _new_file(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """Refuses a file that exists, before anything is planned: it may be one of the manifests."""
    if file is not None and file.is_file():
        raise BadInputError(f"--write-objects {file}: the file exists", next_step="name a new file, or remove this one")
    return file


def write_objects_option(command: Command) -> Command:
    return click.option(
        "--write-objects",
        "objects",
        callback=_new_file,
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Also write the CapacityPools, CapacityBlocks and node templates that the smallest changes create, as "
        "they were tried, to a new file. Where only you know a value, the file has a placeholder such as <ZONE>.",
    )(command)


def objects_note(found: Decided, helping: Mapping[str, Advice]) -> list[str]:
    """The note that a command writes the objects of the changes; none where they create none."""
    kinds = list(dict.fromkeys(one["kind"] for one in _objects(found, helping)))
    named = " and ".join(filter(None, (", ".join(kinds[:-1]), *kinds[-1:])))
    return [f"--write-objects FILE writes {named} as tried"] if kinds else []


def write_objects(file: Path, found: Decided, helping: Mapping[str, Advice]) -> None:
    """Writes the objects, with a comment about what is left to do, and says on stderr what was written."""
    from autoscaler.report.advised.created_objects import MEANINGS, placeholders

    written = _objects(found, helping)
    if not written:
        click.echo(f"{file} is not written: no change that was found creates an object", err=True)
        return
    left = placeholders(written)
    lines = [f"#   {name}: {MEANINGS[name]}" for name in left]
    head = ["# The objects of the smallest changes, as a plan tried them. Its other steps are yours."]
    head += ["# Fill in first:", *lines] if left else []
    replace_file(file, "\n".join([*head, "---\n".join(["", *map(yaml_text, written)])]))
    filling = f"fill in {', '.join(left)}, and " if left else ""
    click.echo(f"{file} is written; {filling}give it with -f beside the manifests", err=True)


def _objects(found: Decided, helping: Mapping[str, Advice]) -> list[dict[str, Any]]:
    if not helping:
        return []
    from autoscaler.report.advised.created_objects import created_objects

    return created_objects(helping.values(), found.snapshot)

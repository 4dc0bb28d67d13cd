"""`foreslice catalog add`, `edit` and `set`: catalog files that users write, checked before they are saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from autoscaler.cli.catalog.files import defects, edited, replace_file, without_effect
from autoscaler.cli.common.choices import chosen_catalog, chosen_type
from autoscaler.cli.common.commands import below_option, into_option
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.diagnostic import Path as Field
from instance_catalog.files.editing import (
    EditError,
    EntryName,
    Header,
    is_changed,
    new_document,
    only_changes,
    value_of,
    with_values,
)
from instance_catalog.files.file_entry import type_entry
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType, InstanceType

_RESOURCE_MAPS = frozenset({"allocatable", "extendedResources"})  # their keys are names of resources
_PRICE = "price"


@click.command("set")
@click.argument("name", metavar="TYPE")
@click.argument("assignments", metavar="FIELD=VALUE...", nargs=-1, required=True)
@click.option("--reason", required=True, metavar="TEXT", help="Why the value differs; written to the file.")
@click.option(
    "--expires",
    default="",
    metavar="WHEN",
    help="2026-12-31, or 2026-12-31T11:30:00Z. From then on the overlay does not apply.",
)
@click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    help="Of several overlays, the one with the highest priority wins. Default: 0.",
)
@into_option
@below_option
def set_values(
    name: str,
    assignments: tuple[str, ...],
    reason: str,
    expires: str,
    priority: int | None,
    target: Path,
    directories: tuple[Path, ...],
) -> None:
    """FIELD is a field of catalog files, such as vcpu or allocatable.memory. price sets the on-demand price where the
    list price is from, price.PLACE that of a zone or region, price.PLACE.spot that of another capacity type. VALUE is
    YAML.

    Each field gets a file of its own, which a later set of the same field changes; comments in it stay. Nothing is
    written unless the whole catalog is valid with it.

    \b
    Try:
      foreslice catalog set p5.48xlarge price.us-east-1a=31.5 --reason 'contract 7' --into my-types/
      foreslice catalog set p5.48xlarge price.spot=20 --reason trial --expires 2027-01-01 --into my-types/
      foreslice catalog set p5en.48xlarge allocatable.memory=1960Gi --reason 'seen on a node' --into my-types/
      foreslice catalog set nvidia-h200 memory=143771Mi --reason 'driver 580' --into my-types/
    """
    opened = chosen_catalog(present(directories, target))
    entry = _entry_name(name, opened)
    today = SystemClock().now().date().isoformat()
    header = Header(reason=reason, expires=expires, priority=priority)
    for assignment in assignments:
        field, value = _assigned(assignment, entry, opened, today)
        path = target / f"{file_name(entry.name)}.{file_name(assignment.partition('=')[0])}.yaml"
        try:
            text = with_values(_text(path), entry, {field: value}, header)
        except EditError as error:
            raise BadInputError(f"{path}: {error}") from error
        wrong = defects(path, text, directories)
        if wrong:
            raise BadInputError(
                f"{assignment} is not set:\n{wrong}", next_step="`foreslice catalog set --help` has examples"
            )
        replace_file(path, text)
        dotted = ".".join(map(str, field))
        click.echo(f"{path}: {dotted} of {entry.name}")
        if why := without_effect(path, text, directories, entry.name, dotted):
            click.echo(f"note: this does not count: {why}", err=True)


@click.command("edit")
@click.argument("what", metavar="TYPE|FILE")
@click.option(
    "--into",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="For a TYPE: directory of your catalog files.",
)
@below_option
def edit(what: str, target: Path | None, directories: tuple[Path, ...]) -> None:
    """If you edit a type, only the fields that you change are written, to TYPE.yaml in --into, with your comments on
    them. If --into already has a TYPE.yaml, that file is opened. A field that you delete keeps its value; null makes it
    unknown.

    The command checks the file together with the whole catalog and then replaces it in one step. If something is wrong,
    it shows the errors and lets you edit again; if you give up, your text stays in a temporary file.

    \b
    Try:
      foreslice catalog edit my-types/p5.yaml
      foreslice catalog edit p5.48xlarge --into my-types/
    """
    path = Path(what)
    if path.suffix not in (".yaml", ".yml"):
        if target is None:
            raise BadInputError(f"{what}: neither a YAML file nor --into", next_step="for a type, give --into DIR")
        path = target / f"{file_name(what)}.yaml"
        if not path.exists():
            _edit_type(what, path, directories)
            return
    if not path.is_file():
        raise BadInputError(f"{path}: no such file", next_step="`foreslice catalog add` makes a new one")
    found = edited(path, _text(path), directories)
    if found is None:
        click.echo(f"{path} is unchanged")
        return
    replace_file(path, found)
    click.echo(f"{path} is saved")


def _edit_type(name: str, path: Path, directories: tuple[Path, ...]) -> None:
    opened = chosen_catalog(present(directories, path.parent))
    before = type_entry(chosen_type(name, opened), opened.accelerators)
    entry = EntryName("types", name)
    comments = (
        f"Everything known of {name}. What you change is kept in {path}, with the comments on it; nothing else.",
        "To say why or until when, add `reason: ...` and `expires: 2026-12-31` at the top.",
    )
    found = edited(path, new_document(entry, before, comments=comments), directories)
    try:
        kept = only_changes(found, entry, before) if found is not None else ""
        if not kept or not is_changed(kept, entry):
            click.echo("nothing is changed")
            return
    except EditError as error:
        raise BadInputError(f"{path}: {error}") from error
    text = "".join(line for line in kept.splitlines(keepends=True) if line.removeprefix("# ").rstrip() not in comments)
    wrong = defects(path, text, directories)
    if wrong:
        raise BadInputError(f"{path} is not written:\n{wrong}")
    replace_file(path, text)
    click.echo(f"{path} is saved")


def _entry_name(name: str, opened: Catalog) -> EntryName:
    """The accelerator of that key, or the type. Raises BadInputError."""
    if name in opened.accelerators:
        return EntryName("accelerators", name)
    return EntryName("types", chosen_type(name, opened).name)


def _assigned(assignment: str, entry: EntryName, opened: Catalog, today: str) -> tuple[Field, Any]:
    """Path and value of `FIELD=VALUE`. Raises BadInputError."""
    left, equals, right = assignment.partition("=")
    if not equals or not all(left.split(".")) or not right:
        raise BadInputError(f"{assignment!r} says not what is set", next_step="write FIELD=VALUE, such as vcpu=96")
    try:
        value = value_of(right)
    except EditError as error:
        raise BadInputError(f"{assignment}: {error}") from error
    # Names of resources have dots of their own: allocatable.vpc.amazonaws.com/efa.
    steps = left.split(".", 1) if left.partition(".")[0] in _RESOURCE_MAPS else left.split(".")
    if steps[0] != _PRICE or entry.section != "types":
        return tuple(steps), value
    return _price_field(steps[1:], value, opened.get(entry.name), today)


def _price_field(steps: list[str], value: Any, machine: InstanceType, today: str) -> tuple[Field, Any]:
    """The field and value of price, price.spot, price.us-east-1a and price.us-east-1a.spot. Raises BadInputError."""
    kinds = [kind.value for kind in CapacityType]
    kind = steps.pop() if steps and steps[-1] in kinds else CapacityType.ON_DEMAND.value
    if len(steps) > 1:
        raise BadInputError(
            f"price.{'.'.join(steps)} names more than a place", next_step=f"capacity types are {', '.join(kinds)}"
        )
    if steps:
        return ("zonePrices", steps[0], kind), _price(value, region_of(steps[0]), today)
    known = machine.price or next(iter(machine.prices.values()), None)
    if known is None:
        raise BadInputError(f"{machine.name} has no list price", next_step="name a region: price.us-east-1=31.5")
    return ("prices", kind), _price(value, known.region, today)


def _price(value: Any, region: str, today: str) -> Any:
    return None if value is None else {"usdPerHour": value, "region": region, "date": today}


def present(directories: tuple[Path, ...], target: Path) -> tuple[Path, ...]:
    """The directories to read: the target only once it has files."""
    there = target.is_dir() and any(path.suffix in (".yaml", ".yml") for path in target.rglob("*"))
    return (*directories, target) if there and target not in directories else directories


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def file_name(name: str) -> str:
    """Names of types and fields as part of a file's name: nothing that leads out of the directory."""
    return "".join(c if c.isalnum() or c in "-._+" else "_" for c in name).lstrip(".")

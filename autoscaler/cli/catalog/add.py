"""`foreslice catalog add`: creates an instance type from a user's facts, or from a similar type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from autoscaler.cli.catalog.edit import file_name, present
from autoscaler.cli.catalog.files import defects, edited, replace_file
from autoscaler.cli.common.choices import chosen_catalog, chosen_type
from autoscaler.cli.common.commands import below_option, into_option
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.files.editing import EntryName, new_document
from instance_catalog.files.file_entry import type_entry
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts

_NOT_TAKEN_OVER = ("name", "provenance", "prices", "zonePrices", "zones", "notes", "allocatable")
_GROUPS = ("cpu", "accelerator", "pci", "fabric", "network")
_PLACES = ("root", "rootGroup", "bus", "numa")
_TEMPLATE = """\
# {name}: what you know of it; docs/catalog.md explains every field. Remove the lines you know nothing of.
cloud: {cloud}
provenance:
  shape: {{source: where you have it from, date: {date}}}
types:
  - name: {name}{machine}
    architecture: amd64            # or arm64
    vcpu: 96
    memory: 1024Gi                 # nominal, as the cloud states it
    accelerator:
      model: nvidia-h100-80gb      # `foreslice catalog list --sort accelerator` shows what is known
      count: 4                     # of a part of a card: 1/8
    # fabric: {{link: NVLink, shape: switch, gigabytesPerSecond: 900}}
    # pci: {{rootGroup: [0, 1, 2, 3]}} # equal numbers share a PCIe root; `root: [pci0000:44, ...]` only where seen
    # networkCards:
    #   - {{kind: ena, primary: true}}
    #   - {{kind: efa, count: 16, subsystem: efa1}}
    # localNvmeGB: 7600
    capacityTypes: [on-demand]     # capacity-block, reserved, flex-start, spot, on-demand
    prices:
      on-demand: {{usdPerHour: 27.52, region: us-east-1, date: {date}}}
"""


@click.command("add")
@click.argument("name", metavar="TYPE")
@into_option
@click.option("--like", "model", metavar="TYPE", help="Copy everything except prices from this type.")
@click.option("--cloud", metavar="CLOUD", help="aws, gcp, or one of your own.")
@click.option("--architecture", type=click.Choice(("amd64", "arm64")), help="[default: amd64]")
@click.option("--vcpu", type=click.IntRange(1), metavar="N", help="Virtual CPUs.")
@click.option("--memory", metavar="QUANTITY", help="Nominal memory, such as 1024Gi.")
@click.option("--accelerator", metavar="KEY", help="Key of an accelerator, such as nvidia-h100-80gb.")
@click.option("--count", metavar="N", help="Number of accelerators; 1/8 for a part of a card.")
@click.option(
    "--sold-as", metavar="KINDS", help="capacity-block,reserved,flex-start,spot,on-demand  [default: on-demand]"
)
@click.option("--price", metavar="USD", help="On-demand price per hour; needs --region.")
@click.option("--region", metavar="REGION", help="Region of the price.")
@click.option("--source", metavar="TEXT", help="Where the facts come from.  [default: entered by hand]")
@click.option("--edit", "in_editor", is_flag=True, help="Open the entry in $VISUAL or $EDITOR before it is written.")
@below_option
def add(*, name: str, target: Path, directories: tuple[Path, ...], in_editor: bool, **facts: Any) -> None:
    """The facts come from options, from a similar type (--like), or, with neither, from a template that opens in your
    editor. The command checks the file together with the whole catalog before it writes it. If TYPE has capital letters
    or underscores, as in BM.GPU.H100.8, the type gets the name in lower case, and the file also keeps the cloud's own
    spelling.

    \b
    Try:
      foreslice catalog add p5x.24xlarge --into my-types/
      foreslice catalog add p5x.24xlarge --into my-types/ --like p5.48xlarge --vcpu 96 --memory 1Ti --count 4
      foreslice catalog add box --into my-types/ --cloud my-dc --vcpu 64 --memory 512Gi --accelerator nvidia-l40s
    """
    opened = chosen_catalog(present(directories, target))
    spelled, name = name, _own_name(name)
    if name in opened.types:
        raise BadInputError(
            f"{name} is in the catalog already ({opened.types[name].origin})",
            next_step="`foreslice catalog set` or `edit` change a known type",
        )
    path = target / f"{file_name(name)}.yaml"
    if path.exists():
        raise BadInputError(
            f"{path} exists", next_step=f"add the type there: `foreslice catalog edit {shlex.quote(str(path))}`"
        )
    today = SystemClock().now().date().isoformat()
    blank = not any(facts.values())
    text = (
        _TEMPLATE.format(name=name, machine=_machine_line(spelled, name), cloud=min(cloud_facts()), date=today)
        if blank
        else _entry_text(spelled, facts, opened, today)
    )
    if blank or in_editor:
        found = edited(path, text, directories)
        if found is None and blank:
            click.echo("the template is unchanged; nothing is added")
            return
        text = found or text
    wrong = defects(path, text, directories)
    if wrong:
        raise BadInputError(
            f"{name} is not added:\n{wrong}", next_step="correct the options (`--help` lists them), or add --edit"
        )
    replace_file(path, text)
    command = shlex.join(("foreslice", "slices", name, "--catalog", str(target)))
    click.echo(f"{path} is written. What its drivers will publish: {command}")


def _own_name(spelled: str) -> str:
    """The name of a type whose machine the cloud writes with capitals or underscores: names here have neither."""
    return spelled.lower().replace("_", "-")


def _machine_line(spelled: str, name: str) -> str:
    note = "what the cloud and the node's label call it"
    return f"\n    machine: {spelled}  # {note}" if spelled != name else ""


def _entry_text(spelled: str, facts: dict[str, Any], opened: Catalog, today: str) -> str:
    """The text of the file with the values of the options. Raises BadInputError."""
    name = _own_name(spelled)
    like = facts["model"]
    entry = _taken_over(type_entry(chosen_type(like, opened), opened.accelerators), facts) if like else {}
    fields = {
        "machine": spelled if spelled != name else None,
        "cloud": facts["cloud"],
        "architecture": facts["architecture"] or entry.get("architecture", "amd64"),
        "vcpu": facts["vcpu"],
        "memory": facts["memory"],
        "accelerator": _accelerator(facts, entry.get("accelerator", {})),
        "capacityTypes": facts["sold_as"].split(",") if facts["sold_as"] else entry.get("capacityTypes", ["on-demand"]),
        "prices": _prices(facts, today),
    }
    given = {key: value for key, value in fields.items() if value}
    guesses = {group: {"source": f"taken over from {like}", "date": today, "guess": True} for group in _GROUPS if like}
    shape = {"source": facts["source"] or "entered by hand", "date": today}
    return new_document(
        EntryName("types", name), {"name": name, **entry, **given, "provenance": {"shape": shape, **guesses}}
    )


def _taken_over(entry: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The fields of the similar type that are copied: no prices, and no places of devices or CPUs if their number
    differs."""
    kept = {key: value for key, value in entry.items() if key not in _NOT_TAKEN_OVER}
    if facts["accelerator"] or facts["count"]:
        kept.pop("pci", None)
        cards = kept.get("networkCards", [])
        kept["networkCards"] = [{key: card[key] for key in card if key not in _PLACES} for card in cards]
    if facts["vcpu"]:
        kept["cpu"] = {key: value for key, value in kept.get("cpu", {}).items() if key == "threadsPerCore"}
    return {key: value for key, value in kept.items() if value != {}}


def _accelerator(facts: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    if not facts["accelerator"] and not facts["count"]:
        return like
    count = str(facts["count"] or like.get("count", 1))
    model = facts["accelerator"] or like.get("model")
    return {**({"model": model} if model else {}), "count": int(count) if count.isdecimal() else count}


def _prices(facts: dict[str, Any], today: str) -> dict[str, Any]:
    if not facts["price"]:
        return {}
    if not facts["region"]:
        raise BadInputError("--price without its region", next_step="give --region us-east-1")
    return {"on-demand": {"usdPerHour": facts["price"], "region": facts["region"], "date": today}}

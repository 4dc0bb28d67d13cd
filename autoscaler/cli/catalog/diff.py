"""`foreslice catalog diff` and `export`: catalogs as entries of a file, compared and written."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from autoscaler.cli.common.choices import chosen_catalog, chosen_type
from autoscaler.cli.common.commands import catalog_option
from autoscaler.cli.common.output import print_data, yaml_text
from instance_catalog.files.file_entry import accelerator_entry, type_entry
from instance_catalog.types.catalog import Catalog


@click.command("diff")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@catalog_option
def diff(directory: Path, directories: tuple[Path, ...]) -> None:
    """\b
    Try:
      foreslice catalog diff my-types/
      foreslice catalog diff my-overlay/ --catalog my-types/
    """
    before = chosen_catalog(directories)
    if not print_changes(before, chosen_catalog((*directories, directory))):
        click.echo("no fact changes")


@click.command("export")
@click.argument("names", metavar="[TYPE]...", nargs=-1)
@click.option("-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="Form.")
@catalog_option
def export(names: tuple[str, ...], output: str, directories: tuple[Path, ...]) -> None:
    """Layers are merged; the result can be edited and given back with --catalog.

    \b
    Try:
      foreslice catalog export p5.48xlarge > my-types/p5.yaml
      foreslice catalog export --catalog my-types/ -o json
    """
    opened = chosen_catalog(directories)
    types = [chosen_type(name, opened) for name in dict.fromkeys(names)] or list(opened)
    used = {t.accelerator.key for t in types if t.accelerator}
    models = [model for key, model in opened.accelerators.items() if key in used or not names]
    content = {
        "accelerators": [accelerator_entry(model) for model in models],
        "types": [type_entry(t, opened.accelerators) for t in types],
    }
    print_data({section: entries for section, entries in content.items() if entries}, output)


def print_changes(before: Catalog, after: Catalog) -> bool:
    """Print every fact that differs, as `- old` and `+ new` below its entry; whether there is any."""
    sections: list[tuple[str, dict[str, dict[str, Any]], dict[str, dict[str, Any]]]] = [
        (
            "accelerator",
            {key: accelerator_entry(model) for key, model in before.accelerators.items()},
            {key: accelerator_entry(model) for key, model in after.accelerators.items()},
        ),
        (
            "instance type",
            {t.name: type_entry(t, before.accelerators) for t in before},
            {t.name: type_entry(t, after.accelerators) for t in after},
        ),
    ]
    found = False
    for noun, old, new in sections:
        for name in sorted({*old, *new}):
            one, other = old.get(name, {}), new.get(name, {})
            if one == other:
                continue
            found = True
            click.echo(f"{noun} {name}{'' if name in old else ' (new)'}")
            for line in _changed_lines(one, other):
                click.echo(f"  {line}")
    return found


def _changed_lines(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Unified, without the header and with all lines around, as entries are short."""
    before, after = (yaml_text(entry).splitlines() if entry else [] for entry in (old, new))
    lines = difflib.unified_diff(before, after, lineterm="", n=1)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]

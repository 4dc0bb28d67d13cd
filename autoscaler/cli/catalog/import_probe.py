"""`foreslice catalog import`: converts a Probe record to a catalog entry, and shows the changes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from autoscaler.cli.catalog.diff import print_changes
from autoscaler.cli.catalog.edit import file_name, present
from autoscaler.cli.catalog.files import defects, replace_file
from autoscaler.cli.common.choices import chosen_catalog
from autoscaler.cli.common.commands import catalog_option
from autoscaler.cli.common.output import print_data, yaml_text
from autoscaler.errors import BadInputError
from instance_catalog.files.findings import Findings
from instance_catalog.files.layers import Corrections
from instance_catalog.files.yaml_text import YamlTextError, read
from instance_catalog.prediction.drivers.nvidia_gpu import mig_table
from instance_catalog.probe.entry import catalog_content, left_to_say, mig_differences
from instance_catalog.probe.record import Probe, ProbeError
from instance_catalog.types.instance_type import InstanceType


@click.command("import")
@click.argument("file", metavar="PROBE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--as", "name", metavar="TYPE", required=True, help="Name of the instance type, new or known.")
@click.option("--cloud", metavar="CLOUD", required=True, help="Its cloud: aws, gcp, or one of your own.")
@click.option("--write", "target", metavar="DIR", type=click.Path(path_type=Path), help="Write TYPE.yaml there.")
@catalog_option
def import_probe(file: Path, name: str, cloud: str, target: Path | None, directories: tuple[Path, ...]) -> None:
    """The command checks the entry together with the whole catalog. For a known type, it takes only the devices from
    the probe. A probe has no prices and does not know how the type is sold; add these yourself.

    \b
    Try:
      foreslice catalog import probe.yaml --as my.type --cloud aws
      foreslice catalog import probe.yaml --as p5.48xlarge --cloud aws --write my-types/
    """
    probe = _read(file)
    below = present(directories, target) if target else directories
    before = chosen_catalog(below)
    known = before.types.get(name)
    if known is not None and known.cloud != cloud:
        raise BadInputError(f"{name} is a type of cloud {known.cloud}", next_step=f"give --cloud {known.cloud}")
    try:
        content = catalog_content(probe, name=name, cloud=cloud, models=before.accelerators, existing=known)
    except ProbeError as error:
        raise BadInputError(f"{file}: {error}", next_step=error.next_step) from error
    after = chosen_catalog(below, [Corrections(str(file), 1, content)])
    for line in (*left_to_say(probe), *_mig_notes(probe, after.types[name])):
        click.echo(f"note: {line}", err=True)
    print_data(content, "yaml")
    click.echo(f"\n# What it changes{'' if known else ' (a new type)'}:")
    print_changes(before, after)
    if target is not None:
        _write(target / f"{file_name(name)}.yaml", content, below)


def _mig_notes(probe: Probe, imported: InstanceType) -> list[str]:
    """The contradictions of the GPU to the partition table of its model, which no catalog file can correct."""
    table = mig_table(imported)
    return list(dict.fromkeys(line for gpu in probe.gpus for line in mig_differences(gpu, table))) if table else []


def _read(file: Path) -> Probe:
    step = "give a file that `foreslice probe` wrote"
    findings = Findings()
    try:
        text = file.read_text(encoding="utf-8")
        record = read(text)
    except YamlTextError as error:
        raise BadInputError(f"{file}:{error.line}: found {error}", next_step=step) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file}: cannot be read ({error})", next_step=step) from error
    findings.remember(str(file), text)
    probe = findings.checked_file(Probe, record, str(file))
    if probe is None:
        raise BadInputError("\n  ".join(map(str, findings.problems)), next_step=step)
    return probe


def _write(path: Path, content: dict[str, Any], directories: tuple[Path, ...]) -> None:
    """Writes a new file, checked with those beside it; an existing one may have a user's comments, so it is kept."""
    if path.exists():
        raise BadInputError(f"{path} exists", next_step="move it away, or merge the entry by hand")
    text = yaml_text(content)
    wrong = defects(path, text, directories)
    if wrong:
        raise BadInputError(f"{path} is not written:\n{wrong}", next_step="merge the entry by hand")
    replace_file(path, text)
    click.echo(f"written: {path}", err=True)

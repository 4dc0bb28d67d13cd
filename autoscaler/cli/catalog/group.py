"""`foreslice catalog`: lists what can be bought, and checks and writes catalog files."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "add": ("autoscaler.cli.catalog.add:add", "Add an instance type to your directory, as TYPE.yaml."),
        "diff": (
            "autoscaler.cli.catalog.diff:diff",
            "Show which facts the files of a directory change, per instance type and accelerator.",
        ),
        "edit": (
            "autoscaler.cli.catalog.edit:edit",
            "Open a catalog file, or everything known of a type, in $VISUAL or $EDITOR.",
        ),
        "export": (
            "autoscaler.cli.catalog.diff:export",
            "Write all types, or those that are named, with their accelerators as one catalog file.",
        ),
        "import": (
            "autoscaler.cli.catalog.import_probe:import_probe",
            "Show the catalog entry that a `foreslice probe` gives, and what it changes; --write keeps it.",
        ),
        "learn": (
            "autoscaler.cli.catalog.learn:learn",
            "Create or correct catalog entries from what nodes publish and what they leave to pods.",
        ),
        "list": ("autoscaler.cli.catalog.listing:list_types", "List instance types."),
        "set": (
            "autoscaler.cli.catalog.edit:set_values",
            "Set facts or prices of an instance type, or facts of an accelerator, as an overlay in your directory.",
        ),
        "show": (
            "autoscaler.cli.catalog.listing:show_type",
            "Show everything known about an instance type, and the sources.",
        ),
        "sync": ("autoscaler.cli.catalog.sync:sync", "Import types, zones and prices that a cloud lists."),
        "validate": (
            "autoscaler.cli.catalog.validate:validate",
            "Check the shipped catalog together with the files of a directory.",
        ),
        "verify": (
            "autoscaler.cli.catalog.verify:verify",
            "Compare the ResourceSlices of a node with the prediction for its instance type.",
        ),
    },
)
def catalog() -> None:
    """The catalog is data. The files in directories that you name with --catalog add types and correct facts or prices.
    You write these files (add, set, edit), or Foreslice writes them from what nodes publish (import, learn, verify) and
    from what clouds list (sync). See docs/catalog.md.
    """

"""Options that several commands share, so that they read and behave the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

_DIRECTORY: Final = click.Path(path_type=Path)

catalog_option = click.option(
    "--catalog",
    "directories",
    metavar="DIR",
    multiple=True,
    type=_DIRECTORY,
    help="More catalog files, over the shipped ones. May be repeated; later ones win.",
)
below_option = click.option(
    "--catalog",
    "directories",
    metavar="DIR",
    multiple=True,
    type=_DIRECTORY,
    help="More catalog files, below those of --into. May be repeated.",
)
into_option = click.option(
    "--into",
    "target",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of your catalog files; made where there is none. Give it to other commands as --catalog.",
)
kubernetes_option = click.option(
    "--kubernetes-version", metavar="VERSION", default="1.36", show_default=True, help="Version of the API server."
)

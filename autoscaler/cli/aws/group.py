"""`foreslice aws`: what AWS needs to be ready for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "check": (
            "autoscaler.cli.aws.check:check_aws",
            "Check everything that a launch needs, and say what is missing and how to get it.",
        ),
    },
)
def aws() -> None:
    """Each subcommand only reads."""

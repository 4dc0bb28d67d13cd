"""`foreslice aws`: the commands that prepare AWS for launches."""

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
        "trial": (
            "autoscaler.cli.aws.trial:trial_aws",
            "Launch a few machines on a real account for some minutes, check them, and terminate them all.",
        ),
    },
)
def aws() -> None:
    """`check` only reads; `trial` launches only with --yes."""

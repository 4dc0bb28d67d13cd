"""`foreslice gcp`: the commands that prepare Google Cloud for launches."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "check": (
            "autoscaler.cli.gcp.check:check_gcp",
            "Check everything that a launch needs, and say what is missing and how to get it.",
        ),
        "trial": (
            "autoscaler.cli.gcp.trial:trial_gcp",
            "Start a few machines for some minutes, check what Foreslice relies on, and terminate them.",
        ),
        "provisioning-request": (
            "autoscaler.cli.gcp.provisioning_request:provisioning_request",
            "Print the ProvisioningRequests of workloads that run in node pools with queued provisioning.",
        ),
    },
)
def gcp() -> None:
    """`check` only reads; `trial` starts machines and terminates them; `provisioning-request` reads files."""

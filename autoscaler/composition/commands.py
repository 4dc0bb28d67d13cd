"""The commands of each cloud: name, place, and first sentence of the help. The command line names clouds only here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Commands = Mapping[str, tuple[str, str]]

# `foreslice CLOUD`
CLOUD_COMMANDS: Final[Commands] = {
    "aws": ("autoscaler.cli.aws.group:aws", "Check that AWS is ready for launches."),
    "gcp": ("autoscaler.cli.gcp.group:gcp", "Check that Google Cloud is ready for launches."),
}

# `foreslice catalog sync CLOUD`
SYNC_COMMANDS: Final[Commands] = {
    "aws": (
        "autoscaler.cli.aws.sync:sync_aws",
        "Types with accelerators of an AWS region: sizes, zones, how they are sold, spot and on-demand prices.",
    ),
    "gcp": (
        "autoscaler.cli.gcp.sync:sync_gcp",
        "Machine types with accelerators of a Google Cloud project: sizes, zones, and prices from the billing "
        "catalogue.",
    ),
}

"""How long a machine may take from its launch to its Node, for pools and node templates that do not say.

Karpenter gives every machine 15 minutes (kubernetes-sigs/karpenter issue 357 asks for more, for images that take 15 to
20); images with GPU drivers boot in 3 to 8. Bare metal starts its firmware and checks its memory first, and machines of
an UltraServer come up together with their fabric. Those two are not measured: docs/aws.md says what to look at.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from instance_catalog.types.instance_type import InstanceType

BOOT: Final = timedelta(minutes=15)
BOOT_METAL: Final = timedelta(minutes=30)
BOOT_ULTRASERVER: Final = timedelta(minutes=45)
LONGEST: Final = max(BOOT, BOOT_METAL, BOOT_ULTRASERVER)
# g4dn.metal, c5.metal-24xl, c3-highcpu-192-metal: both clouds put it into the name.
_METAL: Final = re.compile(r"[.-]metal(-|\Z)")


def boot_timeout(instance_type: InstanceType) -> timedelta:
    """The default for a kind of machine."""
    return BOOT_ULTRASERVER if instance_type.fabric.multi_node else boot_timeout_by_name(instance_type.name)


def boot_timeout_by_name(instance_type: str) -> timedelta:
    """The default as far as the name says."""
    return BOOT_METAL if _METAL.search(instance_type) else BOOT

"""Names of machines: `<baseInstanceName>-<suffix>`. Foreslice chooses the suffix before the launch.

The name is the only property by which a machine differs from others of its group: labels are those of the instance
template. So the name must show the owner, and make a repeated launch harmless. The suffix is a number in base 36 that
contains, derived from the request alone:

    owner | batch 20 bits | token 20 bits | parameters 6 bits | node 7 bits

A suffix has 16 digits if the base leaves room for them, which leaves 29 bits for the owner. After longer bases it has
12 to 14 digits, a token of 10 bits, and 19 to 29 bits for the owner: with fewer bits, machines of other clusters of the
project could be taken for our own. Older releases used this short form for all groups, and it is still read everywhere.
GKE's own suffixes have four digits.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

from instance_catalog.dataclass import dataclass
from providers.errors import TemplateError

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
SHORTEST: Final = 12
LONGEST: Final = 16
# The longest suffix in the form with the short token.
_LONGEST_BRIEF: Final = 14
# The longest name of an instance.
_NAME: Final = 63
_BATCH, _PARAMETERS, _NODE = 20, 6, 7
_TOKEN, _BRIEF_TOKEN = 20, 10
MAX_NODES: Final = 1 << _NODE
# A filter of instances.list, in RE2: names that a launch may have chosen.
FILTER: Final = f'name eq ".*-[0-9a-z]{{{SHORTEST},{LONGEST}}}"'


@dataclass(frozen=True, slots=True)
class Launched:
    """The content of a machine's name. All numbers are hashes except `node`, the index of the node in its request.

    `token_bits` is the number of bits of the token's hash.
    """

    owner: int
    batch: int
    token: int
    parameters: int
    node: int
    token_bits: int = _TOKEN


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one launch in a group with this base.

    Raises TemplateError if the base leaves no room, or lets Google number the machines (`vm-###`;
    InstanceGroupManager.baseInstanceName, google-cloud-compute 1.56).
    """

    cluster: str
    batch: str
    token: str
    parameters: str
    base: str

    @property
    def width(self) -> int:
        """The number of digits of a suffix."""
        if "#" in self.base:
            text = f"the base name {self.base} lets the group number its machines, so Foreslice cannot name them"
            step = (
                "name a group whose base name has no #, or make one: gcloud compute instance-groups managed create NEW "
                "--base-instance-name NEW --size 0 --zone ZONE --template TEMPLATE"
            )
            raise TemplateError(text, code="NumberedNames", next_step=step)
        room = _NAME - len(self.base) - 1
        if room < SHORTEST:
            longest = _NAME - 1 - SHORTEST
            step = f"make a node pool with a shorter name: the base name may have {longest} characters at most"
            text = f"the base name {self.base} has {len(self.base)} characters: too long to add the owner of a machine"
            raise TemplateError(text, code="NameTooLong", next_step=step)
        return LONGEST if room >= LONGEST else min(room, _LONGEST_BRIEF)

    def of(self, node: int) -> str:
        """The machine name of the node with this index in the request."""
        width = self.width
        number = _bits(_owner_bits(width), "owner", self.cluster)
        number = number << _BATCH | batch_of(self.cluster, self.batch)
        token = _token_bits(width)
        number = number << token | _bits(token, "token", self.token)
        number = number << _PARAMETERS | _bits(_PARAMETERS, "parameters", self.parameters)
        return f"{self.base}-{_written(number << _NODE | node, width)}"

    def has(self, found: Launched) -> bool:
        """True if the machine was launched with this token, whatever its parameters."""
        of_token = _bits(found.token_bits, "token", self.token)
        return (found.batch, found.token) == (batch_of(self.cluster, self.batch), of_token)

    def alike(self, found: Launched) -> bool:
        """True if the machine was requested with the same parameters."""
        return found.parameters == _bits(_PARAMETERS, "parameters", self.parameters)


def read(name: str, cluster: str) -> Launched | None:
    """The content of a name; None if no launch of this cluster has chosen it."""
    _, dash, suffix = name.rpartition("-")
    brief = SHORTEST <= len(suffix) <= _LONGEST_BRIEF
    if not dash or not (brief or len(suffix) == LONGEST) or not set(suffix) <= set(_DIGITS):
        return None
    bits = _owner_bits(len(suffix))
    number = int(suffix, 36)
    node, number = _low(number, _NODE)
    parameters, number = _low(number, _PARAMETERS)
    token_bits = _token_bits(len(suffix))
    token, number = _low(number, token_bits)
    batch, owner = _low(number, _BATCH)
    if owner != _bits(bits, "owner", cluster):
        return None
    return Launched(owner, batch, token, parameters, node, token_bits)


def batch_of(cluster: str, batch: str) -> int:
    """The part of a name that identifies the LaunchBatch of a machine."""
    return _bits(_BATCH, "batch", f"{cluster}/{batch}")


def provider_id(project: str, zone: str, name: str) -> str:
    """The spec.providerID that the Google cloud controller writes into a Node."""
    return f"gce://{project}/{zone}/{name}"


def _owner_bits(width: int) -> int:
    return int(width * math.log2(36)) - (_BATCH + _token_bits(width) + _PARAMETERS + _NODE)


def _token_bits(width: int) -> int:
    return _TOKEN if width == LONGEST else _BRIEF_TOKEN


def _bits(count: int, what: str, text: str) -> int:
    digest = hashlib.sha256(f"{what}:{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - count)


def _low(number: int, bits: int) -> tuple[int, int]:
    return number & ((1 << bits) - 1), number >> bits


def _written(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits

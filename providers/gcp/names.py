"""Names of machines: `<baseInstanceName>-<suffix>`, chosen before the launch. The suffix says whose a machine is.

A group gives a machine nothing but its name that another machine of the group does not have as well: labels come from
the instance template. So ownership and idempotency are in the name. The suffix is a number in base 36, of parts that
follow from the request alone:

    owner | batch 20 bits | token 20 bits | parameters 6 bits | node 7 bits

A suffix has 16 digits where the base leaves room for them, which are 29 bits for the owner. After longer bases it has
12 to 14 digits, a token of 10 bits, and 19 to 29 bits for the owner: fewer would take machines of other clusters of the
project for our own. Names of that form were chosen for all groups once, and are read wherever they are. GKE's own
suffixes have four digits.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Final

from providers.errors import TemplateError

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
SHORTEST: Final = 12
LONGEST: Final = 16
# The longest suffix of the form with the short token.
_LONGEST_BRIEF: Final = 14
# What Google calls an instance may have so many characters.
_NAME: Final = 63
_BATCH, _PARAMETERS, _NODE = 20, 6, 7
_TOKEN, _BRIEF_TOKEN = 20, 10
MAX_NODES: Final = 1 << _NODE
# A filter of instances.list: names that may be ours. RE2, as the API takes it.
FILTER: Final = f'name eq ".*-[0-9a-z]{{{SHORTEST},{LONGEST}}}"'


@dataclass(frozen=True, slots=True)
class Launched:
    """What the name of a machine says. Numbers are hashes but `node`, the index of the node in its request.

    `token_bits` is how much of the token's hash the name has.
    """

    owner: int
    batch: int
    token: int
    parameters: int
    node: int
    token_bits: int = _TOKEN


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one launch in a group with this base. Raises TemplateError when the base leaves no room, or has
    Google number the machines (`vm-###`; InstanceGroupManager.baseInstanceName, google-cloud-compute 1.56)."""

    cluster: str
    batch: str
    token: str
    parameters: str
    base: str

    @property
    def width(self) -> int:
        """How many digits a suffix has."""
        if "#" in self.base:
            text = f"the base name {self.base} lets the group number its machines, and takes no names of our own"
            step = (
                "name a group whose base name has no #, or make one: gcloud compute instance-groups managed create NEW "
                "--base-instance-name NEW --size 0 --zone ZONE --template TEMPLATE"
            )
            raise TemplateError(text, code="NumberedNames", next_step=step)
        room = _NAME - len(self.base) - 1
        if room < SHORTEST:
            longest = _NAME - 1 - SHORTEST
            step = f"make a node pool with a shorter name: the base name may have {longest} characters at most"
            text = f"the base name {self.base} has {len(self.base)} characters: too little room for whose a machine is"
            raise TemplateError(text, code="NameTooLong", next_step=step)
        return LONGEST if room >= LONGEST else min(room, _LONGEST_BRIEF)

    def of(self, node: int) -> str:
        """The name of the machine of a node, by its index in the request."""
        width = self.width
        number = _bits(_owner_bits(width), "owner", self.cluster)
        number = number << _BATCH | batch_of(self.cluster, self.batch)
        token = _token_bits(width)
        number = number << token | _bits(token, "token", self.token)
        number = number << _PARAMETERS | _bits(_PARAMETERS, "parameters", self.parameters)
        return f"{self.base}-{_written(number << _NODE | node, width)}"

    def has(self, found: Launched) -> bool:
        """Whether a machine of this cluster comes from this token, with whatever parameters."""
        of_token = _bits(found.token_bits, "token", self.token)
        return (found.batch, found.token) == (batch_of(self.cluster, self.batch), of_token)

    def alike(self, found: Launched) -> bool:
        """Whether it was asked for with these parameters."""
        return found.parameters == _bits(_PARAMETERS, "parameters", self.parameters)


def read(name: str, cluster: str) -> Launched | None:
    """What a name says, None for one that no launch of this cluster has chosen."""
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
    """The part of a name that says which LaunchBatch a machine belongs to."""
    return _bits(_BATCH, "batch", f"{cluster}/{batch}")


def provider_id(project: str, zone: str, name: str) -> str:
    """What the Google cloud controller writes into a Node's spec.providerID."""
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

"""Verdicts, kube-scheduler's predicted answers about pods on one node. A sum type. Every one but Fits has reasons;
DoesNotFit may have none if the caller does not read them."""

from __future__ import annotations

from typing import TypeAlias

from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import Allocation
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class Fits:
    """The pods fit. `allocations` maps claim keys (namespace/name) to the allocations of unallocated claims.

    `preference` is the sum of chosen firstAvailable indexes (0: first choices everywhere).
    """

    allocations: FrozenMap[str, Allocation] = field(default_factory=FrozenMap)
    preference: int = 0
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """This node cannot take the pods; another may."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Fatal:
    """kube-scheduler aborts the whole attempt of the pod; no other node is a fallback."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """It depends on something that is unknown before launch or unsupported. No node is launched for it."""

    reasons: tuple[Reason, ...]


Verdict: TypeAlias = Fits | DoesNotFit | Fatal | Unknown

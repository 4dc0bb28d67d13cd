"""The outcomes of an allocation, each failure with its reasons, and the one exception inside of this package."""

from __future__ import annotations

from typing import TypeAlias

from autoscaler.model.reason import Code, Fact, Reason, Subject
from autoscaler.model.resource_claim import Allocation
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Allocated:
    """One allocation per claim, in the order of the claims.

    `choices` holds the index of every chosen firstAvailable alternative, in claim and request order. `steps` is the
    number of times that the search looked for a device, for benchmarks and tests.
    """

    allocations: tuple[Allocation, ...]
    choices: tuple[int, ...] = ()
    steps: int = 0

    @property
    def preference(self) -> int:
        """0 if every prioritized list got its first choice."""
        return sum(self.choices)


@dataclass(frozen=True, slots=True)
class NotAllocated:
    """No combination of devices of this node satisfies all claims.

    `node_error` is upstream's ErrFailedAllocationOnNode: the search encountered an invalid pool.
    """

    reasons: tuple[Reason, ...]
    node_error: bool = False
    steps: int = 0


@dataclass(frozen=True, slots=True)
class FatalAllocation:
    """kube-scheduler reports an error and aborts the pod's attempt on all nodes."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class UnknownAllocation:
    """The outcome depends on something that is unknown until the node runs, or that this version does not support."""

    reasons: tuple[Reason, ...]


AllocationOutcome: TypeAlias = Allocated | NotAllocated | FatalAllocation | UnknownAllocation


class FatalError(Exception):
    """kube-scheduler would abort its attempt here. `allocate` turns it into a FatalAllocation."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    @staticmethod
    def of(code: Code, subject: Subject, **detail: Fact) -> FatalError:
        return FatalError(Reason.of(code, subject, **detail))

"""What a node has left of CPU, memory and other amounts, compared with what a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import DoesNotFit, Verdict
from autoscaler.planning.placement.device_states import PodApart

FULL = DoesNotFit((Reason.of(Code.INSUFFICIENT_RESOURCE),))


def fits_amounts(free: Mapping[str, int], pod: PodApart) -> bool:
    """Whether what is free suffices for the pod."""
    for resource, amount in pod.amounts.items():  # noqa: SIM110  # a generator takes twice as long
        if amount > free.get(resource, 0):
            return False
    return True


def short_of(free: Mapping[str, int], pod: PodApart) -> DoesNotFit:
    """What there is too little of."""
    return DoesNotFit(
        tuple(
            Reason.of(
                Code.INSUFFICIENT_RESOURCE,
                f"pod {pod.pod.key}",
                resource=resource,
                wanted=amount,
                free=max(free.get(resource, 0), 0),
            )
            for resource, amount in pod.amounts.items()
            if amount > free.get(resource, 0)
        )
    )


def lacks_amounts(verdict: Verdict) -> bool:
    """Whether nothing but amounts is missing."""
    return isinstance(verdict, DoesNotFit) and all(r.code is Code.INSUFFICIENT_RESOURCE for r in verdict.reasons)

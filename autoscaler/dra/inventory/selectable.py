"""The devices that a request may have at all: class and request selectors, per-device node selection (isSelectable).

The answer for a device does not depend on allocations, so it is cached as long as the node's pools. It is computed only
when the search needs it, because errors of other devices do not count.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final

from autoscaler.cel.common.evaluation import pay
from autoscaler.dra.inventory.pools import NodePools, PooledDevice, reaches
from autoscaler.dra.inventory.selectors import Answer, Match, SelectorEngine
from autoscaler.dra.outcome import Allocated, FatalError, NotAllocated
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.node_selector import BadSelectorError
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import RuntimeOnly


@dataclass(frozen=True, slots=True)
class Selectability:
    """`certain` is the answer if every unknown is no, `possible` if it is yes; they differ only if something unknown
    decides.

    `reasons` explains an error or what is unknown; `stage` is the selector that refused ("class", "request", "node").
    """

    certain: Answer
    possible: Answer
    reasons: tuple[Reason, ...] = ()
    stage: str = ""
    expression: str = ""

    @property
    def unknown(self) -> bool:
        """True if something unknown decides."""
        return self.certain is not self.possible


# Units of work for looking at one device, beside what its selectors cost.
_JUDGEMENT: Final = 20
_YES: Final = Selectability(Answer.YES, Answer.YES)
_NO_CEL: Final = Match(Answer.ERROR, "the selector has no cel")
# Different requests, and answers for them, that are cached for one node: a node may live for months, and every claim
# may have selectors of its own.
_MOST_REQUESTS: Final = 256
_MOST: Final = 200_000


@dataclass(slots=True, eq=False)
class ClassMatches:
    """The answers of a class for the devices of one node, as far as they were needed. All its requests share them.

    `passed` has the unknown parts about a device that the class does not refuse.
    """

    refused: list[Selectability | None]
    passed: list[tuple[Reason, ...] | None]


@dataclass(slots=True, eq=False)
class RequestMatches:
    """The answers for one (class, selectors) pair on one node, computed when they are needed."""

    judge: Judge
    device_class: DeviceClass
    request: DeviceRequest
    answers: list[Selectability | None]
    of_class: ClassMatches

    def of(self, pooled: PooledDevice) -> Selectability:
        answer = self.answers[pooled.index]
        if answer is None:
            answer = self.of_class.refused[pooled.index] or self.judge.of(
                self.device_class, self.request, pooled, self.of_class
            )
            self.answers[pooled.index] = answer
        return answer

    def admits(self, pooled: PooledDevice, *, unknown_is_yes: bool) -> bool:
        """True if the device may be used. Raises FatalError if a selector that was evaluated fails."""
        found = self.of(pooled)
        answer = found.possible if unknown_is_yes else found.certain
        if answer is Answer.ERROR:
            raise FatalError(found.reasons[-1])
        return answer is Answer.YES


class Judge:
    """Computes the answers on one node. It keeps none: they refer to it."""

    def __init__(self, engine: SelectorEngine, profile: KubernetesProfile, node: Node) -> None:
        self._engine = engine
        self._profile = profile
        self._node = node

    def of(
        self, device_class: DeviceClass, request: DeviceRequest, pooled: PooledDevice, of_class: ClassMatches
    ) -> Selectability:
        """Compute the answer for one device, in upstream's order. Raises BudgetSpentError."""
        pay(_JUDGEMENT)
        if not self._profile.gates.binding_conditions and pooled.device.binding_conditions:
            return Selectability(Answer.NO, Answer.NO, stage="binding")
        passed = of_class.passed[pooled.index]
        if passed is None:
            unknown: list[Reason] = []
            if pooled.unsupported:
                unknown.append(
                    Reason.of(Code.UNSUPPORTED, Subject("device", str(pooled.id)), fields=pooled.unsupported)
                )
            refusal = self._refusal("class", device_class.selectors, pooled, unknown)
            if refusal is not None:
                if refusal.possible is Answer.NO:
                    of_class.refused[pooled.index] = refusal
                return refusal
            passed = of_class.passed[pooled.index] = tuple(unknown)
        unknown = list(passed)
        refusal = self._refusal("request", request.selectors, pooled, unknown)
        if refusal is not None:
            return refusal
        try:
            here = not pooled.resource_slice.per_device_node_selection or reaches(pooled.device.reach, self._node)
        except BadSelectorError as error:
            return self._failed(unknown, "node", "", Code.BAD_NODE_SELECTOR, pooled, Match(Answer.ERROR, str(error)))
        if not here:
            return Selectability(Answer.NO, Answer.NO, stage="node")
        return Selectability(Answer.NO, Answer.YES, tuple(unknown)) if unknown else _YES

    def _refusal(
        self, stage: str, selectors: tuple[Selector, ...], pooled: PooledDevice, unknown: list[Reason]
    ) -> Selectability | None:
        """The answer if one of the selectors refuses or fails. Unknown parts are added to `unknown`."""
        for selector in selectors:
            if selector.expression is None:
                return self._failed(unknown, stage, "", Code.MALFORMED_REQUEST, pooled, _NO_CEL)
            found = self._engine.evaluate(selector.expression, driver=pooled.driver, device=pooled.device)
            match found.answer:
                case Answer.NO:
                    return _no(stage, selector.expression)
                case Answer.ERROR:
                    return self._failed(unknown, stage, selector.expression, Code.SELECTOR_ERROR, pooled, found)
                case Answer.INVALID:
                    return self._failed(unknown, stage, selector.expression, Code.SELECTOR_INVALID, pooled, found)
                case Answer.UNKNOWN:
                    unknown.append(_unknown_reason(pooled, selector.expression, found))
        return None

    def _failed(
        self, unknown: list[Reason], stage: str, expression: str, code: Code, pooled: PooledDevice, found: Match
    ) -> Selectability:
        facts = {"expression": expression, "message": found.message, "stage": stage}
        if found.missing_key:
            facts["missing_key"] = found.missing_key
        reason = Reason.of(code, Subject("device", str(pooled.id)), **facts)
        certain = Answer.NO if unknown else Answer.ERROR
        return Selectability(certain, Answer.ERROR, (*unknown, reason), stage, expression)


class SelectorMemo:
    """All selector answers on one node. `outcomes`: of whole allocations, by question, with their claims."""

    def __init__(self, engine: SelectorEngine, profile: KubernetesProfile, node: Node, pools: NodePools) -> None:
        self._judge = Judge(engine, profile, node)
        self._size = len(pools.devices)
        self.outcomes: dict[Hashable, tuple[tuple[ResourceClaim, ...], Allocated | NotAllocated]] = {}
        self._classes: dict[tuple[Selector, ...], ClassMatches] = {}
        self._requests: dict[tuple[tuple[Selector, ...], tuple[Selector, ...]], RequestMatches] = {}

    def matches(self, device_class: DeviceClass, request: DeviceRequest) -> RequestMatches:
        """The answers for a request; requests with the same selectors share them."""
        key = (device_class.selectors, request.selectors)
        found = self._requests.get(key)
        if found is None:
            if len(self._requests) >= _MOST_REQUESTS or len(self._requests) * self._size >= _MOST:
                self._requests.clear()
                self._classes.clear()
            of_class = self._classes.get(device_class.selectors)
            if of_class is None:
                of_class = ClassMatches([None] * self._size, [None] * self._size)
                self._classes[device_class.selectors] = of_class
            found = self._requests[key] = RequestMatches(
                self._judge, device_class, request, of_class.refused.copy(), of_class
            )
        return found


@lru_cache(maxsize=1024)
def _no(stage: str, expression: str) -> Selectability:
    """The refusal, cached: most devices are refused, all for the same reason."""
    return Selectability(Answer.NO, Answer.NO, stage=stage, expression=expression)


def _unknown_reason(pooled: PooledDevice, expression: str, found: Match) -> Reason:
    device = pooled.device
    if not found.attributes:
        return Reason.of(
            Code.UNSUPPORTED, Subject("device", str(pooled.id)), expression=expression, message=found.message
        )
    from_catalog = False
    for qualified in found.attributes:
        for name in (qualified, qualified.removeprefix(f"{pooled.driver}/")):
            value, amount = device.attributes.get(name), device.capacity.get(name)
            gap = isinstance(value, RuntimeOnly) and value.is_catalog_gap
            from_catalog = from_catalog or gap or (amount is not None and amount.guess)
    code = Code.CATALOG_UNKNOWN if from_catalog else Code.RUNTIME_ATTRIBUTE
    return Reason.of(code, Subject("device", str(pooled.id)), expression=expression, attributes=found.attributes)

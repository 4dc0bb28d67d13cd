"""Which devices a request may have at all: class and request selectors, per-device node selection (isSelectable).

The answer for a device does not depend on what is allocated, so it is remembered as long as the node's pools live. It
is worked out only when the search gets there: an error counts only then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autoscaler.cel.common.evaluation import pay
from autoscaler.dra.inventory.pools import NodePools, PooledDevice, reaches
from autoscaler.dra.inventory.selectors import Answer, Match, SelectorEngine
from autoscaler.dra.outcome import FatalError
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import DeviceRequest
from instance_catalog.kubernetes.node_selector import BadSelectorError
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import RuntimeOnly


@dataclass(frozen=True, slots=True)
class Selectability:
    """`strict` reads every unknown as no, `lenient` as yes; they differ only if something unknown decides.

    `reasons` explains an error or what is unknown; `stage` says which selector said no ("class", "request", "node").
    """

    strict: Answer
    lenient: Answer
    reasons: tuple[Reason, ...] = ()
    stage: str = ""
    expression: str = ""

    @property
    def unknown(self) -> bool:
        """Whether something unknown decides."""
        return self.strict is not self.lenient


# Units of work for looking at one device, beside what its selectors cost.
_JUDGEMENT: Final = 20
_YES: Final = Selectability(Answer.YES, Answer.YES)


@dataclass(slots=True, eq=False)
class RequestMatches:
    """The answers for one (class, selectors) pair on one node, filled in as they are asked for."""

    memo: SelectorMemo
    device_class: DeviceClass
    request: DeviceRequest
    answers: list[Selectability | None]
    of_class: list[Selectability | None]  # refusals by the class, which all its requests share

    def of(self, pooled: PooledDevice) -> Selectability:
        """The answer for one device."""
        answer = self.answers[pooled.index]
        if answer is None:
            answer = self.of_class[pooled.index] or self.memo.judge(self.device_class, self.request, pooled)
            self.answers[pooled.index] = answer
            if answer.stage == "class" and answer.lenient is Answer.NO:
                self.of_class[pooled.index] = answer
        return answer

    def admits(self, pooled: PooledDevice, *, lenient: bool) -> bool:
        """Whether the device may be used. Raises FatalError if a selector that was reached fails."""
        found = self.of(pooled)
        answer = found.lenient if lenient else found.strict
        if answer is Answer.ERROR:
            raise FatalError(found.reasons[-1])
        return answer is Answer.YES


class SelectorMemo:
    """All selector answers on one node."""

    def __init__(self, engine: SelectorEngine, profile: KubernetesProfile, node: Node, pools: NodePools) -> None:
        self._engine = engine
        self._profile = profile
        self._node = node
        self._size = len(pools.devices)
        self._classes: dict[tuple[Selector, ...], list[Selectability | None]] = {}
        self._requests: dict[tuple[tuple[Selector, ...], tuple[Selector, ...]], RequestMatches] = {}

    def matches(self, device_class: DeviceClass, request: DeviceRequest) -> RequestMatches:
        """The answers for a request; requests that select alike share them."""
        key = (device_class.selectors, request.selectors)
        found = self._requests.get(key)
        if found is None:
            of_class = self._classes.setdefault(device_class.selectors, [None] * self._size)
            found = self._requests[key] = RequestMatches(self, device_class, request, [None] * self._size, of_class)
        return found

    def judge(self, device_class: DeviceClass, request: DeviceRequest, pooled: PooledDevice) -> Selectability:
        """Work out the answer for one device, in upstream's order. Raises BudgetSpentError."""
        pay(_JUDGEMENT)
        if not self._profile.gates.binding_conditions and pooled.device.binding_conditions:
            return Selectability(Answer.NO, Answer.NO, stage="binding")
        unknown: list[Reason] = []
        if pooled.unsupported:
            unknown.append(Reason.of(Code.UNSUPPORTED, f"device {pooled.id}", fields=pooled.unsupported))
        staged = (("class", device_class.selectors), ("request", request.selectors))
        for stage, selector in ((stage, selector) for stage, selectors in staged for selector in selectors):
            if selector.expression is None:
                return self._failed(unknown, stage, "", Code.MALFORMED_REQUEST, pooled, "the selector has no cel")
            found = self._engine.evaluate(selector.expression, driver=pooled.driver, device=pooled.device)
            match found.answer:
                case Answer.NO:
                    return Selectability(Answer.NO, Answer.NO, stage=stage, expression=selector.expression)
                case Answer.ERROR:
                    return self._failed(unknown, stage, selector.expression, Code.SELECTOR_ERROR, pooled, found.message)
                case Answer.INVALID:
                    return self._failed(
                        unknown, stage, selector.expression, Code.SELECTOR_INVALID, pooled, found.message
                    )
                case Answer.UNKNOWN:
                    unknown.append(_unknown_reason(pooled, selector.expression, found))
        try:
            here = not pooled.resource_slice.per_device_node_selection or reaches(pooled.device.reach, self._node)
        except BadSelectorError as error:
            return self._failed(unknown, "node", "", Code.BAD_NODE_SELECTOR, pooled, str(error))
        if not here:
            return Selectability(Answer.NO, Answer.NO, stage="node")
        return Selectability(Answer.NO, Answer.YES, tuple(unknown)) if unknown else _YES

    def _failed(
        self, unknown: list[Reason], stage: str, expression: str, code: Code, pooled: PooledDevice, message: str
    ) -> Selectability:
        reason = Reason.of(code, f"device {pooled.id}", expression=expression, message=message, stage=stage)
        strict = Answer.NO if unknown else Answer.ERROR
        return Selectability(strict, Answer.ERROR, (*unknown, reason), stage, expression)


def _unknown_reason(pooled: PooledDevice, expression: str, found: Match) -> Reason:
    device = pooled.device
    if not found.attributes:
        return Reason.of(Code.UNSUPPORTED, f"device {pooled.id}", expression=expression, message=found.message)
    from_catalog = False
    for qualified in found.attributes:
        for name in (qualified, qualified.removeprefix(f"{pooled.driver}/")):
            value, amount = device.attributes.get(name), device.capacity.get(name)
            gap = isinstance(value, RuntimeOnly) and value.is_catalog_gap
            from_catalog = from_catalog or gap or (amount is not None and amount.guess)
    code = Code.CATALOG_UNKNOWN if from_catalog else Code.RUNTIME_ATTRIBUTE
    return Reason.of(code, f"device {pooled.id}", expression=expression, attributes=found.attributes)

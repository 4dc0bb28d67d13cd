"""An index of pods by label, for label selectors that many pods have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod


class LabelledPods:
    """Pods by label: thousands of selectors, each compared with thousands of pods, would take many seconds."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._all = tuple(pods)
        self._with: dict[tuple[str, str], list[Pod]] = {}
        for pod in self._all:
            for label in pod.labels.items():
                self._with.setdefault(label, []).append(pod)

    def perhaps(self, selector: LabelSelector) -> Sequence[Pod]:
        """The pods that the selector may select; none that it selects is missing."""
        best: Sequence[Pod] = self._all
        for requirement in selector.requirements:
            if requirement.operator == "In":
                found = [pod for value in requirement.values for pod in self._with.get((requirement.key, value), ())]
                best = min(best, found, key=len)
        return best

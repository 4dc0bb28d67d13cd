"""Models whose weights fit into the GPUs of a plan, while the context that vLLM gives them by default does not.

vLLM takes the context from the model where no option limits it, and stops at the start if the KV cache has no room for
one request of that length (vllm-project/vllm issue 19407, 2025-06; `--max-model-len auto` only where it is asked for,
issue 41364).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final

from autoscaler.advice.models.memory import Placed, TooOld, TooSmall, placed_models, unfit
from autoscaler.kube.containers import CONTEXT_TOKENS
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass
from instance_catalog.types.catalog import Catalog

# Of each GPU beside weights and KV cache, at the least (vLLM measures 1.4 GiB of activations for a 7B model, issue
# 13882).
_BESIDE: Final = 2**30
# Whose configs or runtimes, which may not be in the files, add arguments.
_ADDED_TO: Final = ("InferenceService", "LLMInferenceService")


@dataclass(frozen=True, slots=True)
class TooLong:
    """Pods of vLLM without a limit for the context: the first and how many there are, the GPUs of its model, and what
    the KV cache of one request of the model's context takes and what the GPUs leave for it, in GiB; `tokens` of that
    context, and for how many there is `room`."""

    pod: str
    pods: int
    gpus: str  # "1 × L4"
    context: float
    left: float
    tokens: int = CONTEXT_TOKENS

    @property
    def room(self) -> int:
        """In whole thousands of 1024: an option is written so."""
        return int(self.left / self.context * self.tokens) // 1024 * 1024


Unfit = TooSmall | TooOld | TooLong


def too_long(placed: Sequence[Placed]) -> TooLong | None:
    """The `placed` pods whose vLLM stops for its context, without those that have no room for the weights anyway."""
    found = [one for one in placed if _left(one) < one.container.model_context and one.has_room(one.card)]
    found = [one for one in found if one.pod.owner.partition("/")[0] not in _ADDED_TO]
    if not found:
        return None
    first = found[0]
    gpus = f"{first.gpus} × {first.card.model}{' of its group' if first.gpus > first.own else ''}"
    return TooLong(first.pod.key, len(found), gpus, first.container.model_context / 2**30, _left(first) / 2**30)


def unfit_models(plan: Plan, pods: Set[str], snapshot: Snapshot, catalog: Catalog) -> Iterator[Unfit]:
    """What is wrong with the GPUs of models in a plan that is only an advice."""
    yield from unfit(plan, pods, snapshot, catalog)
    if any(one.model_context for pod in snapshot.pods if pod.key in pods for one in pod.containers):
        found = too_long([one for one in placed_models(plan, snapshot, catalog) if one.pod.key in pods])
        yield from [found] if found else []


def _left(placed: Placed) -> float:
    """Bytes of the GPUs for a KV cache, at the most."""
    return placed.left(placed.card, _BESIDE)

"""Models whose context has no room in the GPUs that their pods get: vLLM stops at the start."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.models.context import TooLong, too_long
from autoscaler.advice.models.memory import placed_models
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advised.model_texts import model_text
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

CATALOG = shipped("g6.xlarge", "g6.12xlarge", "g6e.xlarge", "g4dn.xlarge")
LONG = 16 * 2**30


def serving(card: str, *, context: int = LONG, owner: str = "", billions: float = 8) -> Pod:
    found = pod("p", "c", node_selector=FrozenMap({labels.ACCELERATOR: card}))
    (container,) = found.containers
    named = replace(container, model_billions=billions, serves_model=True, model_context=context, claims=("c",))
    return replace(found, containers=(named,), owner=owner)


def told(asking: Pod, count: int = 1) -> TooLong | None:
    state = snapshot([asking], [claim("c", gpus(count))])
    plan = plan_for(state, CATALOG, Policy(), NOW)
    assert not plan.left_out
    return too_long(tuple(placed_models(plan, state, CATALOG)))


def test_a_context_that_has_no_room_beside_the_weights() -> None:
    found = told(serving("nvidia-l4"))
    assert found is not None
    assert (found.pod, found.pods, found.gpus, found.context, round(found.left)) == ("default/p", 1, "1 × L4", 16, 5)
    assert 32_768 < found.room < 40_000
    problem, step = model_text(found)
    assert "for the 131,072 tokens of the model the KV cache needs 16Gi, its 1 × L4 leaves about 5Gi" in problem
    assert step.startswith(f"write --max-model-len, less than {found.room}, or select GPUs with more memory by ")


@pytest.mark.parametrize(
    ("asking", "count"),
    [
        (serving("nvidia-l40s"), 1),
        (serving("nvidia-l4"), 4),
        (serving("nvidia-l4", context=2**30), 1),
        (serving("nvidia-l4", context=0), 1),
        (serving("nvidia-t4"), 1),  # not even the weights have room
        (serving("nvidia-l4", owner="InferenceService/x"), 1),  # its runtime may limit the context
    ],
)
def test_contexts_that_have_room_or_are_not_known(asking: Pod, count: int) -> None:
    assert told(asking, count) is None


@pytest.mark.parametrize("context", [0, LONG])
def test_an_advice_tells_it_too(context: int) -> None:
    asking = serving("nvidia-l4", context=context)
    asking = replace(asking, node_selector=asking.node_selector.with_items({"team": "a"}))
    state = snapshot([asking], [claim("c", gpus(1))])
    plan = plan_for(state, CATALOG, Policy(considered=1000), NOW)
    (line,) = advice_lines(advise(state.pods[0], state, CATALOG, plan, Policy(), NOW, most=1))
    assert "1 × g6.xlarge" in line
    assert ("write --max-model-len" in line) is bool(context)

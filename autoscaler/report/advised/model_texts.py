"""Models that do not fit into the GPUs of a plan, or of a machine in an advice, in sentences."""

from __future__ import annotations

from autoscaler.advice.models.context import TooLong, Unfit
from autoscaler.advice.models.memory import TooOld, TooSmall
from autoscaler.report.words import few, money
from instance_catalog.kubernetes.labels import ACCELERATOR


def model_text(found: Unfit) -> tuple[str, str]:
    """What is wrong with the GPUs that the pods of a model get, and the next step."""
    if isinstance(found, TooLong):
        return _long(found)
    return _small(found) if isinstance(found, TooSmall) else _old(found)


def _small(found: TooSmall) -> tuple[str, str]:
    """That models do not fit into the GPUs that their pods get, or hardly, and which ones hold them."""
    step = "ask for more GPUs for it, or select such as have more memory (`foreslice catalog list -o wide`)"
    if found.instead is not None:
        keys = " or ".join(f"{ACCELERATOR}: {key}" for key in found.instead.accelerators)
        nodes = " and ".join(f"{count} × {name}" for name, count in found.instead.launches)
        step = f"with {keys} in nodeSelector the plan is {nodes} for {money(found.instead.usd_per_hour)} $/h"
    elif found.accelerators:
        cheapest = found.accelerators[0][1]
        names = [name for name, _ in found.accelerators]
        names[0] += f" (from {money(cheapest)} $/h)" if cheapest is not None else ""
        step = f"ask for more GPUs for it, or select GPUs that hold it, by {ACCELERATOR}: {few(names)}"
    problem = (
        f"the weights of its model with {found.billions:g} billion parameters take about {found.weights:.0f}Gi in "
        f"{found.bits} bits, and its {found.gpus} {found.memory}: "
    )
    lacks = "bfloat16 needs compute capability 8.0, and vLLM stops there if --dtype or an old version asks for it"
    besides = f"; besides, {lacks}" if found.without_bfloat16 else ""
    if found.surely:
        unless = {16: "unless they are quantised ", 8: "unless they are quantised further "}.get(found.bits, "")
        return f"{problem}kube-scheduler puts it there, and {unless}the model does not load{besides}", step
    return (
        f"{problem}that hardly leaves room for activations and the KV cache of a model server"
        f"{'' if found.share else ' (vLLM takes about 0.9 of the memory by default)'}, which may not start{besides}"
    ), step


def _old(found: TooOld) -> tuple[str, str]:
    """That vLLM stops on GPUs of before Ampere, and what helps."""
    card = f"gets {found.gpu}, whose compute capability is {found.capability}"
    step = f"select a GPU of Ampere or later by {ACCELERATOR}"
    if found.method and found.runs:
        problem = f"{card}: quantisation by {found.method} needs {found.wants} or more, up to version 0.15 at least"
        step = f"select a GPU that has it by {ACCELERATOR}"
    elif found.runs:
        problem = (
            f"{card}: up to version 0.8.4 it stops there if the model is published in bfloat16, which needs 8.0, and "
            "any version if --dtype says so"
        )
        step = f"write --dtype=half, or {step}"
    else:
        problem = f"{card}: vLLM needs 7.0 or more"
    example = f", such as {' or '.join(found.instead)}" if found.instead else " (`foreslice catalog list -o wide`)"
    return f"serves its model with vLLM and {problem}", f"{step}{example}"


def _long(found: TooLong) -> tuple[str, str]:
    """That vLLM stops for the context of its model, and what helps."""
    verb = "leaves" if found.gpus.startswith("1 ") else "leave"
    problem = (
        f"serves its model with vLLM, and nothing visible limits the context: for the {found.tokens:,} tokens of the "
        f"model the KV cache needs {found.context:.0f}Gi, its {found.gpus} {verb} about {found.left:.0f}Gi beside the "
        "weights, and vLLM stops at the start"
    )
    step = f"write --max-model-len, less than {found.room}, or select GPUs with more memory by {ACCELERATOR}"
    return problem, step

"""Workloads as documents: the same input for Foreslice and for what people would run instead.

A document is {"types": [{"name", "model", "gpus", "usd_per_hour"}], "pods": [{"name", "cpu", "memory", "requests":
[{"count", "selector"}]}]}. Every type has 192 CPUs, 2000 Gi and 250 pods; its devices have the attribute `productName`
(the model). A document without types is for the shipped catalog, without a pool.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Document: TypeAlias = dict[str, Any]
_GPUS: Final = (1, 1, 2, 4, 8)


def instance_type(name: str, model: str, gpus: int, usd_per_hour: float) -> Document:
    """A type of the document."""
    return {"name": name, "model": model, "gpus": gpus, "usd_per_hour": round(usd_per_hour, 4)}


def product(model: str) -> str:
    """A selector of one model."""
    return f'device.attributes["gpu.nvidia.com"].productName == "{model}"'


def pod(name: str, *requests: tuple[int, str], cpu: int | str = 1) -> Document:
    """A pod with one claim of these counts and selectors ("" for any device)."""
    return {"name": name, "cpu": cpu, "requests": [{"count": c, "selector": s} for c, s in requests]}


def mixed(pods: int, *, times: int = 1) -> Document:
    """100 types, or so many `times` as many, 40 % of them with GPUs; equal pods of five sizes."""
    models = range(10 * times)
    types = [
        instance_type(f"m{m}-g{g}", f"MODEL{m % 3}", g, g * (1 + 0.1 * m)) for m in models for g in (1, 2, 4, 8)
    ] + [instance_type(f"cpu-{i}", "", 0, 0.1) for i in range(60 * times)]
    return {"types": types, "pods": [pod(f"p-{i}", (_GPUS[i % 5], product("MODEL1"))) for i in range(pods)]}


def distinct(pods: int) -> Document:
    """The types of `mixed`; every pod with CPUs (1 to 40), a count and a model of its own."""
    draw, document = random.Random(1), mixed(pods)
    for entry in document["pods"]:
        entry["cpu"] = draw.randint(1, 40)
        entry["requests"] = [{"count": draw.choice(_GPUS), "selector": product(f"MODEL{draw.randint(0, 2)}")}]
    return document


def fragmented(pods: int) -> Document:
    """One GPU each, where the largest machine is not the cheapest per GPU."""
    types = [instance_type(f"g{gpus}", "H100", gpus, usd) for gpus, usd in ((1, 1), (4, 4), (8, 10))]
    types.append(instance_type("cpu", "", 0, 0.1))
    return {"types": types, "pods": [pod(f"p-{i}", (1, "")) for i in range(pods)]}


def blowup(gpus: int) -> Document:
    """20 ordinary pods, and one that wants all the GPUs of a machine and one that does not exist."""
    types = [instance_type(f"g{gpus}", "H100", gpus, gpus), instance_type("g8", "H100", 8, 8)]
    odd = pod("odd", (gpus, ""), (1, product("B200")), cpu=32)
    return {"types": types, "pods": [odd] + [pod(f"p-{i}", (1, "")) for i in range(20)]}


def eights(pods: int) -> Document:
    """Eight H100s each and CPUs of their own, over the shipped catalog."""
    draw = random.Random(2)
    h100 = 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'
    return {"pods": [pod(f"p-{i}", (8, h100), cpu=f"{draw.randint(1000, 90000)}m") for i in range(pods)]}


def many(pods: int) -> Document:
    """Each with milli-CPUs and memory of its own, a tenth as many kinds of claims, over the shipped catalog.

    CPUs are what there is least of beside most GPUs.
    """
    draw = random.Random(3)
    kinds = [(draw.choice(_GPUS), draw.randint(8_000, 79_000)) for _ in range(max(1, pods // 10))]
    document: Document = {"pods": []}
    for number in range(pods):
        count, least = draw.choice(kinds)
        selector = f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{least}Mi")) >= 0'
        entry = pod(f"p-{number}", (count, selector), cpu=f"{count * draw.randint(2000, 14000)}m")
        entry["memory"] = f"{count * draw.randint(2000, 40000)}Mi"
        document["pods"].append(entry)
    return document


def warming() -> Document:
    """Another document that makes a plan load everything: enough different pods for HiGHS."""
    draw = random.Random(4)
    types = [instance_type(f"warm-{g}", "WARM", g, 2 * g) for g in (1, 2, 4)]
    pods = [pod(f"w-{i}", (draw.choice((1, 2, 4)), product("WARM")), cpu=i + 1) for i in range(14)]
    return {"types": types, "pods": pods}


KINDS: Final[dict[str, Callable[[int], Document]]] = {
    "mixed": mixed,
    "distinct": distinct,
    "frag": fragmented,
    "blowup": blowup,
    "eights": eights,
    "many": many,
}

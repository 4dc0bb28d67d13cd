"""A pod that leaves most accelerators of its machine unused, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.advice.cheaper_types import Less, Smaller
from autoscaler.lint.advice import surprise
from autoscaler.report.words import money
from instance_catalog.diagnostic import Diagnostic


def oversized_text(found: Smaller) -> str:
    """The smaller machine, and what the pod would request there; beside a change."""
    return f"{_unused(found)}; it fits with {', '.join(found.requests.texts)}"


def less_requested(found: Less | None) -> Iterator[Diagnostic]:
    """The same as a warning of a plan, with what it costs then."""
    if found is not None:
        nodes = " and ".join(f"{count} × {name}" for name, count in found.launches)
        requests = ", ".join(found.smaller.requests.texts)
        step = f"if that is enough, request {requests}: then the plan is {nodes} for {money(found.usd_per_hour)} $/h"
        yield surprise(f"Pod {found.pod}", (), _unused(found.smaller), step, others=found.pods - 1)


def _unused(found: Smaller) -> str:
    machine, launched = found.machine, found.launched
    model = launched.accelerator.model if launched.accelerator else ""
    price = f", for {money(machine.price.usd_per_hour)} $/h," if machine.price else ""
    little = " and ".join(dict.fromkeys(name for amounts in found.requests.amounts.values() for name in amounts))
    return (
        f"uses {found.used} of {launched.device_count} {model} of {launched.name}, because {machine.name} with "
        f"{machine.device_count}{price} has too little {little} for it"
    )

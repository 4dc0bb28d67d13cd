"""A predicted amount without a source decides nothing."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector
from autoscaler.dra.inventory.cel_selectors import CelSelectors
from autoscaler.dra.inventory.selectors import Answer
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, Device, RuntimeOnly

GIVEN = {
    "memory": Capacity(Quantity.parse("80Gi"), guess=True),
    "engines": Capacity(Quantity.of(7)),
}
GPU = Device("gpu-0", capacity=FrozenMap(GIVEN))


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("@.memory.compareTo(quantity('40Gi')) >= 0", Outcome.UNKNOWN),
        ("@.memory.isGreaterThan(quantity('100Gi'))", Outcome.UNKNOWN),
        ("@.engines.compareTo(quantity('7')) == 0", Outcome.TRUE),
        ("has(@.memory)", Outcome.TRUE),
        ("@.engines.compareTo(quantity('8')) == 0 && @.memory.compareTo(quantity('40Gi')) >= 0", Outcome.FALSE),
    ],
)
def test_what_depends_on_a_guess_is_unknown(expression: str, outcome: Outcome) -> None:
    program = compile_selector(expression.replace("@", 'device.capacity["gpu.example.com"]'), REFERENCE)
    assert isinstance(program, Program), program
    found = program.evaluate(DeviceView.of("gpu.example.com", GPU, REFERENCE))
    assert found.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert found.unknown_attributes == ("gpu.example.com/memory",)


@pytest.mark.parametrize(("capacity", "answer"), [("memory", Answer.UNKNOWN), ("engines", Answer.YES)])
def test_the_allocator_is_told_that_it_is_unknown(capacity: str, answer: Answer) -> None:
    expression = f"device.capacity['gpu.example.com'].{capacity}.compareTo(quantity('7')) >= 0"
    assert CelSelectors(REFERENCE).evaluate(expression, driver="gpu.example.com", device=GPU).answer is answer


def _about(expression: str) -> Outcome:
    """The answer for a GPU of 11Gi to 12Gi that is a Tesla T4 or an NVIDIA T4."""
    about = Capacity(Quantity.parse("12Gi"), guess=True, bounds=(Quantity.parse("11Gi"), Quantity.parse("12Gi")))
    name = RuntimeOnly("string", "catalog:t4/name", ("Tesla T4", "NVIDIA T4"))
    gpu = Device("gpu-0", FrozenMap({"name": name}), FrozenMap({"memory": about}))
    text = expression.replace("@", 'device.capacity["gpu.example.com"]').replace(
        "#", 'device.attributes["gpu.example.com"]'
    )
    program = compile_selector(text, REFERENCE)
    assert isinstance(program, Program), program
    return program.evaluate(DeviceView.of("gpu.example.com", gpu, REFERENCE)).outcome


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("@.memory.compareTo(quantity('500Gi')) >= 0", Outcome.FALSE),
        ("@.memory.compareTo(quantity('12Gi')) > 0", Outcome.FALSE),
        ("@.memory.compareTo(quantity('12Gi')) >= 0", Outcome.UNKNOWN),
        ("@.memory.compareTo(quantity('11Gi')) >= 0", Outcome.TRUE),
        ("@.memory.compareTo(quantity('12Gi')) <= 0", Outcome.TRUE),
        ("@.memory.compareTo(quantity('11500Mi')) >= 0", Outcome.UNKNOWN),
        ("@.memory.isGreaterThan(quantity('10Gi'))", Outcome.TRUE),
        ("quantity('10Gi').isGreaterThan(@.memory)", Outcome.FALSE),
        ("@.memory == quantity('40Gi')", Outcome.FALSE),
        ("@.memory != quantity('40Gi')", Outcome.TRUE),
        ("@.memory == quantity('12Gi')", Outcome.UNKNOWN),
        # What is computed of an amount within bounds is not within these bounds.
        ("@.memory.add(quantity('500Gi')).isGreaterThan(quantity('100Gi'))", Outcome.UNKNOWN),
        ("-@.memory.compareTo(quantity('500Gi')) == -1", Outcome.FALSE),
        ("#.name == 'NVIDIA H100 80GB HBM3'", Outcome.FALSE),
        ("#.name.endsWith('T4')", Outcome.TRUE),
        ("#.name.matches('^Tesla')", Outcome.UNKNOWN),
        ("#.name == 'NVIDIA H100' || @.memory.compareTo(quantity('8Gi')) > 0", Outcome.TRUE),
    ],
)
def test_what_is_known_in_part_decides_what_it_can(expression: str, outcome: Outcome) -> None:
    assert _about(expression) is outcome

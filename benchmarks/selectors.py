"""CEL: selectors as people write them, against cel-go.

The device is a GPU that the catalog predicts for p5.48xlarge, so selectors read what they read in production.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector
from autoscaler.kube.resource_slice import parse_resource_slice
from benchmarks.machines import GPU, slices_of
from benchmarks.timing import Row, best_median
from tests.oracle.upstream import Json, Release, Upstream

_REPEAT = 300  # of upstream, which reports its median
_BATCH = 100
_G, _C = f'device.attributes["{GPU}"]', f'device.capacity["{GPU}"]'

SELECTORS: Sequence[str] = (
    f'{_G}.productName == "NVIDIA H100 80GB HBM3"',
    f'{_G}.architecture == "Hopper"',
    f'{_C}.memory.compareTo(quantity("80000Mi")) >= 0',
    f'{_C}.memory.isGreaterThan(quantity("40Gi"))',
    f'{_G}.productName.lowerAscii().contains("h100")',
    f'{_G}.productName.matches("H100|H200")',
    f'device.driver == "{GPU}"',
    f'device.driver == "{GPU}" && {_G}.type == "gpu"',
    f'{_G}.driverVersion.compareTo(semver("535.0.0")) >= 0',
    f'{_G}.cudaComputeCapability.isGreaterThan(semver("8.0.0"))',
    f'has({_G}.profile) && {_G}.profile == "3g.40gb"',
    f'{_G}.?profile.orValue("") == ""',
    f'{_G}.architecture in ["Ampere", "Hopper", "Blackwell"]',
    f'"{GPU}" in device.attributes && {_G}.architecture != "Volta"',
    f'!(has({_G}.productName) && {_G}.productName.startsWith("Tesla"))',
    f'cel.bind(gpu, {_G}, gpu.type == "gpu" && gpu.brand == "Nvidia")',
    f'{_G}.exists(name, name == "architecture")',
    f'{_G}.architecture == "Hopper" && {_C}.memory.isGreaterThan(quantity("40Gi")) '
    f'&& {_G}.driverVersion.isGreaterThan(semver("550.0.0"))',
    f'{_G}.type == "mig" || {_G}.architecture == "Hopper"',
    'device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci0000:")',
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides' times of one selector."""

    warm: Row  # evaluation of a compiled program, the device converted
    again: Row  # the same question once more
    compiling: Row


def compared(upstream: Upstream, release: Release) -> Iterator[Comparison]:
    """Ask both sides every selector. Raises AssertionError if they disagree: then times mean nothing."""
    device = slices_of("p5.48xlarge", "nvidia")[0]
    for expression in SELECTORS:
        upstream.ask(_question(expression, device))
        yield _compared(expression, device, release, upstream.answer())


def _question(expression: str, piece: Json) -> Json:
    device = {"driver": piece["spec"]["driver"], **_without_name(piece)}
    asked = {"expression": expression, "device": device}
    return {"select": asked, "features": {"ConsumableCapacity": True}, "seconds": 10, "repeat": _REPEAT}


def _without_name(piece: Json) -> Json:
    return {key: value for key, value in piece["spec"]["devices"][0].items() if key != "name"}


def _compared(expression: str, piece: Json, release: Release, answer: Json) -> Comparison:
    program = compile_selector(expression, release.profile)
    assert isinstance(program, Program), expression
    parsed = parse_resource_slice(piece)
    view = DeviceView.of(parsed.driver, parsed.devices[0], release.profile)
    found = program.evaluate(view)
    assert found.outcome.value == answer["outcome"], expression

    def evaluate() -> None:
        view.answers.clear()
        program.evaluate(view)

    number = count()

    def compile_anew() -> None:  # compiled selectors are remembered by their text
        compile_selector(f"{expression} // {next(number)}", release.profile)

    theirs = answer["nanoseconds"] / 1000
    name = expression.replace(_G, "gpu").replace(_C, "capacity")[:57]
    return Comparison(
        Row(name, best_median(evaluate, batch=_BATCH), theirs),
        Row(name, best_median(lambda: program.evaluate(view), batch=_BATCH), theirs),
        Row(name, best_median(compile_anew), answer["compileNanoseconds"] / 1000),
    )

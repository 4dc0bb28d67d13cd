"""What Foreslice itself fails to evaluate is unknown, told once, and takes nothing with each evaluation."""

from __future__ import annotations

import traceback

import pytest

from autoscaler.cel.common.evaluation import Frame, charge
from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import DEFECT, Program, compile_selector
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device


def view() -> DeviceView:
    return DeviceView.of("gpu.example.com", Device("gpu-0"), REFERENCE)


def compiled(expression: str) -> Program:
    program = compile_selector(expression, REFERENCE)
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("defect", [TypeError("x"), MemoryError(), RecursionError(), OverflowError("y"), KeyError("z")])
def test_a_defect_here_is_unknown_and_logged(defect: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def run(frame: Frame) -> object:
        charge(frame, 3)
        raise defect

    program = replace(compiled("true"), _run=run, mark=object())
    found = program.evaluate(view())
    assert (found.outcome, found.cost) == (Outcome.UNKNOWN, 3)
    assert found.message.startswith(f"{DEFECT} ({type(defect).__name__}")
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_defect_that_every_device_meets_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("autoscaler.cel.program._LOGGED", set())

    def run(frame: Frame) -> object:
        raise LookupError(f"{len(caplog.records)}")

    for number in range(20):
        program = replace(compiled(f"device.driver == 'd{number}'"), _run=run, mark=object())
        assert program.evaluate(view()).outcome is Outcome.UNKNOWN
    assert len(caplog.records) == 1


def test_a_defect_while_compiling_holds_no_more_frames_with_each_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    defect = RecursionError("too deep")

    def check(*_: object) -> None:
        raise defect

    monkeypatch.setattr("autoscaler.cel.program.Checker.check", check)
    program = compiled("device.driver == 'another driver that no other test asks for'")
    seen = view()
    lengths = set()
    for _ in range(10):
        seen.answers.clear()
        assert program.evaluate(seen).outcome is Outcome.UNKNOWN
        lengths.add(len(list(traceback.walk_tb(defect.__traceback__))))
    assert len(lengths) == 1


def test_a_defect_while_compiling_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("autoscaler.cel.program.Checker.check", check)
    found = compiled("device.driver == 'a driver that no other test asks for'").evaluate(view())
    assert found.outcome is Outcome.UNKNOWN
    assert DEFECT in found.message

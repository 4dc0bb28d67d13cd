"""What is kept of selectors is bounded by their length, and answers keep no selector."""

from __future__ import annotations

import gc
import weakref

import pytest

from autoscaler.cel.common import kept_texts
from autoscaler.cel.common.evaluation import Run
from autoscaler.cel.common.kept_texts import KeptTexts
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import _COMPILED, Program, compile_selector
from autoscaler.dra.inventory.cel_selectors import CelSelectors
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device

DEVICE = Device("x", FrozenMap({"kept": 1}))


def test_long_texts_are_forgotten_before_many_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_texts, "MOST_CHARACTERS", 1_000)
    kept: KeptTexts[int] = KeptTexts()
    for number in range(100):
        kept.keep(f"{number:02}", number)
    assert len(kept) == 100
    assert kept.of("07") == 7
    kept.keep("x" * 900, 1)
    assert (len(kept), kept.of("07"), kept.of("x" * 900)) == (1, None, 1)


def test_programs_are_not_kept_by_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may have a new selector of 10 kB in every reconcile; compiled, each takes more than a megabyte."""
    monkeypatch.setattr(kept_texts, "MOST_CHARACTERS", 50_000)
    engine, seen = CelSelectors(REFERENCE), list[weakref.ref[Run]]()
    view = DeviceView.of("d", DEVICE, REFERENCE)
    for number in range(60):
        expression = f'device.attributes["d"].kept == {number}' + " || false" * 400
        engine.evaluate(expression, driver="d", device=DEVICE)
        program = compile_selector(expression, REFERENCE)
        assert isinstance(program, Program)
        program.evaluate(view)
        seen.append(weakref.ref(program._run))
    del program
    gc.collect()
    assert sum(ref() is not None for ref in seen) < 30
    _COMPILED.clear()

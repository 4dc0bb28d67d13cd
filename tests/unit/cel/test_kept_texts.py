"""What is kept of selectors is bounded by the memory that it takes, and answers keep no selector."""

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


def test_the_oldest_texts_make_room_and_only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were all of them forgotten, the pods of a cluster with many selectors would be unknown again every few plans."""
    monkeypatch.setattr(kept_texts, "MOST_BYTES", 1_000)
    kept: KeptTexts[int] = KeptTexts()
    for number in range(100):
        kept.keep(f"{number:02}", number, nodes=0)
    assert len(kept) == 100
    assert kept.of("07") == 7
    kept.keep("x" * 900, 1, nodes=0)
    assert (kept.of("07"), kept.of("99"), kept.of("x" * 900)) == (None, 99, 1)
    assert 2 * (len(kept) - 1) + 900 <= 1_000
    kept.keep("y" * 2_000, 2, nodes=0)
    assert (len(kept), kept.of("y" * 2_000)) == (1, 2)


def test_a_text_of_many_expressions_takes_more_room() -> None:
    """Selectors of 535 characters with a dozen expressions: 1,300 of them are kept, as usual ones."""
    usual: KeptTexts[int] = KeptTexts()
    dense: KeptTexts[int] = KeptTexts()
    for number in range(1_300):
        usual.keep(f"{number:0535}", number, nodes=12)
        dense.keep(f"{number:010000}", number, nodes=4_000)
    assert len(usual) == 1_300
    assert len(dense) < 80


def test_the_number_of_texts_is_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_texts, "MOST_TEXTS", 16)
    kept: KeptTexts[int] = KeptTexts()
    for number in range(17):
        kept.keep(str(number), number, nodes=0)
    assert [number for number in range(17) if kept.of(str(number)) is None] == [0, 1, 2]


def test_programs_are_not_kept_by_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may have a new selector of 10 kB in every reconcile; compiled, each takes more than a megabyte."""
    monkeypatch.setattr(kept_texts, "MOST_BYTES", 4_000_000)
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

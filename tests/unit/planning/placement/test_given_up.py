"""A class that has spent its share is not asked about any more, and keeps the places that are known."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.evaluation import Purse
from autoscaler.model.reason import Code
from autoscaler.model.verdict import Unknown, Verdict
from autoscaler.planning.packing.problem import Budget
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.placement.trial import PackingOracle
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from tests.builders import SMALL, claim, gpus, machine, pod, snapshot
from tests.unit.planning.placement.packing_inputs import packing_input

CATALOG = Catalog.of([machine("one", SMALL, 1, "1"), machine("two", SMALL, 2, "2"), machine("four", SMALL, 4, "4")])
STATE = snapshot([pod("p", "c"), pod("q", "d")], [claim("c", gpus(4)), claim("d", gpus(1))])


def _spend(packing: PackingInput, item: int) -> None:
    account = packing.trials.ledger.accounts[item]
    account.own, account.shared, account.kin = 0, Purse(0), Purse(0)


def _four(packing: PackingInput) -> int:
    return next(i for i, found in enumerate(packing.classes) if found.sample.pods[0].name == "p")


def _left(packing: PackingInput) -> tuple[int, ...]:
    supply = packing.problem({0: 1, 1: 1}, {}, packing.everything(), frozenset())
    return packing.solved(supply.problem, Budget()).left


def test_what_is_given_up_is_asked_once_and_others_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    packing = packing_input(STATE, CATALOG)
    item, asked = _four(packing), list[tuple[int, int]]()
    first = PackingOracle.verdict

    def counted(oracle: PackingOracle, shape: int, index: int) -> Verdict:
        if index == item:
            asked.append((shape, index))
        return first(oracle, shape, index)

    monkeypatch.setattr(PackingOracle, "verdict", counted)
    _spend(packing, item)
    assert sum(_left(packing)) == 1
    assert len(asked) == 1, "the first question finds out that the share is spent"
    assert packing.trials.given_up(item)
    assert not packing.trials.given_up(1 - item)


def test_a_place_that_is_known_is_kept() -> None:
    packing = packing_input(STATE, CATALOG)
    item = _four(packing)
    assert sum(_left(packing)) == 0
    _spend(packing, item)
    largest = next(i for i, shape in enumerate(packing.shapes) if shape.candidate.instance_type.name == "four")
    assert packing.trials.takes(largest, item)
    packing.trials.ledger.check_amounts(
        item, packing.classes[item].sample.pods[0], lambda: pytest.fail("it is not paid for")
    )
    assert packing.trials.ledger.refused(item)
    assert not packing.trials.given_up(item)
    assert sum(_left(packing)) == 0


def test_whatever_is_asked_of_it_has_one_answer() -> None:
    packing = packing_input(STATE, CATALOG)
    item = _four(packing)
    _spend(packing, item)
    found = [packing.trials.verdict(shape, item) for shape in range(len(packing.shapes))]
    assert all(isinstance(verdict, Unknown) for verdict in found)
    assert {reason.code for verdict in found for reason in verdict.reasons} == {Code.WORK_BUDGET}
    assert len(set(map(id, found[1:]))) == 1


def test_answers_serve_all_of_a_kin_but_not_what_one_cannot_pay() -> None:
    """Equal claims, other amounts: what is refused to who has spent its share is not refused to others."""
    state = snapshot([pod("p", "c"), pod("q", "d", cpu="2")], [claim("c", gpus(1)), claim("d", gpus(1))])
    packing = packing_input(state, CATALOG)
    spent, other = _four(packing), 1 - _four(packing)
    assert packing.trials.kin(spent) == packing.trials.kin(other)
    _spend(packing, spent)
    shapes = range(len(packing.shapes))
    assert not any(packing.trials.fits(shape, spent) for shape in shapes)
    assert all(packing.trials.fits(shape, other) for shape in shapes)


def test_who_selects_other_nodes_is_no_kin() -> None:
    tolerating = pod("q", "d", node_selector=FrozenMap({labels.INSTANCE_TYPE: "four"}))
    packing = packing_input(snapshot([pod("p", "c"), tolerating], [claim("c", gpus(1)), claim("d", gpus(1))]), CATALOG)
    anywhere = _four(packing)
    names = [shape.candidate.instance_type.name for shape in packing.shapes]
    assert {names[s] for s in range(len(names)) if packing.trials.fits(s, anywhere)} == {"one", "two", "four"}
    assert {names[s] for s in range(len(names)) if packing.trials.fits(s, 1 - anywhere)} == {"four"}


def test_a_reason_names_the_pod_that_it_is_about() -> None:
    """A verdict of a kin is shared, its reasons for people are not; amounts come before claims."""
    claims = {"p": claim("c", gpus(5)), "q": claim("d", gpus(5)), "r": claim("e", gpus(5))}
    pods = [pod(name, wanted.name, cpu={"p": "9999", "q": "1", "r": "2"}[name]) for name, wanted in claims.items()]
    packing = packing_input(snapshot(pods, claims.values()), CATALOG)
    asked = {found.sample.pods[0].name: item for item, found in enumerate(packing.classes)}
    for shape in range(len(packing.shapes)):
        for name in "rqp":
            found = packing.trials.explained(shape, asked[name])
            short = [Code.INSUFFICIENT_RESOURCE] if name == "p" else [Code.TOO_FEW_DEVICES]
            subject = "pod default/p" if name == "p" else f"claim {claims[name].key}"
            assert [reason.code for reason in found.reasons] == short
            assert all(str(reason.subject).startswith(subject) for reason in found.reasons)


def test_who_lacks_room_is_not_told_what_its_kin_is_told() -> None:
    claims = [claim("c", gpus(1)), claim("d", gpus(1))]
    packing = packing_input(snapshot([pod("p", "c", cpu="9999"), pod("q", "d")], claims), CATALOG)
    for item, found in sorted(enumerate(packing.classes), key=lambda entry: entry[1].sample.pods[0].name, reverse=True):
        fits = [packing.trials.fits(shape, item) for shape in range(len(packing.shapes))]
        puts = [packing.trials.put(packing.trials.empty(shape), item) for shape in range(len(packing.shapes))]
        assert fits == [found.sample.pods[0].name == "q"] * len(packing.shapes)
        assert [state is not None for state in puts] == fits

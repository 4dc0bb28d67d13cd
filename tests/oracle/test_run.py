"""What makes `make oracle` fail, and what it forgives; no Go is needed for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import cycle

import pytest

from instance_catalog.dataclass import replace
from tests.oracle import run
from tests.oracle.cases.long_names import lengthened
from tests.oracle.cases.near_equal import twin_of
from tests.oracle.cases.selector_cases import selector_case, text
from tests.oracle.comparing.alone import Alone
from tests.oracle.comparing.chance import MAP_ORDER, POOL_SIZE
from tests.oracle.comparing.comparison import RAISED, Compared, Kind, compare
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.kinds import KINDS
from tests.oracle.tally import Tally, failings
from tests.oracle.upstream import RELEASES, Given, Json, Release, Upstream

RELEASE = RELEASES["1.36"]
LOOP: Json = {"tree": ['device.attributes["d"].exists(k, k == "a")'], "devices": [{}], "lists": False, "new": False}


class Scripted(Upstream):
    """An upstream that gives its answers by turns."""

    def __init__(self, *answers: Json) -> None:
        super().__init__(RELEASE.program)
        self._answers: Iterator[Json] = cycle(answers)

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def build(self) -> None:
        pass

    def ask(self, question: Json) -> None:
        assert question["seconds"] > 0

    def answer(self) -> Json:
        return dict(next(self._answers))


def selected(outcome: str = "true", cost: int = 1) -> Json:
    return {"outcome": "decided", "answers": [{"outcome": outcome, "cost": cost}], "estimate": 9}


def compared(ours: Json, *theirs: Json, case: Json = LOOP) -> Compared:
    kind = replace(KINDS["selector"], simulated=lambda _, __: Given(ours, 0))
    return compare(kind, case, RELEASE, Scripted(*theirs))


def test_a_cost_that_varies_upstream_is_counted_as_chance() -> None:
    found = compared(selected(cost=3), selected(cost=1), selected(cost=2), selected(cost=3))
    assert (found.difference, found.chance) == (None, MAP_ORDER)


def test_a_cost_that_upstream_never_has_differs() -> None:
    found = compared(selected(cost=4), selected(cost=1), selected(cost=2), selected(cost=3))
    assert found.difference == Difference(Field.COST, "4 instead of 1", "device 0")


def test_a_cost_that_does_not_vary_differs() -> None:
    assert compared(selected(cost=3), selected(cost=1)).difference is not None


def test_a_varying_cost_without_a_loop_differs() -> None:
    case = {**LOOP, "tree": ["device.allowMultipleAllocations"]}
    assert compared(selected(cost=3), selected(cost=1), selected(cost=3), case=case).difference is not None


def test_an_outcome_is_not_forgiven_though_upstream_has_it_at_times() -> None:
    found = compared(selected("false"), selected("true"), selected("false"))
    assert found.difference is not None
    assert found.difference.field is Field.OUTCOME


def test_a_cost_is_not_forgiven_where_upstreams_outcome_varies() -> None:
    answers = (selected(cost=1), selected("runtime_error", cost=2), selected(cost=3))
    assert compared(selected(cost=3), *answers).difference is not None


def placed(*refusing: str, slices: list[Json]) -> Compared:
    """A case to which upstream answers by turns that these plugins refuse; the simulator, that none does."""

    def decided(*names: str) -> Json:
        return {"outcome": "decided", "refused": {"node": list(names)}, "scores": {}, "allocations": {}}

    kind = replace(KINDS["claim"], simulated=lambda _, __: Given(decided(), 0))
    answers = [decided(name) if name else decided() for name in refusing]
    return compare(kind, {"slices": slices}, RELEASE, Scripted(*answers))


def resource_slice(count: int) -> Json:
    return {"spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": count}}}


def test_slices_that_disagree_about_their_pool_leave_an_outcome_to_chance() -> None:
    assert placed("DynamicResources", "", slices=[resource_slice(1), resource_slice(2)]).chance is POOL_SIZE


def test_nothing_else_leaves_an_outcome_to_chance() -> None:
    assert placed("DynamicResources", "", slices=[resource_slice(2), resource_slice(2)]).difference is not None
    assert placed("DynamicResources", slices=[resource_slice(1), resource_slice(2)]).difference is not None


def test_an_exception_of_the_simulator_differs() -> None:
    def failing(_: Json, __: Release) -> Given:
        raise MemoryError("too much")

    kind = replace(KINDS["selector"], simulated=failing)
    found = compare(kind, LOOP, RELEASE, Scripted(selected()))
    assert found.difference is not None
    assert found.difference.text.startswith(RAISED)


def test_what_the_simulator_calls_unknown_is_counted() -> None:
    kind = replace(KINDS["text"], simulated=lambda _, __: Given(selected("unknown"), 0))
    found = compare(kind, {**LOOP, "tree": ['"a".matches("a")']}, RELEASE, Scripted(selected("true")))
    assert (found.difference, found.undecided) == (None, True)


def test_what_the_simulator_calls_unknown_without_a_documented_reason_differs() -> None:
    assert compared(selected("unknown"), selected("true")).difference is not None


def tally(kind: Kind, cases: int, *, unanswered: int = 0, undecided: int = 0, chances: int = 0) -> list[str]:
    found = Tally()
    found.outcomes["decided"] = cases
    found.unanswered, found.undecided, found.chances[MAP_ORDER.name] = unanswered, undecided, chances
    return list(failings(kind, found, 1000))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_run_that_compares_nothing_fails_in_every_kind(kind: Kind) -> None:
    assert any(text.startswith("0 cases compared, the minimum is") for text in tally(kind, 0))
    assert list(failings(kind, Tally(), 0))


def test_a_run_owes_most_of_what_was_asked_for() -> None:
    kind = KINDS["selector"]
    assert tally(kind, 1000) == []
    assert tally(kind, 800) == ["800 cases compared, the minimum is 891: give it more time (SECONDS) or more cases (N)"]


def test_ceilings() -> None:
    selector, allocation = KINDS["selector"], KINDS["allocation"]
    assert tally(selector, 1000, unanswered=10, chances=30) == []
    assert len(tally(selector, 1000, unanswered=11)) == 1
    assert len(tally(selector, 1000, chances=31)) == 1
    assert len(tally(selector, 1000, undecided=1)) == 1
    assert len(tally(allocation, 1000, chances=1)) == 1


def test_the_command_fails_where_the_time_is_too_short(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stub = replace(KINDS["selector"], program=lambda _: Scripted(selected()))
    monkeypatch.setitem(KINDS, "selector", stub)
    command = ["run", "--seconds", "0", "--kinds", "selector", "--releases", "1.36", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", command)
    assert run.main() == 1
    assert "FAILED selector 1.36: 0 cases compared, the minimum is 1782" in capfd.readouterr().out


def test_answers_alone_come_from_a_process_that_saw_no_other_case() -> None:
    kind, case = KINDS["selector"], selector_case("x")
    with Alone() as alone:
        assert alone.simulated(kind, case, RELEASE).answer == kind.answered(case, RELEASE).answer
        found = alone.simulated(kind, {"tree": ["true"]}, RELEASE).answer
    assert found["outcome"] == RAISED


def test_many_devices_are_told_apart_only_by_who_knows_numbers_from_truths() -> None:
    cases = [selector_case(f"fixed-{index}") for index in range(300)]
    several = [case["devices"] for case in cases if len(case["devices"]) > 1]
    told = [devices for devices in several if any(_twins(one, other) for one in devices for other in devices)]
    assert len(several) > 200
    assert len(told) > 40


def _twins(one: Json, other: Json) -> bool:
    ours, theirs = one.get("attributes", {}), other.get("attributes", {})
    changed = [name for name in ours if ours[name] != theirs.get(name)]
    return ours.keys() == theirs.keys() and len(changed) == 1 and twin_of(ours[changed[0]]) == theirs[changed[0]]


def test_no_device_publishes_one_name_twice() -> None:
    for index in range(300):
        for device in selector_case(f"fixed-{index}")["devices"]:
            for field in ("attributes", "capacity"):
                names = [n if "/" in n else f"{device['driver']}/{n}" for n in device.get(field, {})]
                assert len(names) == len(set(names))


def test_long_names_are_used_alike_and_are_no_longer_than_they_may_be() -> None:
    case = {
        "driver": "gpu.example.com",
        "e": 'device.attributes["gpu.example.com"].gen == 1 && "dev1" != ""',
        "p": "p0",
    }
    found = lengthened(case)
    assert len(found["driver"]) == 63
    assert f'["{found["driver"]}"]' in found["e"]
    assert len(found["p"]) == 249
    assert len(text([found["e"]])) == len(case["e"]) + (63 - 15) + (32 - 3) + (63 - 4)

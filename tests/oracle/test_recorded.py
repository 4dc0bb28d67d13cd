"""What once differed from Kubernetes' own code, and the parts of `make oracle` that need no Go."""

from __future__ import annotations

from collections import Counter

import pytest

from autoscaler.scheduling.filters import FILTERS
from autoscaler.scheduling.scores import SCORES
from tests.oracle.cases.allocation_cases import allocation_case
from tests.oracle.cases.selector_cases import selector_case, text
from tests.oracle.comparing.comparison import Kind
from tests.oracle.comparing.shrinking import smallest
from tests.oracle.kinds import KINDS
from tests.oracle.recorded import DATA, Recorded, recorded
from tests.oracle.upstream import RELEASES, Json, Release


@pytest.mark.parametrize("found", [pytest.param(entry, id=entry.name) for entry in recorded()])
def test_recorded_case_is_decided_as_upstream_does(found: Recorded) -> None:
    assert found.difference() is None


def test_every_recorded_file_is_replayed() -> None:
    assert len(list(recorded())) == len(list(DATA.iterdir())) > 0


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_seed_always_draws_the_same_case(kind: Kind) -> None:
    assert kind.draw("x-1") == kind.draw("x-1") != kind.draw("x-2")


@pytest.mark.parametrize("release", [RELEASES[name] for name in KINDS["allocation"].versions])
def test_random_allocations_are_read_without_problems_and_end_in_every_way(release: Release) -> None:
    kind = KINDS["allocation"]
    cases = [allocation_case(f"fixed-{index}") for index in range(200)]
    outcomes = Counter(kind.simulated(case, release).answer["outcome"] for case in cases)
    assert set(outcomes) == {"fits", "no_fit", "fatal"}
    assert min(outcomes.values()) >= 10


def test_random_selectors_end_in_every_way() -> None:
    kind = KINDS["selector"]
    cases = [selector_case(f"fixed-{index}") for index in range(300)]
    answers = [kind.answered(case, RELEASES["1.36"]).answer for case in cases]
    compiled = [one["outcome"] for answer in answers for one in answer.get("answers", ())]
    outcomes = Counter(compiled + [answer["outcome"] for answer in answers if "answers" not in answer])
    assert set(outcomes) - {"raised"} == {"true", "false", "compile_error", "runtime_error"}
    assert min(outcomes[name] for name in set(outcomes) - {"raised"}) >= 30
    assert max(len(text(case["tree"])) for case in cases) > 150


@pytest.mark.parametrize("kind", [KINDS["pool"], KINDS["list"]], ids=("pool", "list"))
def test_random_allocations_of_other_kinds_are_read_and_end_in_every_way(kind: Kind) -> None:
    cases = [kind.draw(f"fixed-{index}") for index in range(180)]
    outcomes = Counter(kind.simulated(case, RELEASES[kind.versions[0]]).answer["outcome"] for case in cases)
    assert set(outcomes) == {"fits", "no_fit", "fatal"}
    assert min(outcomes.values()) >= 10


def test_random_costs_are_on_both_sides_of_the_limit() -> None:
    kind = KINDS["cost"]
    answers = [kind.simulated(kind.draw(f"fixed-{index}"), RELEASES["1.36"]).answer for index in range(8)]
    outcomes = Counter(one["outcome"] for answer in answers for one in answer["answers"])
    assert set(outcomes) > {"runtime_error"}
    assert all(990_000 < one["cost"] < 1_003_000 for answer in answers for one in answer["answers"])


def test_random_placements_are_read_without_problems_and_meet_every_filter_and_score() -> None:
    kind = KINDS["placement"]
    answers = [kind.simulated(kind.draw(f"fixed-{index}"), RELEASES["1.36"]).answer for index in range(300)]
    refusing = Counter(name for answer in answers for names in answer["refused"].values() for name in names)
    assert set(refusing) == {"SchedulingGates", "DynamicResources", *(entry.plugin for entry in FILTERS)}
    scored = (found for answer in answers for found in answer["scores"].items())
    telling = Counter(plugin for plugin, by_node in scored if len(set(by_node.values())) > 1)
    assert set(telling) == {entry.plugin for entry in SCORES}


def test_random_claims_are_read_without_problems_and_end_in_every_way() -> None:
    kind = KINDS["claim"]
    answers = [kind.simulated(kind.draw(f"fixed-{index}"), RELEASES["1.36"]).answer for index in range(400)]
    refusing = Counter(name for answer in answers for names in answer["refused"].values() for name in names)
    assert set(refusing) == {"DynamicResources", "DynamicResources!", "NodeResourcesFit", "NodeResourcesFit?"}
    given = Counter(name for answer in answers for found in answer["allocations"].values() for name in found)
    assert min(refusing.values()) >= 5
    assert min(given[name] for name in ("c0", "c1", "<extended-resources>")) >= 5


def test_a_difference_in_a_placement_is_made_small() -> None:
    kind = KINDS["placement"]
    drawn = (kind.draw(f"fixed-{index}") for index in range(300))
    case = next(case for case in drawn if any("images" in node["status"] for node in case["nodes"]))
    small = smallest(case, lambda case: any(node.get("status", {}).get("images") for node in case["nodes"]))
    assert small["nodes"] == [{"status": {"images": [{}]}}]
    assert small["pods"] == small["namespaces"] == []


def test_a_difference_in_an_allocation_is_made_small() -> None:
    def differs(case: Json) -> bool:
        devices = [device for slice_ in case["slices"] for device in slice_.get("spec", {}).get("devices", ())]
        return any(device.get("taints") for device in devices) and bool(case["claims"])

    case = next(case for index in range(100) if differs(case := allocation_case(f"fixed-{index}")))
    small = smallest(case, differs)
    assert small["slices"] == [{"spec": {"devices": [{"taints": [{}]}]}}]
    assert small["claims"] == [{}]
    assert small["held"] == small["classes"] == []


def test_a_difference_in_a_selector_is_made_small() -> None:
    tree = ["§ && §", ["§ || §", ["true"], ["§ == §", ["1 / 0"], ["2"]]], ["false"]]
    small = smallest({"tree": tree, "device": {"driver": "x"}}, lambda case: "1 / 0" in text(case["tree"]))
    assert small == {"tree": ["1 / 0"], "device": {}}

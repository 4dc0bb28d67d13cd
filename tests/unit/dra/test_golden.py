"""3,198 recorded cases of the Go library, under both versions; known differences are listed and checked to differ."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from autoscaler.dra.allocation.allocator import Allocated, NotAllocated, SearchBudget
from autoscaler.dra.inventory.cel_selectors import CelSelectors
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from tests.unit.dra.golden import UNLIMITED, answer, difference
from tests.unit.dra.reader import DATA, Json, lines

V37 = profile_for("1.37.2")
NAMED = "alloc-golden-named.jsonl.gz"
RANDOM = "alloc-golden-a.jsonl.gz"


def named(profile: KubernetesProfile) -> Iterator[tuple[Json, Json]]:
    key = "expect" if profile is REFERENCE else "expect_0.37.2"
    return ((line["case"], line[key]) for line in lines(NAMED))


def random(profile: KubernetesProfile) -> Iterator[tuple[Json, Json]]:
    changed: dict[str, Json] = {}
    if profile is V37:
        changed = {line["id"]: line["expect"] for line in lines("alloc-golden-a-v0.37-diff.jsonl.gz")}
    return ((line["case"], changed.get(line["case"]["id"], line["expect"])) for line in lines(RANDOM))


def known_differences(profile: KubernetesProfile) -> set[str]:
    listed: dict[str, list[str]] = json.loads((DATA / "known-differences.json").read_text())
    return set(listed[f"{profile.minor[0]}.{profile.minor[1]}"])


@pytest.mark.slow
@pytest.mark.parametrize("profile", [REFERENCE, V37], ids=["v0.36.3", "v0.37.2"])
@pytest.mark.parametrize(("cases", "count"), [(named, 198), (random, 3000)], ids=["named", "random"])
def test_decides_as_the_go_library(cases: object, count: int, profile: KubernetesProfile) -> None:
    assert callable(cases)
    differing: dict[str, str] = {}
    seen = set()
    for case, expect in cases(profile):
        seen.add(case["id"])
        found = difference(answer(case, profile, engine=None, budget=UNLIMITED), expect)
        if found is not None:
            differing[case["id"]] = found
    assert len(seen) == count
    known = known_differences(profile) & seen
    assert {case_id: text for case_id, text in differing.items() if case_id not in known} == {}
    assert known <= set(differing), "these match now: take them off the list"


def test_the_unpruned_search_takes_the_same_steps_as_the_go_library() -> None:
    plain = SearchBudget(steps=20_000, upstream_steps=10**18, prune=False)
    engine = CelSelectors(REFERENCE)
    compared = 0
    for case, expect in named(REFERENCE):
        if expect["steps"] > plain.steps or case["id"] in known_differences(REFERENCE):
            continue
        outcome = answer(case, REFERENCE, engine=engine, budget=plain)
        if isinstance(outcome, Allocated | NotAllocated):
            assert (case["id"], outcome.steps) == (case["id"], expect["steps"])
            compared += 1
    assert compared > 150

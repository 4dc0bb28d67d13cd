"""Condition Ready of a pool: what of it cannot be used, and what its provider answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from autoscaler.checks.check import held_back, pool_conditions
from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.model.capacity import (
    Baseline,
    CapacityPool,
    Disruption,
    DisruptionBudget,
    GroupOffering,
    Mode,
    NodeTemplateRef,
)
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import candidates_of
from autoscaler.report.checks_text import verdict_of
from instance_catalog.dataclass import replace
from tests.builders import CATALOG, NOW, ours, plan, snapshot

POOL = CapacityPool("team", mode=Mode.ACT, node_template=NodeTemplateRef("KwokNodeTemplate", "k"))
SERVING: Mapping[str, Reason | None] = {"KwokNodeTemplate": None}
LATER = NOW + timedelta(minutes=10)
OFFERED = [
    found for found in candidates_of(snapshot([], pools=(POOL,)), CATALOG, Policy(), now=NOW) if found.barred is None
]


def ready(state: Snapshot, serving: Mapping[str, Reason | None] | None = SERVING) -> tuple[PoolCondition, bool]:
    """The finding, and whether the pool goes on acting."""
    found = pool_conditions(state, plan(state), CATALOG, policy=Policy(), now=NOW, serving=serving)
    (finding,) = (f for f in found if f.type is ConditionType.READY)
    (pool,) = held_back(state, [finding]).pools
    return finding, pool.acts


@pytest.mark.parametrize(
    ("pool", "told"),
    [
        pytest.param(
            replace(POOL, drivers=("nvdia",)),
            "spec.drivers.profiles: no driver profile 'nvdia'; did you mean 'nvidia'?",
            id="driver",
        ),
        pytest.param(
            replace(POOL, baselines=(Baseline(1), Baseline(1, "* * * * *", "Mars/Base"))),
            "spec.baseline[1]: time zone 'Mars/Base' is not known. Use an IANA name",
            id="time-zone",
        ),
        pytest.param(
            replace(POOL, disruption=Disruption(budgets=(DisruptionBudget("1", "99 * * * *"),))),
            "spec.disruption.budgets[0]: schedule '99 * * * *'",
            id="schedule",
        ),
        pytest.param(
            replace(POOL, node_template=NodeTemplateRef("AWSNodeTemplate", "a")),
            "no provider launches from AWSNodeTemplate objects: name a KwokNodeTemplate in spec.nodeTemplateRef",
            id="no-provider",
        ),
    ],
)
def test_what_a_person_has_to_correct_holds_the_pool_back(pool: CapacityPool, told: str) -> None:
    finding, acts = ready(snapshot([], pools=(pool,)))
    status, _, message = verdict_of(finding)
    assert (status, acts) == ("False", False)
    assert message.startswith(f"the pool only proposes: {told}")


def test_commands_do_not_know_the_providers() -> None:
    finding, acts = ready(
        snapshot([], pools=(replace(POOL, node_template=NodeTemplateRef("AWSNodeTemplate", "a")),)), None
    )
    assert (finding.good, acts) == (True, True)


REFUSAL = Reason.of(Code.PROVIDER_REFUSES, provider="aws", message="no credentials; give some")
REFUSED = Backoff(LATER, pool="team", reason="Configuration", message="there is no template k; create it")


@pytest.mark.parametrize(
    ("backoffs", "serving", "told"),
    [
        pytest.param((), {"KwokNodeTemplate": REFUSAL}, "provider aws refuses requests: no credentials", id="keys"),
        pytest.param(
            (REFUSED,), SERVING, "the last launch failed, Configuration: there is no template k; create it", id="launch"
        ),
        pytest.param((replace(REFUSED, until=NOW),), SERVING, None, id="it-is-tried-again"),
        pytest.param((replace(REFUSED, pool="other"),), SERVING, None, id="of-another-pool"),
        pytest.param((replace(REFUSED, zone="z"),), SERVING, None, id="in-one-zone"),
        pytest.param((replace(REFUSED, reason="Throttled"),), SERVING, None, id="passes-by-itself"),
    ],
)
def test_what_a_provider_answers_is_told_and_tried_again(
    backoffs: tuple[Backoff, ...], serving: Mapping[str, Reason | None], told: str | None
) -> None:
    finding, acts = ready(snapshot([], pools=(POOL,), backoffs=backoffs), serving)
    status, _, message = verdict_of(finding)
    assert acts
    assert (status, message.startswith(told)) == ("False", True) if told else status == "True"


KINDS = sorted({candidate.offering.instance_type for candidate in OFFERED})
EACH = tuple(Backoff(LATER, instance_type=kind, pool="team", reason="NotOffered", message="none") for kind in KINDS)


@pytest.mark.parametrize(
    ("backoffs", "told"),
    [
        pytest.param(EACH, ("NotOffered",), id="all"),
        pytest.param(EACH[1:], (), id="all-but-one"),
        pytest.param((replace(EACH[0], until=NOW), *EACH[1:]), (), id="one-is-tried-again"),
        pytest.param((replace(EACH[0], reason="Throttled"), *EACH[1:]), (), id="one-passes-by-itself"),
        pytest.param((replace(EACH[0], pool="other"), *EACH[1:]), (), id="one-of-another-pool"),
        pytest.param((replace(EACH[0], reason="Quota"), *EACH[1:]), ("NotOffered", "Quota"), id="of-two-kinds"),
        pytest.param((REFUSED, *EACH), ("Configuration",), id="the-whole-pool-too"),
    ],
)
def test_a_pool_of_which_every_offering_rests_says_why_and_acts(
    backoffs: tuple[Backoff, ...], told: tuple[str, ...]
) -> None:
    finding, acts = ready(snapshot([], pools=(POOL,), backoffs=backoffs))
    assert acts
    assert sorted(str(reason.detail["error"]) for reason in finding.reasons) == list(told)


def test_the_first_moment_at_which_something_is_tried_again_is_told() -> None:
    sooner = replace(EACH[-1], until=LATER - timedelta(minutes=3), message="soon")
    finding, _ = ready(snapshot([], pools=(POOL,), backoffs=(*EACH[:-1], sooner)))
    assert "NotOffered: soon; tried again at" in verdict_of(finding)[2]


@pytest.mark.parametrize("backoffs", [(REFUSED,), EACH], ids=["of-everything", "of-each-offering"])
@pytest.mark.parametrize(
    ("asks", "ago", "good"),
    [
        pytest.param(True, timedelta(minutes=1), False, id="tried-again"),
        pytest.param(False, timedelta(minutes=1), True, id="not-tried-again"),
        pytest.param(True, timedelta(minutes=6), True, id="asked-for-much-later"),
    ],
)
def test_what_is_tried_again_has_not_answered_yet(
    backoffs: tuple[Backoff, ...], asks: bool, ago: timedelta, good: bool
) -> None:
    over = tuple(replace(backoff, until=NOW - ago) for backoff in backoffs)
    coming = (ours("n1"),) if asks else ()
    finding, acts = ready(snapshot([], pools=(POOL,), backoffs=over, provisioned=coming))
    assert (finding.good, acts) == (good, True)


_FIRST = OFFERED[0].offering
ONE_OF = GroupOffering(_FIRST.instance_type, _FIRST.zone, _FIRST.capacity_type)
NOTHING = replace(POOL, groups=frozenset())


@pytest.mark.parametrize(
    ("pool", "told"),
    [
        pytest.param(NOTHING, True, id="no-group"),
        pytest.param(POOL, False, id="no-groups-at-all"),
        pytest.param(replace(POOL, groups=frozenset({ONE_OF})), False, id="a-group-of-one-offering"),
    ],
)
def test_a_pool_of_which_no_group_starts_anything_says_so_and_acts(pool: CapacityPool, told: bool) -> None:
    finding, acts = ready(snapshot([], pools=(pool,)))
    assert acts
    assert [reason.code for reason in finding.reasons] == ([Code.NOT_IN_GROUPS] if told else [])
    if told:
        text = "no group of KwokNodeTemplate k starts what the pool may buy: its status has the groups"
        assert verdict_of(finding)[2].startswith(text)

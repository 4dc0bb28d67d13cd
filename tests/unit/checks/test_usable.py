"""Condition Ready of a pool: what of it cannot be used, and what its provider answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from autoscaler.checks.check import held_back, pool_conditions
from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.model.capacity import Baseline, CapacityPool, Disruption, DisruptionBudget, Mode, NodeTemplateRef
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.report.checks_text import verdict_of
from tests.builders import CATALOG, NOW, plan, snapshot

POOL = CapacityPool("team", mode=Mode.ACT, node_template=NodeTemplateRef("KwokNodeTemplate", "k"))
SERVING: Mapping[str, Reason | None] = {"KwokNodeTemplate": None}
LATER = NOW + timedelta(minutes=10)


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

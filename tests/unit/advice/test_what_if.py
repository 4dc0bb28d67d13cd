"""What a plan would be with something changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.advice.what_if import FORMS
from autoscaler.cli.plan import plan
from autoscaler.errors import BadInputError

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
WHOLE = EXAMPLES / "whole-node.yaml"
BLOCK = EXAMPLES / "block-fits.yaml"


def asked(*questions: str, file: Path = WHOLE, code: int = 0) -> dict[str, Any]:
    """The difference as data."""
    options = [part for question in questions for part in ("--what-if", question)]
    answer = CliRunner().invoke(plan, ["-f", str(file), *options, "-o", "json"], catch_exceptions=False)
    assert answer.exit_code == code, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    assert found["whatIf"] == list(questions)
    return found


def nodes(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Numbers of nodes before and after, by instance type."""
    return {entry["instanceType"]: (entry["before"], entry["after"]) for entry in found["nodes"]}


def test_another_type_stands_in_for_one_that_is_gone() -> None:
    (only,) = nodes(asked("on-demand", "without g4-standard-384")) or {"": (0, 0)}
    gone = asked("without p4de.24xlarge")
    assert nodes(gone)["p4de.24xlarge"] == (1, 0)
    assert len(nodes(gone)) == 2
    assert float(gone["usdPerHour"]["difference"]) > 0
    assert only != "g4-standard-384"


def test_a_price_changes_what_is_cheapest() -> None:
    dearer = asked("price p4de.24xlarge=1000")
    assert nodes(dearer)["p4de.24xlarge"] == (1, 0)
    cheaper = asked("price p4de.24xlarge=1")
    assert nodes(cheaper) == {"p4de.24xlarge": (1, 1)}
    assert cheaper["usdPerHour"]["after"] == "1.00"


def test_spot_is_preferred_and_costs_less() -> None:
    found = asked("spot")
    assert {entry["capacityType"] for entry in found["nodes"] if entry["after"]} == {"spot"}
    assert float(found["usdPerHour"]["difference"]) < 0


def test_a_smaller_block_loses_places() -> None:
    found = asked("block -2", file=BLOCK, code=3)
    assert nodes(found) == {"p5.48xlarge": (2, 0)}
    assert any(entry["change"] == "no longer placed" for entry in found["pods"])


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("more gpus", FORMS[0]),
        ("without p5.48xlarg", "p5.48xlarge"),
        ("price p5.48xlarge=nan", "is not a price"),
        ("price p5.48xlarge=-1", "is not a price"),
        ("price p5.48xlarge", "is not understood"),
        ("without", "does not say what\n  write 'without p5.48xlarge'"),
        ("region moon-1", "no prices of a region"),
        ("block +4", "there is no CapacityBlock"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(question: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        asked(question)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("without p5.48xlarge", "price p5.48xlarge=3", "p5.48xlarge is left out by 'without p5.48xlarge'"),
        ("without p5.48xlarge", "without p5.48xlarge", "p5.48xlarge is left out by 'without p5.48xlarge'"),
        (
            "price p5.48xlarge/on-demand=4",
            "price  p5.48xlarge = 3",
            "changes the same as 'price p5.48xlarge/on-demand=4",
        ),
        ("region us-east-1", "region us-east4", "changes the same as 'region us-east-1'"),
        ("spot", "on-demand", "'on-demand' changes the same as 'spot'"),
    ],
)
def test_changes_of_which_only_the_last_would_count_are_refused(first: str, second: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        asked(first, second)
    assert said in str(raised.value)


def test_changes_of_several_things_are_made_together() -> None:
    found = asked("price g4-standard-384/spot=300", "price g4-standard-384=200", "price p4de.24xlarge=100")
    assert float(found["usdPerHour"]["after"]) < 100


def test_a_block_has_no_fewer_machines_than_none() -> None:
    with pytest.raises(BadInputError, match=r"'block -99': the block has 2\n  write 'block \S+ -2' for none"):
        asked("block -99", file=BLOCK)
    with pytest.raises(BadInputError, match="the block has 1"):
        asked("block -1", "block -2", file=BLOCK)


@pytest.mark.parametrize(
    ("region", "step"),
    [
        ("eu-west-1", "read them with `foreslice catalog sync aws --region eu-west-1 --into DIR --write`, and"),
        ("europe-west7", "read them with `foreslice catalog sync gcp --project PROJECT --into DIR --write`, and"),
        ("us-wset-1", "did you mean 'us-east-1'? The catalog knows us-east-1"),
        ("us-wset1", "did you mean 'us-west1'?"),
        ("moon", "read them with `foreslice catalog sync`, and give --catalog DIR. The catalog knows asia-"),
    ],
)
def test_a_region_without_prices_has_the_step_of_its_cloud(region: str, step: str) -> None:
    with pytest.raises(BadInputError) as raised:
        asked(f"region {region}")
    assert raised.value.next_step.startswith(step)


def test_a_block_is_named_where_there_is_none_of_that_name() -> None:
    with pytest.raises(BadInputError, match="which block: 'night'"):
        asked("block night +4", file=BLOCK)
    with pytest.raises(BadInputError, match="not understood"):
        asked("block four", file=BLOCK)

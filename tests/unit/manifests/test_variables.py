"""Variables that envsubst would replace are named all at once."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from autoscaler.kube.problem import PLACEHOLDER
from autoscaler.manifests.classify import NO_INFLUENCE
from autoscaler.manifests.load import Loaded, load
from autoscaler.manifests.unfilled.templates import rendering, substituting
from instance_catalog.diagnostic import Severity

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: "${{NAMESPACE}}", labels: {{a: $LABEL}}}}
spec:
  serviceAccountName: {account}
  containers:
  - {{name: c, image: "${{REGISTRY}}/app:${{TAG}}", command: [sh, -c, $HOME/run], args: ["${{ARG}}"]}}
"""


OTHER = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "${DATA}"}
---
apiVersion: v1
kind: Pod
metadata: {name: $NAME}
spec:
  containers:
  - {name: c, image: i, env: [{name: A, value: "${VALUE}"}, {name: B, valueFrom: {secretKeyRef: {name: $SECRET}}}]}
"""


def loaded(text: str) -> Loaded:
    return load(["-"], stdin=io.StringIO(text))


def steps(text: str) -> list[str]:
    return [problem.next_step for problem in loaded(text).problems if "variable" in problem.next_step]


def test_one_problem_stands_for_all_variables_of_the_file() -> None:
    problem, ignored = loaded(POD.format(account="$KSA_NAME") + OTHER).problems
    assert ignored.message == NO_INFLUENCE
    assert problem.severity is Severity.ERROR
    assert problem.message.endswith("; 5 more places have to be filled in: lines 4, 6, 8, 17, 20")
    listed = "$NAMESPACE $LABEL $KSA_NAME $REGISTRY $TAG $NAME $SECRET"
    values = "NAMESPACE= LABEL= KSA_NAME= REGISTRY= TAG= NAME= SECRET="
    assert problem.next_step.endswith(
        f"write a value after each `=` and run `{values} envsubst '{listed}' < FILE | foreslice plan -f -`"
    )


@pytest.mark.skipif(shutil.which("envsubst") is None, reason="envsubst (gettext) is not installed")
def test_the_command_of_a_file_works(tmp_path: Path) -> None:
    """Variables of shells and programs stay; so do those of objects that a plan ignores."""
    file = tmp_path / "a b.yaml"
    text = POD.format(account="$KSA") + OTHER
    file.write_text(text)
    problem, _ = load([str(file)]).problems
    command = problem.next_step.partition("`=` and run `")[2].removesuffix(" | foreslice plan -f -`")
    result = subprocess.run(
        ["sh", "-c", command.replace("= ", "=x ")], capture_output=True, text=True, check=True, timeout=20
    )
    assert [one.message for one in loaded(result.stdout).problems] == [NO_INFLUENCE]
    assert "${ARG}" in result.stdout
    assert "$HOME/run" in result.stdout


def test_the_old_name_of_the_service_account_is_read_unless_the_new_one_is_there() -> None:
    text = POD.format(account="a").replace("serviceAccountName: a", "serviceAccount: ACCOUNT").replace("$", "")
    assert any("'$KSA'" in one.message for one in loaded(text.replace("ACCOUNT", "$KSA")).problems)
    old = [one for one in loaded(text.replace("ACCOUNT", "My_A")).problems if one.path == ("spec", "serviceAccount")]
    assert [one.severity for one in old] == [Severity.ERROR]
    both = text.replace("ACCOUNT", "$KSA\n  serviceAccountName: a")
    assert not any("KSA" in one.message for one in loaded(both).problems)


def test_expressions_of_chainsaw_are_replaced_with_their_parentheses(tmp_path: Path) -> None:
    file = tmp_path / "a b.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelector: {kubernetes.io/hostname: ($node)}\n"
        "  containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: ($gpus)}}}]\n"
    )
    (problem,) = load([str(file)]).problems
    assert problem.next_step.startswith("it looks like an expression of Chainsaw")
    command = problem.next_step.partition("and run `")[2].removesuffix(" | foreslice plan -f -`")
    assert command == f"sed -e 's|($node)|VALUE|' -e 's|($gpus)|VALUE|' < '{file}'"
    command = command.replace("VALUE", "node-1", 1).replace("VALUE", "1")
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=20)
    assert not list(loaded(result.stdout).problems)


def test_one_variable_has_a_command_too() -> None:
    (step,) = steps("apiVersion: v1\nkind: Pod\nmetadata: {name: $NAME}\nspec: {containers: [{name: c, image: i}]}\n")
    assert step.endswith("write its value after `=` and run `NAME= envsubst '$NAME' < FILE | foreslice plan -f -`")


@pytest.mark.parametrize("name", ["PATH", "IFS", "LD_PRELOAD", "BASH_ENV", "UID", "LC_ALL", "path"])
def test_a_variable_that_shells_read_is_never_set(name: str) -> None:
    """`PATH= envsubst` would find no envsubst, and `LD_PRELOAD=` would load what somebody wrote for a manifest."""
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: ${name}}}\nspec: {{containers: [{{name: c, image: i}}]}}\n"
    (step,) = steps(pod)
    assert f"write the value of ${name} into the file" in step
    assert "envsubst" not in step
    (both,) = steps(f"{pod.replace(name, 'NAME')}---\n{pod}")
    assert f"write the value of ${name} into the file: shells and programs read" in both
    assert both.endswith("; write its value after `=` and run `NAME= envsubst '$NAME' < FILE | foreslice plan -f -`")


@pytest.mark.skipif(shutil.which("envsubst") is None, reason="envsubst (gettext) is not installed")
@pytest.mark.parametrize(
    "name", ["-rf.yaml", "$(touch pwned).yaml", "a'b.yaml", 'a"b`touch pwned`.yaml', "a;touch pwned"]
)
def test_the_command_is_safe_whatever_the_name_of_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("kind: ${NAME}\n")
    command = substituting(["NAME"], name).partition("`=` and run `")[2].removesuffix(" | foreslice plan -f -`")
    result = subprocess.run(
        ["sh", "-c", command.replace("= ", "=x ", 1)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert result.stdout == "kind: x\n"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_chart_is_no_option_of_helm() -> None:
    assert "`helm template ./-chart | " in rendering("{{ .Values.x }}", "-chart/templates/a.yaml")


def test_a_name_without_dollar_is_no_variable_of_envsubst() -> None:
    (step,) = steps(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: POD_NAME}\nspec: {containers: [{name: c, image: i}]}\n"
    )
    assert step == (
        "it looks like a variable that was not replaced: write the value for VALUE and run "
        "`sed -e 's|POD_NAME|VALUE|g' < FILE | foreslice plan -f -`"
    )


def test_the_longest_name_is_replaced_first() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: THE_POD, namespace: THE_POD_SPACE}\n"
    (step,) = steps(pod + "spec: {containers: [{name: c, image: i}]}\n")
    assert "write a value for each VALUE and run `sed -e 's|THE_POD_SPACE|VALUE|g' -e 's|THE_POD|VALUE|g' <" in step


def test_variables_of_a_file_that_is_no_yaml_are_named_too() -> None:
    (problem,) = loaded('kind: Pod\nmetadata:\n  name: ${NAME}\n${LABELS}\nspec:\n  a: "${SA}"\n').problems
    assert "`NAME= LABELS= SA= envsubst '$NAME $LABELS $SA' < FILE" in problem.next_step


PLACEHOLDERS = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: <team>}
spec:
  serviceAccountName: <account>
  priorityClassName: <priority>
  containers: [{name: c, image: i}]
"""


def test_one_problem_stands_for_all_placeholders_with_their_values() -> None:
    (problem,) = loaded(PLACEHOLDERS).problems
    assert problem.message == (
        "the API server refuses the name '<team>'; 2 more places have to be filled in: "
        "'<account>' in line 6, '<priority>' in line 7"
    )


@pytest.mark.parametrize("value", ["<node-name>", "YOUR-NODE"])
def test_a_placeholder_for_a_node_says_that_the_node_has_to_be_given(value: str) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {KEY: VALUE}, containers: [{name: c}]}\n"
    )
    for key, told in (("kubernetes.io/hostname", True), ("team", False)):
        steps = [one.next_step for one in loaded(text.replace("KEY", key).replace("VALUE", value)).problems]
        (step,) = (one for one in steps if one.startswith(PLACEHOLDER))
        assert ("a Node that you give as well" in step) is told


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ("{{ .Values.x }}", "this looks like a Helm template: give what Helm makes of it: `helm template CHART |"),
        ("{{ name }}", "this looks like a template (of Jinja, Mustache or Argo, for example): give what its tool"),
        ("{% if x %}a{% endif %}", "this looks like a Jinja template"),
    ],
)
def test_a_template_in_quotes_is_one_problem(value: str, step: str) -> None:
    (problem,) = loaded(
        PLACEHOLDERS.replace("<team>", "t").replace("<account>", f'"{value}"').replace("<priority>", f'"{value}"')
    ).problems
    assert problem.message.endswith("; 1 more place has to be filled in: line 7")
    assert problem.next_step.startswith(step)


def test_a_chart_is_one_problem(tmp_path: Path) -> None:
    (templates := tmp_path / "chart" / "templates").mkdir(parents=True)
    (templates / "a.yaml").write_text("a: {{ .Values.a }}\n---\nb: {{ .Values.b }}\n")
    pod = PLACEHOLDERS.replace("  priorityClassName: <priority>\n", "").replace("<team>", '"{{ .Values.c }}"')
    (templates / "b.yaml").write_text(pod.replace("<account>", "default"))
    found = load([str(tmp_path)])
    assert ["2 more places have to be filled in, in 2 files" in one.message for one in found.errors] == [True]
    step = f"`helm template {tmp_path}/chart | foreslice plan -f -`"
    assert found.errors[0].next_step.endswith(step)


def test_a_variable_that_breaks_the_document_is_named_as_such() -> None:
    broken = "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    app: a\n    ${LABELS}\n  name: a\nspec: {}\n"
    (found,) = loaded(broken).problems
    assert "invalid YAML" in found.message
    assert "variable that was not replaced" in found.next_step
    (found,) = loaded(broken.replace("${LABELS}", "labels")).problems
    assert "indentation" in found.next_step
    (found,) = loaded('args:\n  a: "echo ${X}"\n b: 1\n').problems
    assert "indentation" in found.next_step


@pytest.mark.parametrize("value", ["{cpu: ${CPU}}", "{memory: 1Gi, cpu: ${CPU}, ephemeral-storage: 1Gi}"])
def test_a_variable_in_braces_breaks_the_document(value: str) -> None:
    (found,) = loaded(
        f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - resources:\n      limits: {value}\n"
    ).problems
    assert "variable" in found.next_step


FILLED = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  serviceAccountName: ACCOUNT
  containers:
  - name: a
    image: i
    env: [{name: A, value: "MODEL"}, {name: NVIDIA_VISIBLE_DEVICES, value: ALL_GPUS}]
    args: ["serve --model=TEXT a <b> c"]
  volumes:
  - name: v
    csi: {driver: d, volumeAttributes: {bucketName: "BUCKET"}}
"""


@pytest.mark.parametrize(
    ("account", "model", "text", "bucket", "told"),
    [
        (
            *("<your-account>", "<model>", "<your-model>", "<b>"),
            "3 more places have to be filled in: '<model>' in line 9, '<your-model>' in line 10, '<b>' in line 13",
        ),
        (
            *("V_KSA", "V_MODEL", "V_PATH", "V_BUCKET"),
            "2 more places have to be filled in: 'V_MODEL' in line 9, 'V_BUCKET' in line 13",
        ),
        (*("${ksa}", "${model}", "${model}", "${bucket}"), "1 more place has to be filled in: line 13"),
    ],
)
def test_every_place_is_counted(account: str, model: str, text: str, bucket: str, told: str) -> None:
    values = {"ACCOUNT": account, "MODEL": model, "TEXT": text, "BUCKET": bucket}
    given = FILLED
    for name, value in values.items():
        given = given.replace(name, value, 1)
    (found,) = loaded(given).errors
    assert found.message.endswith(f"; {told}")
    assert ("ksa= bucket= envsubst" in found.next_step) is (account == "${ksa}")


FILLED_IN = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  serviceAccountName: ACCOUNT
  nodeSelector:
    node.kubernetes.io/instance-type: REPLACE_WITH_TYPE
  tolerations:
  - {key: a, value: REPLACE_WITH_TAINT}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
    {matchExpressions: [{key: b, operator: In, values: [REPLACE_WITH_LABEL]}]}]}}}
  containers:
  - name: c
    image: REPLACE_WITH_IMAGE
    env:
    - {name: PATH_OF_MODEL, value: REPLACE_WITH_PATH}
    - {name: TEXT, value: replace with care}
    - {name: KEY, value: dummy}
"""


def test_one_placeholder_tells_every_value_of_its_style_with_its_line() -> None:
    (problem,) = loaded(FILLED_IN.replace("ACCOUNT", "REPLACE_WITH_ACCOUNT")).problems
    assert problem.severity is Severity.ERROR
    assert problem.message.endswith(
        "'REPLACE_WITH_ACCOUNT'; 5 more places have to be filled in: 'REPLACE_WITH_TYPE' in line 8, "
        "'REPLACE_WITH_TAINT' in line 10, 'REPLACE_WITH_LABEL' in line 12, 'REPLACE_WITH_IMAGE' in line 15, "
        "'REPLACE_WITH_PATH' in line 17"
    )


def test_placeholders_that_the_api_server_takes_are_a_warning() -> None:
    (problem,) = loaded(FILLED_IN.replace("ACCOUNT", "default")).problems
    assert problem.severity is Severity.WARNING
    assert problem.message.startswith("no node has a label or taint 'REPLACE_WITH_TYPE'; 4 more places have to be")
    assert problem.next_step == PLACEHOLDER

"""Variables that envsubst would replace are named all at once."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import Loaded, load

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: "${{NAMESPACE}}", labels: {{a: $LABEL}}}}
spec:
  serviceAccountName: {account}
  containers:
  - {{name: c, image: "${{REGISTRY}}/app:${{TAG}}", command: [sh, -c, $HOME/run], args: ["${{ARG}}"]}}
"""


def loaded(text: str) -> Loaded:
    return load(["-"], stdin=io.StringIO(text))


def steps(text: str) -> list[str]:
    return [problem.next_step for problem in loaded(text).problems if "variable" in problem.next_step]


def test_the_first_problem_names_all_variables_of_the_file() -> None:
    first, *others = steps(POD.format(account="$KSA_NAME"))
    assert first.endswith("; variables of the file: NAMESPACE, LABEL, KSA_NAME, REGISTRY, TAG")
    assert len(others) >= 2
    assert not any("of the file" in step for step in others)


def test_many_variables_are_counted() -> None:
    many = "".join(f"${{V{number}}}" for number in range(9))
    first, *_ = steps(POD.format(account=f'"{many}"'))
    assert first.endswith("NAMESPACE, LABEL, V0, V1, V2, V3, V4, V5 and 5 more")


def test_one_variable_is_named_by_the_problem_alone() -> None:
    (step,) = steps("apiVersion: v1\nkind: Pod\nmetadata: {name: $NAME}\nspec: {containers: [{name: c, image: i}]}\n")
    assert "of the file" not in step


def test_variables_of_a_file_that_is_no_yaml_are_named_too() -> None:
    (problem,) = loaded('kind: Pod\nmetadata:\n  name: ${NAME}\n${LABELS}\nspec:\n  a: "${SA}"\n').problems
    assert problem.next_step.endswith("; variables of the file: NAME, LABELS, SA")


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

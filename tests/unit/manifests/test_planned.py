"""What pods of a plan refer to and the files lack is told in one run, whatever kind of object makes them."""

from __future__ import annotations

import json

import pytest

from instance_catalog.diagnostic import Severity
from tests.unit.manifests.texts import loaded, messages

SPEC = (
    "{containers: [{name: c, image: i, resources: {claims: [{name: r}]}}], "
    "resourceClaims: [{name: r, resourceClaimTemplateName: NAME}], "
    "volumes: [{name: v, persistentVolumeClaim: {claimName: models}}]}"
)
OF_DYNAMO = SPEC.replace("containers: [", "mainContainer: ").replace("}}],", "}},", 1)
KINDS = {
    "InferenceService": "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\n"
    f"spec: {{predictor: {SPEC}}}",
    "Volcano": "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\n"
    f"spec: {{tasks: [{{name: t, replicas: 2, template: {{spec: {SPEC}}}}}]}}",
    "Dynamo": "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: a}\nspec: {services: "
    f"{{w: {{componentType: worker, extraPodSpec: {OF_DYNAMO}}}}}}}",
    "Deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: b}}, "
    f"template: {{metadata: {{labels: {{a: b}}}}, spec: {SPEC}}}}}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_templates_and_volumes_that_the_files_lack_are_told_of_every_kind(kind: str) -> None:
    found = [
        problem for problem in loaded(KINDS[kind].replace("NAME", "gone")).problems if "there is no" in problem.message
    ]
    assert [(problem.message, problem.severity) for problem in found] == [
        ("there is no ResourceClaimTemplate 'gone'", Severity.ERROR),
        ("there is no PersistentVolumeClaim 'models' in the files", Severity.WARNING),
    ]
    assert found[0].path[-1] == "resourceClaimTemplateName"
    assert "add the ResourceClaimTemplate to the files" in found[0].next_step


def test_the_pods_of_a_workload_that_an_api_server_stored_wait_for_their_template() -> None:
    text = KINDS["Volcano"].replace("NAME", "gone").replace("{name: a}", "{name: a, uid: u}")
    assert loaded(text).ok
    assert any("there is no ResourceClaimTemplate 'gone'" in message for message in messages(loaded(text)))


@pytest.mark.parametrize(("name", "told"), [("job-compute-domain-channel", True), ("imex", True), ("gpu", False)])
def test_a_template_that_a_compute_domain_may_make_says_so(name: str, told: bool) -> None:
    found = loaded(KINDS["Volcano"].replace("NAME", name)).errors
    assert ("a ComputeDomain with it in spec.channel.resourceClaimTemplate makes it" in found[0].next_step) is told


TERM = {"labelSelector": {"matchLabels": {"app": "server"}}, "topologyKey": "kubernetes.io/hostname"}


def near(term: object, name: str = "near", **more: object) -> str:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {"affinity": affinity, "containers": [{"name": "c", "image": "i"}], **more}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def server(namespace: str = "default", app: str = "server") -> str:
    metadata = {"name": "s", "namespace": namespace, "labels": {"app": app}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )


def test_pods_that_required_affinity_wants_and_the_files_lack_are_told() -> None:
    (problem,) = loaded(near(TERM)).problems
    assert problem.severity is Severity.WARNING
    assert problem.path == ("spec", "affinity", "podAffinity")
    assert problem.message == (
        "no pod with app=server in namespace default is in the files, and required pod affinity over "
        "kubernetes.io/hostname wants it"
    )
    assert problem.next_step == (
        "give it, and its Node if it runs (`kubectl get pods -n default -l app=server -o yaml`, `kubectl get nodes -o "
        "yaml`), or drop the term"
    )


@pytest.mark.parametrize(
    ("term", "other", "wanted"),
    [
        (TERM, server(), ""),
        (TERM, server("elsewhere"), "pod with app=server in namespace default"),
        (TERM, server(app="client"), "pod with app=server in namespace default"),
        (TERM | {"namespaces": ["elsewhere"]}, server("elsewhere"), ""),
        (TERM | {"namespaceSelector": {}}, server("elsewhere"), ""),
        (TERM | {"namespaceSelector": {}}, server(app="client"), "pod with app=server in any namespace"),
        (
            TERM | {"namespaceSelector": {"matchLabels": {"team": "a"}}},
            server("elsewhere"),
            "pod with app=server in a namespace with team=a",
        ),
        (
            TERM | {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}},
            server(),
            "pod with app in (x,y) in namespace default",
        ),
    ],
)
def test_pods_in_the_files_meet_terms_in_their_namespaces(term: object, other: str, wanted: str) -> None:
    found = [problem.message.partition(" is in the files")[0] for problem in loaded(near(term), other).problems]
    assert found == ([f"no {wanted}"] if wanted else [])


def test_a_pod_that_has_its_node_needs_nobody() -> None:
    assert not any("pod affinity" in message for message in messages(loaded(near(TERM, nodeName="n"))))

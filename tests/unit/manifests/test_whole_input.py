"""What is said once for all objects of the files, or of one object because of the others."""

from __future__ import annotations

from instance_catalog.diagnostic import Severity
from tests.unit.manifests.foreign.test_foreign import problems, read

BETA = """apiVersion: resource.k8s.io/%s
kind: ResourceClaimTemplate
metadata: {name: %s}
spec: {spec: {devices: {requests: [{name: g, %s}]}}}
---
"""
FLAT, EXACT = "deviceClassName: gpu.nvidia.com", "exactly: {deviceClassName: gpu.nvidia.com}"


def test_beta_versions_that_no_api_server_has_by_default_get_one_warning() -> None:
    loaded = read(BETA % ("v1beta1", "a", FLAT) + BETA % ("v1beta2", "b", EXACT) + BETA % ("v1", "c", EXACT))
    assert loaded.ok
    (found,) = [one for one in loaded.problems if "--runtime-config" in one.message]
    versions = "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true"
    assert f"--runtime-config={versions}" in found.message
    assert found.severity is Severity.WARNING
    assert (found.line, found.field) == (1, "apiVersion")
    assert found.next_step.startswith("write resource.k8s.io/v1 in the 2 objects of it")
    assert "below `exactly`" in found.next_step
    assert "exactly" not in problems(read(BETA % ("v1beta2", "b", EXACT)))


def test_what_an_api_server_has_handed_out_needs_no_other_version() -> None:
    assert "--runtime-config" not in problems(read(BETA % ("v1", "c", EXACT)))
    assert "--runtime-config" not in problems(
        read(BETA.replace("{name: %s}", "{name: %s, uid: u}") % ("v1beta1", "a", FLAT))
    )


RAY_CLUSTER = """apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: c}
spec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: i}]}}}}
---
"""
RAY_JOB = """apiVersion: ray.io/v1
kind: RayJob
metadata: {name: j}
spec: {entrypoint: e, clusterSelector: {ray.io/cluster: c}}
"""


def test_a_ray_job_names_the_cluster_that_the_files_lack() -> None:
    assert "give RayCluster c to plan for its pods" in problems(read(RAY_JOB))
    assert "give RayCluster c" in problems(read(RAY_CLUSTER.replace("name: c", "name: other") + RAY_JOB))
    assert "RayCluster" not in problems(read(RAY_CLUSTER + RAY_JOB))
    cron = "apiVersion: ray.io/v1\nkind: RayCronJob\nmetadata: {name: j}\nspec: {schedule: '* * * * *', jobTemplate: "
    cron += "{entrypoint: e, clusterSelector: {ray.io/cluster: c}}}\n"
    assert "spec.jobTemplate.clusterSelector: runs on" in problems(read(cron))
    assert "RayCluster" not in problems(read(RAY_CLUSTER + cron))


REQUEST = """apiVersion: v1
kind: PodTemplate
metadata: {name: t}
template: {spec: {containers: [{name: c, image: i}]}}
---
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: r}
spec: {provisioningClassName: queued-provisioning.gke.io, podSets: [{count: 1, podTemplateRef: {name: t}}]}
"""


def test_a_request_to_another_autoscaler_says_how_its_machines_are_seen() -> None:
    (found,) = read(REQUEST).problems
    assert "belongs to another autoscaler" in found.message
    assert "plan a copy with spec.provisioningClassName: atomic.foreslice.dev" in found.next_step
    assert found.next_step.endswith("; its prices are on-demand, and queued provisioning is paid for as flex-start")
    (other,) = read(REQUEST.replace("queued-provisioning.gke.io", "example.com/other")).problems
    assert "flex-start" not in other.next_step
    copy = read(REQUEST.replace("queued-provisioning.gke.io", "atomic.foreslice.dev"))
    assert copy.problems == ()
    assert [request.served for request in copy.snapshot.provisioning_requests] == ["atomic.foreslice.dev"]

"""ResourceClaims of three API versions become one value, with the API server's defaults."""

from __future__ import annotations

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim, parse_resource_claim_template
from autoscaler.model.device_class import Selector
from autoscaler.model.resource_claim import (
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    ResourceClaim,
    UnknownConstraint,
)
from instance_catalog.diagnostic import Severity
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration

EXACT = {
    "deviceClassName": "gpu.nvidia.com",
    "selectors": [{"cel": {"expression": "true"}}],
    "tolerations": [{"key": "x", "value": "y"}],
    "capacity": {"requests": {"memory": "40Gi"}},
}
EXPECTED = DeviceRequest(
    name="gpu",
    device_class="gpu.nvidia.com",
    selectors=(Selector("true"),),
    tolerations=(Toleration(key="x", operator="Equal", value="y"),),
    capacity={"memory": Quantity.parse("40Gi")},  # type: ignore[arg-type]
)


def claim(*requests: object, version: str = "v1", **devices: object) -> dict[str, object]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def parsed(raw: object) -> tuple[ResourceClaim, list[tuple[str, str]]]:
    problems = Problems()
    found = parse_resource_claim(raw, problems)
    return found, [(problem.field, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("version", "request_"),
    [
        pytest.param("v1", {"name": "gpu", "exactly": EXACT}, id="v1 nests the request in exactly"),
        pytest.param("v1beta2", {"name": "gpu", "exactly": EXACT}, id="v1beta2 as v1"),
        pytest.param("v1beta1", {"name": "gpu", **EXACT}, id="v1beta1 has it flat"),
    ],
)
def test_versions_agree(version: str, request_: dict[str, object]) -> None:
    found, problems = parsed(claim(request_, version=version))
    assert found.requests == (EXPECTED,)
    assert problems == []
    assert found.key == "ns/c"


def test_defaults_of_the_api_server() -> None:
    found, problems = parsed(claim({"name": "r", "exactly": {"deviceClassName": "c", "count": 0}}))
    assert found.requests == (DeviceRequest("r", "c", allocation_mode="ExactCount", count=1),)
    assert found.requests[0].admin_access is None  # type: ignore[union-attr]
    assert problems == []


def test_first_available_keeps_the_order() -> None:
    raw = {"name": "r", "firstAvailable": [{"name": n, "deviceClassName": n.upper()} for n in ("b", "a")]}
    found, problems = parsed(claim(raw))
    assert found.requests == (FirstAvailable("r", (DeviceRequest("b", "B"), DeviceRequest("a", "A"))),)
    assert problems == []


def test_the_v1beta1_form_in_v1_is_an_error_with_the_corrected_yaml() -> None:
    problems = Problems()
    found = parse_resource_claim(claim({"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 2}), problems)
    assert found.requests == (DeviceRequest("gpu", "gpu.nvidia.com", count=2),)
    (problem,) = problems
    assert problem.severity is Severity.ERROR
    assert problem.field == "spec.devices.requests[0].deviceClassName"
    assert "v1beta1 form" in problem.message
    assert problem.next_step.endswith(
        "requests:\n- name: gpu\n  exactly:\n    deviceClassName: gpu.nvidia.com\n    count: 2"
    )


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchAttribute": "a/b", "requests": ["r"]}, MatchAttribute("a/b", ("r",))),
        ({"distinctAttribute": "a/b"}, DistinctAttribute("a/b")),
        ({"nearAttribute": "a/b"}, UnknownConstraint("nearAttribute")),
        ({"matchAttribute": "a/b", "nearAttribute": "c"}, UnknownConstraint("matchAttribute, nearAttribute")),
        ({}, UnknownConstraint("")),
    ],
    ids=["match", "distinct", "a newer type", "a newer type beside a known one", "nothing"],
)
def test_constraints(constraint: dict[str, object], expected: object) -> None:
    found, _ = parsed(claim({"name": "r", "exactly": {"deviceClassName": "c"}}, constraints=[constraint]))
    assert found.constraints == (expected,)


@pytest.mark.parametrize(
    ("request_", "field", "message"),
    [
        ({"name": "r"}, "exactly", "asks for nothing"),
        ({"name": "r", "exactly": {}}, "exactly.deviceClassName", "is required"),
        ({"name": "r", "exactly": {"deviceClassName": 7}}, "exactly.deviceClassName", "expected a string"),
        ({"name": "r", "exactly": {"deviceClassName": "c", "count": "2"}}, "exactly.count", "expected a whole number"),
        ({"name": "r", "exactly": {"deviceClassName": "c", "count": True}}, "exactly.count", "found true"),
        ({"name": "r", "exactly": {"deviceClassName": "c", "cuont": 1}}, "exactly.cuont", "unknown field 'cuont'"),
        ({"name": "r", "exactly": {"deviceClassName": "c", "selectors": [{}]}}, "exactly.selectors[0].cel", "needs"),
        ({"exactly": {"deviceClassName": "c"}}, "name", "is required"),
        ({"name": "r", "exactly": []}, "exactly", "expected an object, found a list"),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 2}},
            "exactly.count",
            "is not allowed with allocationMode: All",
        ),
        (
            {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c", "adminAccess": True}]},
            "firstAvailable[0].adminAccess",
            "an alternative has no admin access",
        ),
    ],
)
def test_mistakes_in_a_request(request_: dict[str, object], field: str, message: str) -> None:
    _, problems = parsed(claim(request_))
    assert any(where == f"spec.devices.requests[0].{field}" and message in what for where, what in problems), problems


def test_unknown_fields_are_kept_for_the_verdict() -> None:
    found, problems = parsed(claim({"name": "r", "exactly": {"deviceClassName": "c", "skipNodeOperations": True}}))
    assert found.requests[0] == DeviceRequest("r", "c", unsupported=("skipNodeOperations",))
    assert problems == [("spec.devices.requests[0].exactly.skipNodeOperations", "unknown field 'skipNodeOperations'")]


def test_a_constraint_must_name_a_request() -> None:
    raw = claim({"name": "gpu", "exactly": {"deviceClassName": "c"}}, constraints=[{"matchAttribute": "a/b"}])
    raw["spec"]["devices"]["constraints"][0]["requests"] = ["gpus"]  # type: ignore[index]
    problems = Problems()
    parse_resource_claim(raw, problems)
    (problem,) = problems
    assert (problem.field, problem.next_step) == ("spec.devices.constraints[0].requests[0]", "did you mean 'gpu'?")


def test_status_of_an_allocated_claim() -> None:
    raw = claim({"name": "r", "exactly": {"deviceClassName": "c"}})
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "shareID": "s", "consumedCapacity": {"m": "1"}}
    raw["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": []}]},
            "allocationTimestamp": "1970-01-01T00:01:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {
                "driver": "d",
                "pool": "p",
                "device": "x",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Slow", "status": "False"}],
            }
        ],
    }
    found, problems = parsed(raw)
    assert problems == []
    assert found.allocation is not None
    assert found.allocation.allocated_at == 60.0
    assert found.allocation.devices[0].share_id == "s"
    assert found.allocation.devices[0].consumed_capacity == {"m": Quantity.of(1)}
    assert found.device_conditions == {"d/p/x": ("Ready",)}
    assert found.reserved_for[0].uid == "u"


def test_a_template_stamps_equal_claims() -> None:
    raw = claim({"name": "gpu", "exactly": EXACT})
    template = parse_resource_claim_template({"metadata": {"name": "t"}, "spec": {"spec": raw["spec"]}})
    assert template.spec.spec_key() == parse_resource_claim(raw).spec_key()


def test_a_template_without_the_inner_spec() -> None:
    problems = Problems()
    raw = {"metadata": {"name": "t"}, "spec": {"devices": {"requests": []}}}
    parse_resource_claim_template(raw, problems)
    (problem,) = problems
    assert problem.field == "spec.devices"
    assert "spec.spec" in problem.message


@pytest.mark.parametrize(("toleration", "warned"), [({"operator": "Exists"}, []), ({}, ["tolerates only taints"])])
def test_a_device_toleration_without_a_key_is_accepted_as_the_api_server_does(
    toleration: dict[str, str], warned: list[str]
) -> None:
    problems = Problems()
    parsed = parse_resource_claim(claim({"name": "gpu", "exactly": {**EXACT, "tolerations": [toleration]}}), problems)
    assert [request.tolerations[0].key for request in parsed.requests if isinstance(request, DeviceRequest)] == [""]
    assert not problems.errors
    assert [found.message.partition("tolerates only taints")[1] for found in problems] == warned

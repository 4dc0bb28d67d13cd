"""Names that were nearly right."""

from __future__ import annotations

import pytest

from instance_catalog.spelling import completed, did_you_mean, nearest


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("gpu.nvidea.com", ["gpu.nvidia.com", "mig.nvidia.com"], ["gpu.nvidia.com"]),
        ("NODESELECTOR", ["nodeSelector"], ["nodeSelector"]),
        ("xyz", ["gpu.nvidia.com"], []),
        ("a", [], []),
        ("claim-100x", [f"claim-{number}" for number in range(1000)], ["claim-100"]),
        ("other", [f"claim-{number}" for number in range(1000)], []),
    ],
    ids=["a letter", "case", "far off", "nothing known", "many", "many that begin otherwise"],
)
def test_the_nearest_name(name: str, known: list[str], expected: list[str]) -> None:
    assert nearest(name, known) == expected


def test_likeness_is_asked_for() -> None:
    assert nearest("gpu.acme.com", ["gpu.amd.com"]) == ["gpu.amd.com"]
    assert nearest("gpu.acme.com", ["gpu.amd.com"], equivalence_key=0.9) == []


@pytest.mark.parametrize(
    ("most", "text"),
    [(1, "did you mean 'p5.48xlarge'?"), (2, "did you mean 'p5.48xlarge' or 'p5e.48xlarge'?")],
)
def test_the_question(most: int, text: str) -> None:
    assert did_you_mean("p5.48xlarg", ["p5e.48xlarge", "p5.48xlarge", "t3.nano"], most=most) == text


def test_where_nothing_is_near_something_else_is_said() -> None:
    assert did_you_mean("zzzzzz", ["a.8"]) == ""
    assert did_you_mean("zzzzzz", ["a.8"], "there is only a.8") == "there is only a.8"


@pytest.mark.parametrize(
    ("part", "expected"),
    [("A100", ["nvidia-a100", "nvidia-a100-80gb"]), ("nvidia-a10", ["nvidia-a100", "nvidia-a10g"]), ("g", [])],
    ids=["within", "the shortest first", "too short"],
)
def test_a_name_written_for_short(part: str, expected: list[str]) -> None:
    assert completed(part, ["nvidia-a100-80gb", "nvidia-a100", "nvidia-a10g", "nvidia-t4"], most=2) == expected

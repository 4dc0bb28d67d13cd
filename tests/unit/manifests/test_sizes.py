"""Input without end, and more of it than any cluster has, is refused with what to do instead."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from autoscaler.manifests import load as loading
from autoscaler.manifests import sources
from autoscaler.manifests.load import load
from autoscaler.manifests.sources import Source, read_sources
from instance_catalog.diagnostic import Diagnostic

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: c, image: i}]}\n---\n"
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: j%d}
spec: {parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
"""


class Endless(io.StringIO):
    """A pipe that always has more."""

    def read(self, size: int | None = -1) -> str:
        assert size is not None
        assert 0 < size <= 1 << 20
        return "#" * size


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_TEXT", 3 << 20)
    monkeypatch.setattr(loading, "MOST_PODS", 5)


def problem(found: Source | Diagnostic) -> str:
    assert isinstance(found, Diagnostic)
    assert found.next_step
    return found.message


@pytest.mark.usefixtures("small")
def test_a_pipe_without_end_is_not_read_for_ever() -> None:
    (found,) = read_sources(["-"], Endless())
    assert problem(found) == "is too large: all files together have more than 3,145,728 characters"


@pytest.mark.usefixtures("small")
def test_many_files_count_together(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text("#" * (1 << 20))
    assert all(isinstance(found, Source) for found in read_sources([str(tmp_path)], None))
    (tmp_path / "d.yaml").write_text("#")
    assert [type(found) for found in read_sources([str(tmp_path)], None)] == [Source, Source, Source, Diagnostic]


def test_a_device_of_zeros_is_no_text() -> None:
    (found,) = read_sources(["/dev/zero"], None)
    assert problem(found) == "is not text: it has NUL characters"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("text", "enough"), [(POD, 5), (JOB, 1)], ids=["pods", "pods-of-workloads"])
def test_more_pods_than_a_cluster_has_are_not_planned(tmp_path: Path, text: str, enough: int) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("".join(text % number for number in range(enough)))
    assert load([str(file)]).ok
    file.write_text("".join(text % number for number in range(enough + 1)))
    (found,) = load([str(file)]).errors
    assert found.message.startswith("more than 5 pods")
    assert (found.file, found.next_step.split(":")[0]) == (str(file), "plan for fewer at a time")

"""The examples of the documentation load cleanly, and every mistake among them is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.manifests.load import load

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_have_no_problems(path: Path) -> None:
    found = load([str(path)], strict=True)
    assert [str(problem) for problem in found.problems] == []
    assert found.snapshot.pods


@pytest.mark.parametrize("path", sorted((EXAMPLES / "mistakes").glob("*.yaml")), ids=lambda path: path.stem)
def test_mistakes_are_errors(path: Path) -> None:
    found = load([str(path)])
    assert found.errors
    assert all(problem.line and problem.next_step for problem in found.errors)

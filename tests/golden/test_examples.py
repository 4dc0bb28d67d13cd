"""The plan of every example, as a user sees it. UPDATE_GOLDEN=1 rewrites the files; read the diff before you commit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.main import foreslice
from autoscaler.errors import ForesliceError

ROOT = Path(__file__).parent.parent.parent
GOLDEN = Path(__file__).parent
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.yaml"))
MISTAKES = sorted((ROOT / "docs/examples/mistakes").glob("*.yaml"))
LEFT_OUT = {"block-too-short", "unsatisfiable"}


def run(example: Path, *options: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and output of `foreslice plan` on an example, named relative to the repository."""
    monkeypatch.chdir(ROOT)
    try:
        result = CliRunner().invoke(
            foreslice, ["plan", "-f", str(example.relative_to(ROOT)), *options], catch_exceptions=False
        )
    except ForesliceError as error:  # what main() prints, with exit code 1
        return 1, f"error: {error}\n"
    return result.exit_code, result.output


def compare(name: str, text: str) -> None:
    """Against the recorded text, or record it."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.stem))
def test_plan_of_an_example(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(example, monkeypatch=monkeypatch)
    compare(f"{example.stem}/plan.txt", text)
    assert code == (3 if example.stem in LEFT_OUT else 0)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.stem))
def test_document_of_an_example(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = run(example, "-o", "json", monkeypatch=monkeypatch)
    document = json.loads(text)
    # What was considered is long and changes with every new type of the catalog; the table above shows its head.
    del document["demands"], document["catalogDigest"]
    for launch in document["launches"]:
        del launch["prediction"]["catalogDigest"]
    compare(f"{example.stem}/plan.json", json.dumps(document, indent=1) + "\n")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda path: str(path.stem))
def test_mistake(mistake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(mistake, monkeypatch=monkeypatch)
    compare(f"mistakes/{mistake.stem}.txt", text)
    assert code == 1

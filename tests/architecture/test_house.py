"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("autoscaler", "instance_catalog", "providers")
TOP_LEVEL = {
    ".ci", ".git", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "autoscaler",
    "benchmarks", "deploy", "docs", "instance_catalog", "providers", "pyproject.toml", "tests",
}  # fmt: skip
LONGEST = 400
# Modules in a folder; docs/architecture.md says which folders are flat on purpose, and why.
MOST_MODULES, MOST_FLAT = 19, 25


def python_files() -> list[Path]:
    return sorted(path for package in (*PACKAGES, "tests", "benchmarks") for path in (ROOT / package).rglob("*.py"))


def test_files_stay_readable() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in python_files() if (lines := _lines(path)) > LONGEST}
    assert long == {}


# Longer functions, each with the reason why its parts would not read better apart.
LONG_FUNCTIONS = {
    "autoscaler/dra/allocation/search.py:_exact_count": "the innermost loop of the search: a call costs time",
    "autoscaler/kube/pod.py:_parse": "a table: one line for each field of a pod",
    "instance_catalog/types/clouds.py:_facts": "a table: one line for each field of a cloud",
    "autoscaler/planning/planner.py:_planned": "the stages of a plan in their order",
}
# A docstring is no step: those of commands are their help.
LONGEST_FUNCTION = 40


def test_functions_fit_a_screen() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{function.name}"
        for path in python_files()
        if path.relative_to(ROOT).parts[0] in PACKAGES
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and _length(function) > LONGEST_FUNCTION
    }
    assert long == set(LONG_FUNCTIONS)


def _length(function: ast.FunctionDef) -> int:
    text = function.body[0] if ast.get_docstring(function) else None
    docstring = _lines_of(text) if text is not None else 0
    return _lines_of(function) - docstring


def _lines_of(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_folders_fit_a_screen() -> None:
    page = " ".join((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split())
    counts = Counter(path.parent.relative_to(ROOT) for path in python_files() if path.name != "__init__.py")
    large = {str(folder): count for folder, count in counts.items() if count > MOST_MODULES}
    production = {folder for folder in large if folder.startswith(PACKAGES)}
    assert {folder for folder in production if f"is flat on purpose: `{folder}/`" not in page} == set()
    assert {folder: count for folder, count in large.items() if count > MOST_FLAT} == {}


def test_every_module_says_why_it_exists() -> None:
    silent = [str(path.relative_to(ROOT)) for path in python_files() if not _starts_with_docstring(path)]
    assert silent == []


# What is shown of a life (conditions, outcomes that are counted), by name.
TOLD_BY_PHASE = {"autoscaler/kube/custom/provisioned_node.py", "autoscaler/report/metrics/samples.py"}


def test_what_a_phase_means_is_asked_of_the_table() -> None:
    """Lists of phases beside lifecycle/provisioned_node.py disagree with it sooner or later."""
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files()
        if path.is_relative_to(ROOT / "autoscaler")
        and not path.is_relative_to(ROOT / "autoscaler/lifecycle")
        and str(path.relative_to(ROOT)) not in TOLD_BY_PHASE
        and "Phase." in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and sum(map(_is_phase, node.elts)) > 1
    }
    assert found == set()


def _is_phase(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Phase"


def test_closed_sets_of_the_model_are_enums() -> None:
    """A misspelt text in a Literal equals nothing, silently; mypy does not read the tests."""
    found = [
        str(path.name) for path in (ROOT / "autoscaler/model").rglob("*.py") if "Literal[" in path.read_text("utf-8")
    ]
    assert found == []


def test_top_level_holds_only_what_the_house_names() -> None:
    tracked = {path.name for path in ROOT.iterdir() if not _ignored(path)}
    assert tracked - TOP_LEVEL == set()


def test_lock_file_names_no_index_and_pins_every_hash() -> None:
    text = (ROOT / ".ci/requirements.txt").read_text(encoding="utf-8")
    assert "://" not in text
    pins = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line)]
    assert len(pins) > 50
    assert all("==" in line for line in pins)
    assert text.count("--hash=sha256:") >= len(pins)


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    assert [d for d in wanted if ">=" not in d and not d.startswith("foreslice[")] == []


@pytest.mark.parametrize("package", ["boto3", "botocore", "google.cloud", "kubernetes", "pynvml"])
def test_sdks_are_imported_only_where_they_are_used(package: str) -> None:
    allowed = {
        "boto3": "providers/aws/",
        "botocore": "providers/aws/",
        "google.cloud": "providers/gcp/",
        "kubernetes": "autoscaler/cluster/client",
        "pynvml": "instance_catalog/probe/",
    }[package]
    pattern = re.compile(rf"^\s*(?:import|from) {re.escape(package)}(?:[.\s]|$)", re.MULTILINE)
    users = [
        str(path.relative_to(ROOT))
        for name in PACKAGES
        for path in (ROOT / name).rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert [user for user in users if not user.startswith(allowed)] == []


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _starts_with_docstring(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return text.startswith('"""') or not text.strip()


def _ignored(path: Path) -> bool:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    return path.name in ignored or path.suffix == ".egg-info"


def test_copies_are_made_by_the_function_that_knows_structs() -> None:
    """`dataclasses.replace` and `fields` raise TypeError for a struct of `instance_catalog.dataclass`."""
    imported = re.compile(r"^from dataclasses import .*\b(replace|fields|asdict|astuple)\b", re.MULTILINE)
    assert [str(path.relative_to(ROOT)) for path in python_files() if imported.search(path.read_text("utf-8"))] == []

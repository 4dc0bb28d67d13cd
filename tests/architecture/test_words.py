"""Retired names stay out, and keys, modules and log events that the documentation names exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from autoscaler.cluster import journal
from autoscaler.kube.custom import capacity_pool, launch_batch
from instance_catalog.kubernetes import labels

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((ROOT / "docs").glob("*.md"))
GLOSSARY = ROOT / "docs/glossary.md"
PACKAGES = ("autoscaler", "instance_catalog", "providers")
SOURCES = (*PACKAGES, "tests", "benchmarks")
# `foreslice.dev/...` in prose that is no label, annotation or taint: the versions of the API group and of plans.
NO_KEYS = {"v1alpha1", "v1alpha2"}
FINALIZERS = {capacity_pool.FINALIZER, launch_batch.FINALIZER, journal.FINALIZER}
# Wordings that a reader of English as a second language reads twice, with what is written instead.
RETIRED_WORDINGS = {
    "whoever": "the account, user or sender that is meant",
    "that are there": "existing",
    "left to others": "ignored",
    "says which of yours": "if your nodes have it, add it",
    "nobody knows": "it is not known",
    "otherwise than": "differ from",
    "is no object": "is not an object",
    "is no quantity": "is not a quantity",
    "is no whole number": "is not a whole number",
}
_MODULE = re.compile(r"`((?:\w+/)*\w+\.py)`")
_EVENT = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")


def retired() -> list[str]:
    """The left column of "Names that changed": identifiers and modules."""
    _, _, section = GLOSSARY.read_text(encoding="utf-8").partition("## Names that changed")
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])]


def test_the_glossary_lists_what_was_renamed() -> None:
    assert len(retired()) > 40
    assert {"Scene", "Shelf", "disposal.py"} <= set(retired())


def test_retired_names_stay_out_of_the_code() -> None:
    old = {name for name in retired() if not name.endswith(".py")}
    found = {f"{path}: {name}" for path, names in used_names().items() for name in names & old}
    assert found == set()


def test_retired_metrics_alerts_and_log_events_stay_out() -> None:
    """They are texts: no identifier of the code has them."""
    old = [name for name in retired() if name.lower().startswith("foreslice") or re.fullmatch("[a-z]+(_[a-z]+)+", name)]
    assert {"foreslice_ticks_total", "ForesliceBlind", "round_cut_short"} <= set(old)
    pattern = re.compile(rf"\b({'|'.join(old)})\b")
    paths = [
        *(path for name in PACKAGES for path in (ROOT / name).rglob("*.py")),
        *(path for suffix in ("*.yaml", "*.json", "*.tpl", "*.txt") for path in (ROOT / "deploy").rglob(suffix)),
    ]
    found = {f"{path.relative_to(ROOT)}: {name}" for path in paths for name in pattern.findall(path.read_text("utf-8"))}
    assert found == set()


def test_retired_modules_stay_out() -> None:
    old = {name for name in retired() if name.endswith(".py")}
    modules = {str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert {module for module in modules if Path(module).name in old} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_retired_names_stay_out_of_the_documentation(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page == GLOSSARY:
        text = text.partition("## Names that changed")[0]
    code = set(re.findall(r"`([^`\n]+)`", text))
    words = {Path(word).name if word.endswith(".py") else word for word in code}
    assert words & set(retired()) == set()


def test_retired_wordings_stay_out_of_what_people_read() -> None:
    """Messages, help, settings and the README; docstrings of commands and of settings are shown, too."""
    pattern = re.compile(rf"\b({'|'.join(RETIRED_WORDINGS)})\b", re.IGNORECASE)
    found = {
        f"{path.relative_to(ROOT)}: {wording} (write: {RETIRED_WORDINGS[wording.lower()]})"
        for name in PACKAGES
        for path in (ROOT / name).rglob("*.py")
        for text in _shown(path)
        for wording in pattern.findall(" ".join(text.split()))
    }
    assert found | set(pattern.findall((ROOT / "README.md").read_text(encoding="utf-8"))) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_keys_in_the_documentation_exist(page: Path) -> None:
    """An annotation that no code reads is worse than none: a reader sets it and nothing happens."""
    known = {value for name, value in vars(labels).items() if name.isupper()} | FINALIZERS
    named = re.findall(r"(?<![\w.])foreslice\.dev/([a-z][a-z0-9-]*)", _without_kinds(page.read_text(encoding="utf-8")))
    assert {key for key in named if f"foreslice.dev/{key}" not in known} - NO_KEYS == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_modules_in_the_documentation_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page == GLOSSARY:
        text = text.partition("## Names that changed")[0]
    named = {name for name in _MODULE.findall(text) if "NAME" not in name}  # a placeholder in recipes
    missing = {name for name in named if not any(path.endswith("/" + name) for path in modules())}
    assert missing == set()


def test_log_events_in_the_documentation_exist() -> None:
    """What people search a log for: an event that was renamed in the code must be renamed on these pages as well."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in (*PACKAGES, "deploy/charts", "tests/e2e")
        for suffix in ("*.py", "*.yaml")
        for path in (ROOT / folder).rglob(suffix)
    ) + "\n".join(str(path) for path in (ROOT / "tests").rglob("test_*.py"))
    pages = [ROOT / "docs" / name for name in ("operations.md", "nodes.md", "install.md", "catalog.md")]
    named = {word for page in pages for word in _EVENT.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert {word for word in named if not re.search(rf"\b{word}\b", code)} == set()


def _shown(path: Path) -> Iterator[str]:
    """The texts of a module that people may see: all but docstrings, except those of commands and settings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shows_docstrings = path.is_relative_to(ROOT / "autoscaler/cli") or path == ROOT / "autoscaler/settings/settings.py"
    hidden = () if shows_docstrings else [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    ids = {id(node) for node in hidden}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ids:
            yield node.value


def _without_kinds(text: str) -> str:
    """Subresources in tables of rights, such as pods.foreslice.dev/status, are no keys."""
    return re.sub(r"[a-z]+\.foreslice\.dev/[a-z]+", "", text)


@cache
def modules() -> set[str]:
    """Every Python file, with a slash in front so that `/loop.py` is not found in `tick_loop.py`."""
    return {"/" + str(path.relative_to(ROOT)) for name in SOURCES for path in (ROOT / name).rglob("*.py")}


@cache
def used_names() -> dict[str, set[str]]:
    """Every identifier of every module of the product and its tests."""
    paths = [path for name in (*PACKAGES, "tests") for path in (ROOT / name).rglob("*.py")]
    return {str(path.relative_to(ROOT)): set(_identifiers(path)) for path in paths}


def _identifiers(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name):
                yield name.rpartition(".")[2]

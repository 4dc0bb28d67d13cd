"""The transcripts in README.md and docs/ are what the commands print. UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.main import foreslice
from autoscaler.errors import ForesliceError
from tests.golden.test_examples import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_MARK = "<!-- transcript -->\n"
_BLOCK = re.compile(rf"{_MARK}```console\n\$ foreslice (?P<command>.*)\n(?P<output>(?s:.*?))```\n")
# Pages that simulate days.
SLOW = {"consolidation.md", "simulate.md"}
TOLD = [page for page in PAGES if _MARK in page.read_text(encoding="utf-8")]


def printed(command: str) -> str:
    """What the command prints, errors included as main() prints them."""
    try:
        result = CliRunner().invoke(foreslice, shlex.split(command), catch_exceptions=False)
    except ForesliceError as error:
        return f"error: {error}\n"
    return result.output


def retold(found: re.Match[str]) -> str:
    """A transcript as it is today."""
    return f"{_MARK}```console\n$ foreslice {found['command']}\n{printed(found['command'])}```\n"


def marks(page: Path) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.slow,) if page.name in SLOW else ()


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name, marks=marks(page)) for page in TOLD])
def test_transcripts_are_real(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text(encoding="utf-8")
    told, count = _BLOCK.subn(retold, text)
    if os.environ.get("UPDATE_GOLDEN"):
        page.write_text(told, encoding="utf-8")
    assert count == text.count(_MARK)
    assert page.read_text(encoding="utf-8") == told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_linked_files_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []

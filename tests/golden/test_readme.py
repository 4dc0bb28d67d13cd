"""The transcripts in README.md are what the commands print. UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.golden.test_examples import ROOT, run

README = ROOT / "README.md"
_BLOCK = re.compile(r"<!-- transcript: (?P<example>\S+) -->\n```console\n(?P<text>.*?)```\n", re.DOTALL)


def transcript(example: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command as typed, and what it prints."""
    _, text = run(ROOT / example, monkeypatch=monkeypatch)
    return f"$ foreslice plan -f {example}\n{text}"


def test_transcripts_are_real(monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        text = _BLOCK.sub(lambda found: _rewritten(found, monkeypatch), text)
        README.write_text(text, encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) == text.count("<!-- transcript:") > 0
    for block in blocks:
        assert block["text"] == transcript(block["example"], monkeypatch)


def test_linked_files_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not Path(ROOT / link).exists()] == []


def _rewritten(found: re.Match[str], monkeypatch: pytest.MonkeyPatch) -> str:
    example = found["example"]
    return f"<!-- transcript: {example} -->\n```console\n{transcript(example, monkeypatch)}```\n"

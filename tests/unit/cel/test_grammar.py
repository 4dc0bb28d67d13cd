"""cel.lark fits the releases of cel-python that the dependency admits."""

from __future__ import annotations

import re
import tomllib
from copy import copy
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from autoscaler.cel.parser import grammar

ROOT = Path(__file__).parents[3]
TRIED = "0.5.0"
NEXT = "0.5.1"
# What cel.lark takes as it is. A rule that it overrides need only exist.
IMPORTED = {
    "ident": "IDENT",
    "dot_ident": '"." IDENT',
    "ident_arg": 'IDENT "(" [exprlist] ")"',
    "dot_ident_arg": '"." IDENT "(" [exprlist] ")"',
    "paren_expr": '"(" expr ")"',
    "member_dot_arg": 'member "." IDENT "(" [exprlist] ")"',
    "member_index": 'member "[" expr "]"',
    "exprlist": 'expr ("," expr)*',
    "IDENT": "/[_a-zA-Z][_a-zA-Z0-9]*/",
    "WHITESPACE": r"/[\t\n\f\r ]+/",
    "COMMENT": r"/\/\/.*/",
}


def stock() -> str:
    package = find_spec("celpy")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("cel.lark").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", IMPORTED)
def test_an_imported_rule_is_the_one_that_was_read(name: str) -> None:
    found = re.search(rf"^{name}\s*:\s*(.*)$", stock(), re.MULTILINE)
    assert found is not None, f"cel-python {version('cel-python')} has no rule {name}: define it in cel.lark"
    assert found[1] == IMPORTED[name], (
        f"cel-python {version('cel-python')} changes the rule {name}: compare it with cel-go and override it"
    )


def test_every_import_is_overridden_or_was_read() -> None:
    text = Path(grammar.__file__).with_name("cel.lark").read_text(encoding="utf-8")
    imported = {name for line in re.findall(r"^%import cel \((.*)\)$", text, re.MULTILINE) for name in line.split(", ")}
    overridden = set(re.findall(r"^%override \??(\w+):", text, re.MULTILINE))
    assert imported - overridden == set(IMPORTED)


def test_the_dependency_admits_only_releases_that_were_tried() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (bounds,) = (Requirement(text).specifier for text in declared if text.startswith("cel-python"))
    assert version("cel-python") == TRIED
    assert TRIED in bounds
    assert NEXT not in bounds


@pytest.mark.slow
def test_a_grammar_without_an_imported_rule_says_which_release_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "celpy").mkdir()
    (tmp_path / "celpy/__init__.py").write_text("")
    (tmp_path / "celpy/cel.lark").write_text(stock().replace("paren_expr", "parentheses"))
    found = copy(find_spec("celpy"))  # the spec itself belongs to the module, where it is imported
    assert found is not None
    found.origin = str(tmp_path / "celpy/__init__.py")
    monkeypatch.setattr(grammar, "find_spec", lambda _: found)
    with pytest.raises(ImportError, match=r"cel-python does not fit cel.lark \(.*paren_expr.*install the release"):
        grammar.parser.__wrapped__(quoted_names=False)

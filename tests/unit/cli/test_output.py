"""Tables on terminals and in pipes."""

from __future__ import annotations

import re

import pytest

from autoscaler.cli.common.output import fenced, folded, markdown_table, markdown_text, plain_table, yaml_text

COLUMNS = ("node", "why")
ROWS = [("implicit-687655f656", "an earlier alternative of firstAvailable that costs less"), ("b", "")]


def test_piped_rows_are_one_line_each() -> None:
    assert plain_table(COLUMNS, ROWS) == [
        "NODE                 WHY",
        "implicit-687655f656  an earlier alternative of firstAvailable that costs less",
        "b",
    ]


@pytest.mark.parametrize("width", [10, 55], ids=["too narrow for any text", "narrow"])
def test_texts_are_folded_and_names_are_not(width: int) -> None:
    assert plain_table(COLUMNS, ROWS, width=width) == [
        "NODE                 WHY",
        "implicit-687655f656  an earlier alternative of",
        "                     firstAvailable that costs less",
        "b",
    ]


def test_commands_are_not_folded() -> None:
    """The second half of one, on a line of its own, would be another command."""
    text = "add the class to the files (`kubectl get deviceclass gpu.example.com -o yaml`), or correct the name"
    assert folded(text, 40) == [
        "add the class to the files",
        "    (`kubectl get deviceclass gpu.example.com -o yaml`),",
        "    or correct the name",
    ]
    assert plain_table(["WHY"], [[text]], width=40)[2] == "(`kubectl get deviceclass gpu.example.com -o yaml`),"


def test_without_rows_there_are_heads() -> None:
    assert plain_table(COLUMNS, [], width=80) == ["NODE  WHY"]


def test_markdown_that_somebody_else_wrote_is_text() -> None:
    """A plan is posted as a comment, and names and selectors are those of whoever wrote the manifests."""
    hostile = "x\n\n# placed\n```\n@org/team ![x](http://evil/x.png) <b> `a` a\\|b #1"
    for line in (markdown_text(hostile), *markdown_table(["A"], [[hostile]])):
        assert "\n" not in line
        assert not re.search(r"(?<!\\)[`<\[#*]", line.replace("| --- |", ""))
        assert "@org" not in line
    assert markdown_table(["A"], [["a\\|b"]])[-1] == "| a\\\\\\|b |"


def test_no_line_ends_the_block_of_code_that_it_is_in() -> None:
    block = fenced(["text", "```", "a `````` b", "two\nlines"])
    assert block[0] == block[-1] == "`" * 7
    assert block[1:-1] == ["text", "```", "a `````` b", "two\\nlines"]


@pytest.mark.parametrize(
    "text", ["y", "N", "1e3", "-1.5E+3", "12e5", "0o17", "0X1F", "1_0e2", "5.", "no", "true", "null", "010"]
)
def test_text_that_a_reader_takes_for_another_type_is_quoted(text: str) -> None:
    assert yaml_text({text: text}) == f"'{text}': '{text}'\n"


@pytest.mark.parametrize("text", ["80Gi", "1.2.3", "p5.48xlarge", "yes-no", "e3", "0o9", "0xg"])
def test_other_text_is_not(text: str) -> None:
    assert yaml_text({text: text}) == f"{text}: {text}\n"

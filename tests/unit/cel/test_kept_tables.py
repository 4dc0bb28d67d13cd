"""The parser's tables, kept by one process for the next: the same parser, in a directory that only its user writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoscaler.cel.parser.grammar import parser
from autoscaler.cel.parser.kept_tables import keep_tables_in, kept_tables

EXPRESSION = "device.attributes['a.b'].c in [1, 2] && has(device.x.y) ? !true : cel.bind(z, 1, z == 2)"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    parser.cache_clear()
    yield
    keep_tables_in()
    parser.cache_clear()


@pytest.mark.parametrize("quoted_names", [False, True])
def test_kept_tables_parse_alike(tmp_path: Path, quoted_names: bool) -> None:
    text = EXPRESSION + (" || a.`b-c` == 1" if quoted_names else "")
    made = parser(quoted_names=quoted_names).parse(text)
    found = []
    for _ in range(2):  # written, then read
        keep_tables_in(lambda: tmp_path / "kept")
        parser.cache_clear()
        found.append(parser(quoted_names=quoted_names))
    (file,) = (tmp_path / "kept").iterdir()
    assert file.stat().st_size > 10_000
    assert found[1].source_path == "<deserialized>"
    assert [repr(one.parse(text)) for one in found] == [repr(made)] * 2


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    keep_tables_in(lambda: tmp_path)
    first = parser(quoted_names=False).parse(EXPRESSION)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    parser.cache_clear()
    assert repr(parser(quoted_names=False).parse(EXPRESSION)) == repr(first)
    assert file.stat().st_size > len(whole) * 0.9, "sets are kept in any order, so sizes differ a little"


def test_nothing_is_read_where_others_write(tmp_path: Path) -> None:
    assert kept_tables("cel") is None
    keep_tables_in(lambda: tmp_path / "mine")
    assert kept_tables("cel") == str(tmp_path / "mine" / "cel")
    os.chmod(tmp_path / "mine", 0o777)
    assert kept_tables("cel") is None
    (tmp_path / "file").touch()
    keep_tables_in(lambda: tmp_path / "file" / "below")
    assert kept_tables("cel") is None

"""What a written file was before stays what it is: a link, a pipe, a file with its mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.errors import BadInputError


def test_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    file, link = tmp_path / "kept" / "p5.yaml", tmp_path / "p5.yaml"
    file.parent.mkdir()
    link.symlink_to(file)
    replace_file(link, "one")
    replace_file(link, "two")
    assert link.is_symlink()
    assert file.read_text() == "two"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for both, so that the writer does not wait for a reader.
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    replace_file(pipe, "text")
    assert os.read(reader, 100) == b"text"
    assert pipe.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "p5.yaml"
    file.touch(mode)
    replace_file(file, "text")
    assert file.stat().st_mode & 0o777 == mode


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="Is a directory"):
        replace_file(tmp_path, "text")

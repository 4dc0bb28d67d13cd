"""Where the parser's tables are kept between processes: nowhere, unless a process with a user says so.

Making them from the grammar takes 0.06 CPU seconds, more than planning for a few pods. lark checks that kept tables are
of the same grammar, release and version of Python, and makes them again if they are not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def _nowhere() -> Path | None:
    return None


_directory: Callable[[], Path | None] = _nowhere


def keep_tables_in(directory: Callable[[], Path | None] = _nowhere) -> None:
    """From now on in this process. `directory` is asked, and the directory is created, when a parser is made."""
    global _directory
    _directory = directory


def kept_tables(name: str) -> str | None:
    """The path of a file of that name; None where nothing is kept, or where somebody else may write."""
    directory = _directory()
    if directory is None:
        return None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return None
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None  # lark's files are pickles: who writes them runs code here
    return str(directory / name)

"""A cache for the parser's tables between processes: off, unless a process with a user sets a directory.

Creating them from the grammar takes 0.06 CPU seconds, more than planning for a few pods. lark checks that cached tables
are for the same grammar, release and version of Python, and creates them again if they are not.
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
    """Set the directory of this process. Creating a parser calls `directory` and creates the directory."""
    global _directory
    _directory = directory


def kept_tables(name: str) -> str | None:
    """The path of a file with that name; None without a directory, or if other users may write to it."""
    directory = _directory()
    if directory is None:
        return None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return None
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None  # lark's files are pickles: anyone who writes them can run code here
    return str(directory / name)

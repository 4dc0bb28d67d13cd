"""The directory in which commands keep results for the next command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "FORESLICE_CACHE_DIR"


def cache_directory() -> Path | None:
    """The directory of the files: $FORESLICE_CACHE_DIR (empty: nowhere), else foreslice in the user's cache
    directory."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home directory
        return None
    return Path(base) / "foreslice"

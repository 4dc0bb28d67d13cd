"""The command that renders the objects of which a file has only a part."""

from __future__ import annotations

import shlex
from pathlib import PurePath


def render_command(file: str) -> str:
    """With the folder of the file, or DIR where the text comes from no file ("-" or "")."""
    folder = "DIR" if file in ("", "-") else shlex.quote(str(PurePath(file).parent))
    return f"`kubectl kustomize {folder} | foreslice plan -f -`"


def render_overlay(file: str) -> str:
    """The same for a patch, whose overlay may be another folder."""
    if file in ("", "-"):
        return f"{render_command(file)}, where DIR is the folder of the overlay that uses it"
    return f"{render_command(file)} (if the overlay that uses it is in another folder, with that)"

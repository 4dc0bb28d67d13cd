"""Writing a file so that no reader sees a part of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from autoscaler.errors import BadInputError


def ensure_writable(path: Path) -> None:
    """Make sure that the file can be written, before hours go into what is to be in it. Raises BadInputError, also
    where its directory is missing: a mistyped path shall not create one."""
    if not path.parent.is_dir():
        step = "create it, or choose an existing one"
        raise BadInputError(f"{path}: there is no directory {path.parent}", next_step=step)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}", next_step="choose a directory you can write to") from error


def replace_file(path: Path, text: str) -> None:
    """Write the file so that a reader sees the old text or the new one, never a part. Raises BadInputError.

    A symbolic link stays one, and a device or a pipe is written to: a rename would replace it by a file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}", next_step="choose a directory you can write to") from error


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    # Hidden, so that readers of the directory ignore it meanwhile.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise

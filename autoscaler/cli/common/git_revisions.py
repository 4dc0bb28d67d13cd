"""Manifests as they are in a git revision: "git:main:deploy/" names the path deploy/ of the branch main."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autoscaler.errors import BadInputError

PREFIX: Final = "git:"


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where the path lies for now; `folder` stands for `revision` ("git:main:") in every message."""

    path: str
    folder: str
    revision: str


@contextmanager
def checked_out(text: str) -> Iterator[Checkout]:
    """A folder with the path as the revision has it, for as long as it is needed. Raises BadInputError."""
    revision, _, path = text.removeprefix(PREFIX).partition(":")
    if not revision or not path:
        raise BadInputError(f"{text} names no revision and path", next_step="write git:main:deploy/")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=text)
    archive = _git("archive", "--format=tar", commit.decode().strip(), "--", path, about=text)
    with tempfile.TemporaryDirectory(prefix="foreslice-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in files:
                content = files.extractfile(member) if member.isfile() else None
                if content is not None:
                    file = Path(folder) / member.name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content.read())
        yield Checkout(str(Path(folder) / path), f"{folder}/", f"{PREFIX}{revision}:")


def _git(*arguments: str, about: str) -> bytes:
    if shutil.which("git") is None:
        raise BadInputError(f"{about} needs git, which is not installed", next_step="install git, or give files")
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "there is no such revision"
        raise BadInputError(
            f"{about} cannot be read: {said}", next_step="run it inside the repository, and check REV and PATH"
        )
    return done.stdout

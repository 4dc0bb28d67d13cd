"""deploy/requirements*.txt: the part of the lock file that the image needs, with its versions and hashes.

The lock file holds the development tools, too. Who needs a package is in its comments (`# via`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
EXTRAS: Final = ("aws", "cluster", "gcp", "grpc", "probe", "tracing")
_HEAD: Final = "# From .ci/requirements.txt by `make generate`: {what}, and what that needs.\n"
_OURSELVES: Final = "foreslice (pyproject.toml)"


def generated_files() -> dict[Path, str]:
    """Packages that the controller runs with, and the build backend."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [*project["project"]["dependencies"]]
    for extra in EXTRAS:
        asked += project["project"]["optional-dependencies"][extra]
    return {
        Path("deploy/requirements.txt"): _HEAD.format(what="what the controller runs with") + _part(asked),
        Path("deploy/requirements-build.txt"): _HEAD.format(what="the build backend")
        + _part(project["build-system"]["requires"]),
    }


def _part(asked: Iterable[str]) -> str:
    entries = re.split(
        r"^(?=[a-z0-9])", (ROOT / ".ci/requirements.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    needed = {_name(requirement) for requirement in asked}
    while True:
        more = {_name(entry) for entry in entries if entry and needed & _parents(entry)}
        if more <= needed:
            return "".join(entry for entry in entries if entry and _name(entry) in needed)
        needed |= more


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _parents(entry: str) -> set[str]:
    """Who needs the package of an entry; what the project asks for itself is no reason, it may be a tool."""
    _, _, via = entry.partition("# via")
    return {line.strip(" #") for line in via.splitlines()} - {_OURSELVES, ""}

"""Kubernetes' own code in a child process that answers one JSON question a line (tests/oracle/go).

The child works while this process computes its own answer: `ask` first, `answer` later.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from tests.go_binary import GoProgram

Json: TypeAlias = dict[str, Any]
_GO = Path(__file__).parent / "go"
_LIBRARY = "k8s.io/dynamic-resource-allocation"


class OracleError(Exception):
    """The child did not understand a question, or is gone."""


@dataclass(frozen=True)
class Release:
    """A Kubernetes version of which both sides are at hand."""

    profile: KubernetesProfile
    program: GoProgram

    @property
    def name(self) -> str:
        """The version of the library, such as v0.36.3."""
        return self.program.version


_TAKES = "2 to 4 minutes on two cores"

RELEASES: Mapping[str, Release] = {
    "1.34": Release(
        profile_for("1.34.13"), GoProgram("oracle", _GO, _LIBRARY, _TAKES, "go034.mod", tags=("oracle034",))
    ),
    "1.36": Release(REFERENCE, GoProgram("oracle", _GO, _LIBRARY, _TAKES)),
    "1.37": Release(profile_for("1.37.2"), GoProgram("oracle", _GO, _LIBRARY, _TAKES, "go037.mod")),
}


@dataclass(frozen=True)
class Given:
    """The simulator's answer, in upstream's words, and the nanoseconds it took without reading objects."""

    answer: Json
    nanoseconds: int


class Upstream:
    """Context manager around the child; at most one question may be open."""

    def __init__(self, program: GoProgram, *arguments: str) -> None:
        self._program = program
        self._arguments = arguments

    def build(self) -> None:
        """Build the program, if that was not done before."""
        self._program.binary()

    def __enter__(self) -> Upstream:
        self._child = subprocess.Popen(
            [self._program.binary(), *self._arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._child.communicate()

    def ask(self, question: Json) -> None:
        """Send a question."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(question).encode() + b"\n")
        self._child.stdin.flush()

    def answer(self) -> Json:
        """The answer to the question sent last. Raises OracleError for a question the child cannot read."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise OracleError(f"{self._program.name} ended with {self._child.wait()}; its error is above")
        found: Json = json.loads(line)
        if found["outcome"] == "bad_case":
            raise OracleError(found["error"])
        return found

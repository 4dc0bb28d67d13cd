"""Semantic versions (semver 2.0 by github.com/blang/semver/v4), as device attributes and CEL use them."""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.dataclass import dataclass

_UINT64_MAX: Final = 2**64 - 1
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


class SemverError(ValueError):
    """Text that is not a semantic version; the message follows upstream's."""


@dataclass(frozen=True, slots=True, eq=False)
class SemanticVersion:
    """Equality and order follow precedence: build metadata is ignored."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str, *, normalize: bool = False) -> SemanticVersion:
        """The version written as `text`; `normalize` accepts a leading v, missing parts and leading zeros.

        Raises SemverError.
        """
        return _parse(_normalized(text) if normalize else text)

    def compare(self, other: SemanticVersion) -> int:
        """-1, 0 or 1 by precedence."""
        mine, theirs = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != theirs:
            return 1 if mine > theirs else -1
        if not self.prerelease or not other.prerelease:
            return bool(other.prerelease) - bool(self.prerelease)
        for left, right in zip(self.prerelease, other.prerelease, strict=False):
            if left != right:
                return 1 if _rank(left) > _rank(right) else -1
        return (len(self.prerelease) > len(other.prerelease)) - (len(self.prerelease) < len(other.prerelease))

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += f"-{'.'.join(map(str, self.prerelease))}" if self.prerelease else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticVersion) and self.compare(other) == 0

    def __lt__(self, other: SemanticVersion) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: SemanticVersion) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: SemanticVersion) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: SemanticVersion) -> bool:
        return self.compare(other) >= 0

    def __hash__(self) -> int:
        return hash((self.major, self.minor, self.patch, self.prerelease))


def _rank(identifier: int | str) -> tuple[bool, int, str]:
    """Numbers before text, numbers by value."""
    return (False, identifier, "") if isinstance(identifier, int) else (True, 0, identifier)


def _parse(text: str) -> SemanticVersion:
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    return SemanticVersion(
        _number(parts[0], "major"),
        _number(parts[1], "minor"),
        _number(patch, "patch"),
        tuple(_prerelease(item) for item in prerelease.split(".")) if dash else (),
        tuple(_identifier(item, "Build meta data") for item in build.split(".")) if plus else (),
    )


def _number(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {what} number {text!r}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{what.capitalize()} number must not contain leading zeroes {text!r}")
    return _uint64(text)


def _uint64(text: str) -> int:
    if len(text) > 20 or int(text) > _UINT64_MAX:
        raise SemverError(f"number {text[:30]!r} is out of range")
    return int(text)


def _identifier(text: str, what: str) -> str:
    if not text:
        raise SemverError(f"{what} is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {what} {text!r}")
    return text


def _prerelease(text: str) -> int | str:
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {text!r}")
        return _uint64(text)
    return _identifier(text, "PreRelease")


def _normalized(text: str) -> str:
    """apiserver's normalizeAndParse (pkg/cel/library/semverlib.go, v0.36.3): v1.02 becomes 1.2.0."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            if not stripped or stripped[0] not in "0123456789":
                stripped = "0" + stripped
            parts[index] = stripped
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise SemverError("Short version cannot contain PreRelease/Build meta data")
        parts.extend(["0"] * (3 - len(parts)))
    return ".".join(parts)

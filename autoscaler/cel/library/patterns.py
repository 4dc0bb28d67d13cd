"""Regular expressions, read by Go's rules and run by RE2 (cel-go matches(), k8s.io/apiserver library/regex.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from autoscaler.cel.common.values import Failure, Unknown, Value
from autoscaler.cel.library.comparison import NO_OVERLOAD
from autoscaler.cel.library.pattern_syntax import rewritten
from autoscaler.cel.library.pattern_tree import PatternError, TooLargeError

_SMALL, _LARGE = 8 * 2**20, 64 * 2**20  # bytes that a program and what it remembers may take


class UnsupportedPatternError(ValueError):
    """A regular expression that Go accepts and RE2 does not."""


def compiled(pattern: str) -> Any:
    """The RE2 program of `pattern`. Raises PatternError and UnsupportedPatternError."""
    program = _compiled(pattern)
    return _compiled_large(pattern) if program is None else program


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    """None if it needs more memory than many programs may have."""
    try:
        return _program(pattern, _SMALL)
    except UnsupportedPatternError:
        return None


@lru_cache(maxsize=4)
def _compiled_large(pattern: str) -> Any:
    return _program(pattern, _LARGE)


def _program(pattern: str, memory: int) -> Any:
    import re2  # most selectors have no regular expression, and the module is large

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    try:
        return re2.compile(rewritten(pattern), options)
    except TooLargeError as error:
        raise UnsupportedPatternError(pattern) from error
    except re2.error as error:
        raise UnsupportedPatternError(pattern) from error


_UNSUPPORTED: Final = Unknown(frozenset(), "a regular expression that is too large to be tried here")


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str or type(pattern) is not str:
        return NO_OVERLOAD
    try:
        return compiled(pattern).search(text) is not None
    except PatternError as error:
        return Failure(str(error))
    except UnsupportedPatternError:
        return _UNSUPPORTED


def _find(text: str, pattern: str) -> Value:
    try:
        found = compiled(pattern).search(text)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    except UnsupportedPatternError:
        return _UNSUPPORTED
    return "" if found is None else found.group(0)


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """FindAllString: an empty match next to the match before it does not count."""
    try:
        program = compiled(pattern)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    except UnsupportedPatternError:
        return _UNSUPPORTED
    results: list[str] = []
    at, last_end = 0, -1
    while at <= len(text) and (limit < 0 or len(results) < limit):
        found = program.search(text, at)
        if found is None:
            break
        start, end = found.span()
        if start != end or start != last_end:
            results.append(text[start:end])
        last_end = end
        at = end if end > start else end + 1
    return results


SINGLETONS: Final[Mapping[str, Callable[..., Any]]] = {"matches": _matches}
IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

"""Regular expressions, parsed by Go's rules and run by RE2 (cel-go matches(), k8s.io/apiserver library/regex.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from autoscaler.cel.common.values import Failure, Unknown, Value
from autoscaler.cel.library.comparison import NO_OVERLOAD
from autoscaler.cel.library.pattern_syntax import rewritten
from autoscaler.cel.library.pattern_tree import PatternError, TooLargeError

_MEMORY: Final = 8 * 2**20  # bytes for a program and its cache; RE2 gives up in less than 0.1 s
_MOST_STEPS: Final = 5_000_000  # of a search: characters of the text by instructions of the program, some 0.05 s


class UnsupportedPatternError(ValueError):
    """A regular expression that Go accepts and RE2 does not."""


def compiled(pattern: str) -> Any:
    """The RE2 program of `pattern`. Raises PatternError and UnsupportedPatternError."""
    found = _program(pattern)
    if found is None:
        raise UnsupportedPatternError(pattern)
    return found


@lru_cache(maxsize=512)
def _program(pattern: str) -> Any:
    """The program; None if it is too large, which is cached because it takes longest to find out."""
    import re2  # most selectors have no regular expression, and the module is large

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(rewritten(pattern), options)
    except (TooLargeError, re2.error):
        return None


def _searched(pattern: str, text: str) -> Any:
    """The program, if a search of the text takes a limited time. Raises PatternError and UnsupportedPatternError.

    Values of devices are short; the length of texts that selectors build is limited only by their cost.
    """
    program = compiled(pattern)
    if len(text) * program.programsize > _MOST_STEPS:
        raise UnsupportedPatternError(pattern)
    return program


_UNSUPPORTED: Final = Unknown(frozenset(), "a regular expression that is too large to be tried here")


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str or type(pattern) is not str:
        return NO_OVERLOAD
    try:
        return _searched(pattern, text).search(text) is not None
    except PatternError as error:
        return Failure(str(error))
    except UnsupportedPatternError:
        return _UNSUPPORTED


def _find(text: str, pattern: str) -> Value:
    try:
        found = _searched(pattern, text).search(text)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    except UnsupportedPatternError:
        return _UNSUPPORTED
    return "" if found is None else found.group(0)


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """FindAllString: an empty match next to the previous match does not count.

    Each search may read all of the remaining text, so they share the steps of one.
    """
    try:
        program = _searched(pattern, text)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    except UnsupportedPatternError:
        return _UNSUPPORTED
    results: list[str] = []
    at, last_end, steps = 0, -1, 0
    while at <= len(text) and (limit < 0 or len(results) < limit):
        steps += (len(text) - at) * program.programsize
        if steps > _MOST_STEPS:
            return _UNSUPPORTED
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

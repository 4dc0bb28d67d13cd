"""Regular expressions as Go has them, through RE2 (cel-go matches(), k8s.io/apiserver library/regex.go)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from autoscaler.cel.comparison import NO_OVERLOAD
from autoscaler.cel.values import Failure, Value

_TOKEN: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?P?<([^>]*)>|.", re.DOTALL)


class PatternError(ValueError):
    """Text that is not a regular expression."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """The RE2 program of `pattern`. Raises PatternError. The module is loaded on first use: it is large."""
    import re2  # most selectors have no regular expression

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_translated(pattern), options)
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {_told(error)}") from error


def _told(error: Exception) -> str:
    """RE2 tells what is wrong in bytes."""
    (what,) = error.args
    return what.decode(errors="replace") if isinstance(what, bytes) else str(what)


def _translated(pattern: str) -> str:
    """Go accepts repeated group names and (?<n>…) and refuses \\C; RE2 the other way round. No result shows names."""

    def replaced(found: re.Match[str]) -> str:
        if found[1] is not None:
            if not re.fullmatch(r"\w+", found[1]):
                raise PatternError(f"error parsing regexp: invalid named capture: `{found[0]}`")
            return "("
        if found[0] == r"\C":
            raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
        return found[0]

    return _TOKEN.sub(replaced, pattern)


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str or type(pattern) is not str:
        return NO_OVERLOAD
    try:
        return compiled(pattern).search(text) is not None
    except PatternError as error:
        return Failure(str(error))


def _find(text: str, pattern: str) -> Value:
    try:
        found = compiled(pattern).search(text)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    return "" if found is None else found.group(0)


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    """FindAllString: an empty match next to the match before it does not count."""
    try:
        program = compiled(pattern)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
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

"""Functions on strings (cel-go v0.26.0 common/stdlib and ext/strings.go version 2). Indices count code points.

Results that could grow beyond 16 MiB are measured before they are built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.values import Failure, Value
from autoscaler.cel.library.arithmetic import MAX_ITEMS, MAX_TEXT, TOO_LARGE
from autoscaler.cel.library.comparison import NO_OVERLOAD

# unicode.IsSpace of Go, which differs from str.strip().
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
        "\\": "\\\\", '"': '\\"',
    }
)  # fmt: skip


def quoted(text: str) -> str:
    """strings.quote."""
    return f'"{text.translate(_QUOTED)}"'


def _out_of_range(index: int) -> Failure:
    return Failure(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, wanted: str, start: int = 0) -> Value:
    if not wanted:
        return start
    if start < 0:
        return _out_of_range(start)
    return text.find(wanted, start) if start < len(text) else -1


def _last_index_of(text: str, wanted: str) -> Value:
    return text.rfind(wanted) if wanted else len(text)


def _last_index_from(text: str, wanted: str, start: int) -> Value:
    if not wanted:
        return start
    if start < 0:
        return _out_of_range(start)
    return text.rfind(wanted, 0, start + len(wanted)) if start < len(text) else -1


def _index_from_bounded(text: str, wanted: str, start: int) -> Value:
    """cel-go 0.29: an empty text is found where the search starts, at the end of the string at the latest."""
    if start < 0:
        return _out_of_range(start)
    return _index_of(text, wanted, start) if wanted else min(start, len(text))


def _last_index_from_bounded(text: str, wanted: str, start: int) -> Value:
    if start < 0:
        return _out_of_range(start)
    return _last_index_from(text, wanted, start) if wanted else min(start, len(text))


def _replace(text: str, old: str, new: str, limit: int = -1) -> Value:
    count = text.count(old) if old else len(text) + 1
    if limit >= 0:
        count = min(count, limit)
    if len(text) + count * (len(new) - len(old)) > MAX_TEXT:
        return TOO_LARGE
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> Value:
    if limit == 0:
        return []
    if len(text) > MAX_ITEMS:
        return TOO_LARGE
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> Value:
    return text[start:] if 0 <= start <= len(text) else _out_of_range(start)


def _substring_range(text: str, start: int, end: int) -> Value:
    if start > end:
        return Failure(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        return _out_of_range(start)
    return text[start:end] if end <= len(text) else _out_of_range(end)


def _join(items: list[Value], separator: str = "") -> Value:
    if not all(type(item) is str for item in items):
        return Failure("join: invalid input")
    if sum(map(len, items)) + len(separator) * len(items) > MAX_TEXT:
        return TOO_LARGE
    return separator.join(items)


def _on_strings(test: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def operate(left: Value, right: Value) -> Value:
        return test(left, right) if type(left) is str and type(right) is str else NO_OVERLOAD

    return operate


SINGLETONS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": _on_strings(lambda text, part: part in text),
    "startsWith": _on_strings(str.startswith),
    "endsWith": _on_strings(str.endswith),
}
IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring_range,
    "string_trim": lambda text: text.strip(_SPACE),
    "strings_quote": quoted,
    "list_join": _join,
    "list_join_string": _join,
}
MODERN: Final[Mapping[str, Callable[..., Any]]] = {
    "string_index_of_string_int": _index_from_bounded,
    "string_last_index_of_string_int": _last_index_from_bounded,
}

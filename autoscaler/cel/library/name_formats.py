"""Named string formats (k8s.io/apiserver v0.36.3 library/format.go; apimachinery validation; go-openapi/strfmt)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from autoscaler.cel.common.values import NONE, NamedFormat, OptionalValue, Value
from autoscaler.cel.library.instants import parse_timestamp
from autoscaler.cel.library.urls import request_uri_problem

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)

Validator = Callable[[str], list[str]]


def _text(pattern: str, limit: int, what: str) -> Validator:
    compiled = re.compile(pattern, re.ASCII)

    def validate(text: str) -> list[str]:
        messages = []
        if len(text.encode()) > limit:
            messages.append(f"must be no more than {limit} characters")
        if not compiled.fullmatch(text):
            messages.append(f"{what} (regex used for validation is '{pattern}')")
        return messages

    return validate


_label = _text(_LABEL, 63, "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'")
_subdomain = _text(_SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain must consist of lower case labels joined by '.'")
_label_1035 = _text(_LABEL_1035, 63, "a DNS-1035 label must start with a lower case letter")
_name = _text(_NAME, 63, "name part must consist of alphanumeric characters, '-', '_' or '.'")
_label_value = _text(f"({_NAME})?", 63, "a valid label must be empty or consist of alphanumeric characters")


def _as_prefix(validate: Validator) -> Validator:
    """The validator for a prefix: a generated name adds a suffix to the text, so the text may end with a dash."""
    return lambda text: validate(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _qualified(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return ["a qualified name must consist of a name with an optional DNS subdomain prefix and '/'"]
    if len(parts) == 2 and not parts[0]:
        return ["prefix part must be non-empty"]
    return [*(_subdomain(parts[0]) if len(parts) == 2 else []), *_name(parts[-1])]


def _uri(text: str) -> list[str]:
    problem = request_uri_problem(text)
    return [] if problem is None else [problem]


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and parse_timestamp(text + "T00:00:00Z") is not None


def _is_datetime(text: str) -> bool:
    found = _DATETIME.fullmatch(text)
    return found is not None and _is_date(found[1])


def _test(test: Callable[[str], object], message: str) -> Validator:
    return lambda text: [] if test(text) else [message]


# The size of the regular expression, which determines the cost of validate(), and the test.
_FORMATS: Final[Mapping[str, tuple[int, Validator]]] = {
    "dns1123Label": (30, _label),
    "dns1123Subdomain": (60, _subdomain),
    "dns1035Label": (30, _label_1035),
    "qualifiedName": (60, _qualified),
    "dns1123LabelPrefix": (30, _as_prefix(_label)),
    "dns1123SubdomainPrefix": (60, _as_prefix(_subdomain)),
    "dns1035LabelPrefix": (30, _as_prefix(_label_1035)),
    "labelValue": (40, _label_value),
    "uri": (1104, _uri),
    "uuid": (72, _test(_UUID.fullmatch, "does not match the UUID format")),
    "byte": (84, _test(_BASE64.fullmatch, "invalid base64")),
    "date": (72, _test(_is_date, "invalid date")),
    "datetime": (72, _test(_is_datetime, "invalid datetime")),
}


def _validate(target: NamedFormat, text: str) -> Value:
    messages = _FORMATS[target.name][1](text)
    return OptionalValue(messages) if messages else NONE


def _named(name: str) -> Value:
    return OptionalValue(_values[name]) if name in _values else NONE


_values: Final = {name: NamedFormat(name, regex_size) for name, (regex_size, _) in _FORMATS.items()}


def _constant(name: str) -> Callable[[], NamedFormat]:
    return lambda: _values[name]


IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "format-validate": _validate,
    "format-named": _named,
    **{f"format.{name}": _constant(name) for name in _FORMATS},
}

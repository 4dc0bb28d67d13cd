"""Validates a JSON object as a pydantic model, with every problem phrased like those of the other converters.

pydantic finds the defects; this module turns them into `Problem`s with a field path, the value found and the allowed
ones. Unknown fields are pruned with a warning, as the API server would, and do not make an object unusable.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from autoscaler.kube.custom.schema import PATTERN_STEPS, ApiModel
from autoscaler.kube.fields import describe
from autoscaler.kube.problem import PLACEHOLDER, Problems, unquoted
from instance_catalog.diagnostic import Path
from instance_catalog.spelling import did_you_mean

_LARGEST_KEPT: Final = 65_536  # bytes of an object that is kept with its model
M = TypeVar("M", bound=ApiModel)

_TO_FILL_IN: Final = re.compile(r"<[^<>]+>")  # as a whole value, such as <ZONE>: no object of ours has one
_MAYBE_TO_FILL_IN: Final = re.compile(_TO_FILL_IN.pattern.encode())  # in the bytes of an object


def read(model: type[M], raw: object, problems: Problems, *, path: Path) -> M | None:
    """`raw` as `model`; None if it cannot be used, with the reasons in `problems` below `path`."""
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        problems.error(path, f"expected an object, found {describe(raw)}", "write it as `name: value` lines")
        return None
    known = _read_before(model, raw)
    if known is not None:
        return known
    cleaned = _without_nulls(raw)
    unfilled = dict(_unfilled(cleaned, ()))
    for location, text in unfilled.items():
        problems.error((*path, *location), f"{text!r} is no value", PLACEHOLDER)
    try:
        found = model.model_validate(cleaned)
        return None if unfilled else found
    except ValidationError as error:
        details = [one for one in error.errors(include_url=False) if one["loc"] not in unfilled]
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    for location in unknown:
        problems.unknown_field((*path, *location), _known_fields(model, location[:-1]))
        _remove(cleaned, location)
    if unknown:
        try:
            found = model.model_validate(cleaned)
            return None if unfilled else found
        except ValidationError as error:
            details = [one for one in error.errors(include_url=False) if one["loc"] not in unfilled]
    wrong = {detail["loc"][:-1] for detail in details}
    for detail in details:
        # A tuple with wrong entries is also reported as too short.
        if not (detail["type"] == "too_short" and detail["loc"] in wrong):
            _report(model, detail, problems, path)
    return None


def _read_before(model: type[M], raw: Any) -> M | None:
    """The model of exactly this content, which is frozen; None if it has a problem. The spec of an object is read again
    with each change of its status, and each status at least twice: when it is written, and when the watch shows it."""
    try:
        # Up to version 2 there are no references, so equal texts are equal bytes.
        content = marshal.dumps(raw, 2)
        found: Any = _without_problems(model, content) if len(content) <= _LARGEST_KEPT else None
    except ValueError:  # no JSON, or nested too deep
        return None
    return found if isinstance(found, model) else None


@lru_cache(maxsize=256)
def _without_problems(model: type[ApiModel], content: bytes) -> ApiModel | None:
    cleaned = _without_nulls(marshal.loads(content))
    try:
        found = model.model_validate(cleaned)
    except ValidationError:
        return None
    return None if _MAYBE_TO_FILL_IN.search(content) and any(_unfilled(cleaned, ())) else found


def _report(model: type[BaseModel], detail: ErrorDetails, problems: Problems, path: Path) -> None:
    *parents, last = detail["loc"] or ("",)
    if last == "int":
        return  # the other branch of int-or-string reports the same value
    location = (*path, *parents) if last == "str" else (*path, *detail["loc"])
    context, found = detail.get("ctx", {}), describe(detail["input"])
    match detail["type"]:
        case "missing":
            problems.error(location, "is required", f"add `{last}:` here")
        case "rule":
            field = context["field"]
            problems.error((*location, field) if field else location, context["message"])
        case "literal_error":
            allowed = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            step = did_you_mean(str(detail["input"]), allowed.split(", "))
            problems.error(location, f"{found} is not one of {allowed}", step)
        case "value_error":
            message, _, step = str(context["error"]).partition(": ")
            problems.error(location, message, step)
        case "string_type" if last == "str":
            problems.error(location, f"expected a whole number or a string, found {found}", "put the value in quotes")
        case "string_type":
            problems.error(location, f"expected a string, found {found}", "put the value in quotes")
        case "int_type":
            step = unquoted(detail["input"], "a whole number") or "write it without a fraction"
            problems.error(location, f"expected a whole number, found {found}", step)
        case "string_pattern_mismatch":
            pattern = str(context["pattern"])
            problems.error(location, f"{found} does not match {pattern}", PATTERN_STEPS.get(pattern, ""))
        case "tuple_type":
            problems.error(location, f"expected a list, found {found}", _list_step(model, detail["loc"]))
        case "dict_type" | "model_type":
            problems.error(location, f"expected an object, found {found}", "write it as `name: value` lines")
        case kind:
            problems.error(location, _MESSAGES.get(kind, detail["msg"]).format(**context, found=found))


def _list_step(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """The form of a list, with the fields of its entries if these are objects."""
    fields = [name for name in _known_fields(model, location) if name not in _known_fields(model, location[:-1])]
    return "start each entry with `- `" + (f"; it has the fields {', '.join(sorted(fields))}" if fields else "")


# All other kinds of pydantic errors that these models can produce.
_MESSAGES = {
    "greater_than_equal": "must be {ge} or more, found {found}",
    "less_than_equal": "must be {le} or less, found {found}",
    "string_too_short": "must have {min_length} or more characters, found {found}",
    "string_too_long": "must have {max_length} or fewer characters, found {found}",
    "too_short": "needs {min_length} or more entries, found {actual_length}",
    "too_long": "must have {max_length} or fewer entries, found {actual_length}",
}


def _without_nulls(value: Any) -> Any:
    """A copy without null fields, which the API server treats as absent."""
    if isinstance(value, str):  # as most values
        return value
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(item) for item in value]
    return value


def _unfilled(value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Path and text of values that people have yet to fill in."""
    if isinstance(value, str) and _TO_FILL_IN.fullmatch(value):
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _unfilled(part, (*path, key))


def _remove(value: Any, location: tuple[int | str, ...]) -> None:
    for part in location[:-1]:
        value = value[part]
    del value[location[-1]]


def _known_fields(model: type[BaseModel], location: tuple[int | str, ...]) -> set[str]:
    """The camelCase names of the fields at `location` inside `model`."""
    for part in location:
        if isinstance(part, int):
            continue
        field = next(field for field in model.model_fields.values() if field.alias == part)
        model = _model_in(field.annotation) or model
    return {field.alias or name for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for argument in get_args(annotation) if (found := _model_in(argument))), None)

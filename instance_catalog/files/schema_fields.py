"""The values that the pydantic models of files allow at a path, for messages about other values there.

Must not know files or their defects.
"""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from instance_catalog.diagnostic import Path


def known_fields(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The field names allowed at `path` (which may lead through lists and mappings) below a model."""
    place: Any = model
    for step in path:
        place = _step(place, step)
    entry = _entry_of(place)
    return tuple(str(field.alias) for field in entry.model_fields.values()) if entry else ()


def known_choices(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The values that the field at `path` below a model, or each item of its list, may have; () if they are not few."""
    place: Any = model
    for step in path:
        place = _step(place, step)
    for option in _options(place):
        found = _options(typing.get_args(option)[0])[0] if typing.get_origin(option) is list else option
        if typing.get_origin(found) is Literal:
            return tuple(map(str, typing.get_args(found)))
        if isinstance(found, type) and issubclass(found, Enum):
            return tuple(str(member.value) for member in found)
    return ()


def _step(place: Any, step: str | int) -> Any:
    entry = _entry_of(place)
    if entry is not None:
        return next((f.annotation for f in entry.model_fields.values() if f.alias == step), None)
    for option in _options(place):
        if typing.get_origin(option) in (list, tuple):
            return typing.get_args(option)[0]
        if typing.get_origin(option) is dict:
            return typing.get_args(option)[1]
    return None


def _entry_of(place: Any) -> type[BaseModel] | None:
    found = (option for option in _options(place) if isinstance(option, type) and issubclass(option, BaseModel))
    return next(found, None)


def _options(place: Any) -> tuple[Any, ...]:
    if typing.get_origin(place) is Annotated:
        return _options(typing.get_args(place)[0])
    if typing.get_origin(place) in (types.UnionType, typing.Union):
        return typing.get_args(place)
    return (place,)

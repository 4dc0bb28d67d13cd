"""The three names of every setting (file, environment, flag), with type, default and reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.dataclasses import is_pydantic_dataclass
from pydantic.fields import FieldInfo

from autoscaler.settings.settings import Settings
from autoscaler.settings.spans import span_text
from instance_catalog.dataclass import dataclass

SETTINGS: Final = TypeAdapter(Settings)
_UNITS: Final[Mapping[object, str]] = {
    timedelta: "duration",
    bool: "true|false",
    str: "text",
    tuple[str, ...]: "list",
    Decimal | None: "US dollars",
    int: "number",
    int | None: "number",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its three names, with the text of its documentation."""

    section: str
    field: str
    type: Any
    default: object
    reason: str

    @property
    def key(self) -> str:
        """As in the file: batch.idle."""
        return f"{self.section}.{camel_case(self.field)}"

    @property
    def flag(self) -> str:
        """--batch-idle."""
        return f"--{self.section}-{self.field.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """FORESLICE_BATCH_IDLE."""
        return f"FORESLICE_{self.section}_{self.field}".upper()

    @property
    def unit(self) -> str:
        """The kind of value, as one or two words."""
        if isinstance(self.type, type) and issubclass(self.type, Enum):
            return "|".join(str(member.value) for member in self.type)
        return _UNITS[self.type]

    @property
    def default_text(self) -> str:
        """The default in its written form; "" if there is none."""
        match self.default:
            case timedelta():
                return span_text(self.default)
            case bool():
                return str(self.default).lower()
            case Enum():
                return str(self.default.value)
            case tuple():
                return ",".join(self.default)
            case None:
                return ""
            case _:
                return str(self.default)


@dataclass(frozen=True, slots=True)
class Section:
    """A field of Settings; `owner` declares its settings."""

    name: str
    owner: Any

    @property
    def purpose(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.owner) or "").partition("\n")[0]

    def settings(self) -> Iterator[Setting]:
        """Its settings in the order of declaration."""
        for name, field in _fields(self.owner).items():
            reason = " ".join((field.description or "").split())
            yield Setting(self.name, name, field.annotation, field.get_default(), reason)


def all_settings() -> tuple[Setting, ...]:
    """Every setting, section by section."""
    return tuple(setting for section in SECTIONS for setting in section.settings())


def camel_case(name: str) -> str:
    """renew_deadline → renewDeadline."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _fields(owner: Any) -> dict[str, FieldInfo]:
    assert is_pydantic_dataclass(owner)
    return owner.__pydantic_fields__


SECTIONS: Final = tuple(Section(name, field.annotation) for name, field in _fields(Settings).items())

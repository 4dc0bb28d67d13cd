"""The names of every setting: in the file, in the environment, as a flag; with type, default and reason.

All of it is read off the dataclasses of settings.py, their docstrings included, so that --help and docs/settings.md
say what the code says. Nothing here reads a setting's value; that is settings/load.py.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final, get_type_hints

from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.settings.settings import (
    AwsSettings,
    BatchSettings,
    ClusterSettings,
    DriftSettings,
    LeaseSettings,
    LogSettings,
    LoopSettings,
    PeriodSettings,
    ServeSettings,
    SyncSettings,
    TracingSettings,
)
from autoscaler.settings.spans import span_text

_GUARDS: Final = ("max_usd_per_hour", "max_usd_per_day", "max_launches_per_hour", "buy_unpriced")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its three names, with what its documentation says."""

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
        """What a value is, in a word or two."""
        if isinstance(self.type, type) and issubclass(self.type, Enum):
            return "|".join(str(member.value) for member in self.type)
        return _UNITS[self.type]

    @property
    def default_text(self) -> str:
        """The default as one writes it; "" when there is none."""
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
class Section:
    """A group of settings: the dataclass that declares it, and where in Settings its values belong."""

    name: str
    owner: type
    target: str
    only: tuple[str, ...] = ()
    about: str = ""

    @property
    def purpose(self) -> str:
        """What the section is for: the first line of the dataclass's docstring, unless it is about more than this."""
        return self.about or (inspect.getdoc(self.owner) or "").partition("\n")[0]

    def settings(self) -> Iterator[Setting]:
        """Its settings in the order of declaration."""
        hints, reasons = get_type_hints(self.owner), _attribute_docstrings(self.owner)
        for declared in fields(self.owner):
            if not self.only or declared.name in self.only:
                name = declared.name
                yield Setting(self.name, name, hints[name], _default(declared), reasons[name])


SECTIONS: Final = (
    Section("cluster", ClusterSettings, "cluster"),
    Section("aws", AwsSettings, "aws"),
    Section("loop", LoopSettings, "loop"),
    Section("batch", BatchSettings, "batch"),
    Section(
        "spending",
        Policy,
        "policy",
        only=_GUARDS,
        about="What may be spent, over all pools; each pool has its own limits besides.",
    ),
    Section("work", WorkLimits, "work"),
    Section("drift", DriftSettings, "drift"),
    Section("periods", PeriodSettings, "periods"),
    Section("sync", SyncSettings, "sync"),
    Section("lease", LeaseSettings, "lease"),
    Section("serve", ServeSettings, "serve"),
    Section("log", LogSettings, "log"),
    Section("tracing", TracingSettings, "tracing"),
)


def all_settings() -> tuple[Setting, ...]:
    """Every setting, section by section."""
    return tuple(setting for section in SECTIONS for setting in section.settings())


def camel_case(name: str) -> str:
    """renew_deadline → renewDeadline."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _default(declared: Field[Any]) -> object:
    if declared.default is not MISSING:
        return declared.default
    factory: Callable[[], object] | Any = declared.default_factory
    return factory()


@cache
def _attribute_docstrings(owner: type) -> Mapping[str, str]:
    """The string below each field, which Python itself throws away."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            assert isinstance(statement.target, ast.Name)
            found[statement.target.id] = " ".join(str(after.value.value).split())
    return found

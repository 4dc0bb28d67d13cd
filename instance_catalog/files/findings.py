"""Collects the defects of catalog files: pydantic's errors with the names of the file's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from instance_catalog.diagnostic import Diagnostic, Path
from instance_catalog.files.overlay import Layered
from instance_catalog.files.schema_fields import known_choices, known_fields
from instance_catalog.files.yaml_text import line_of
from instance_catalog.spelling import did_you_mean

M = TypeVar("M", bound=BaseModel)
_KEY_MARK = "[key]"  # the last step of the path of pydantic's error in a mapping's key
# Type of a pydantic error → the expected kind of value.
_KINDS = {
    "bool_type": "true or false",
    "decimal_parsing": "a number",
    "decimal_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list, such as [a, b]",
    "string_type": "text",
}


class CatalogError(ValueError):
    """Catalog files that cannot be used. Nothing of them takes effect; `problems` has every defect."""

    def __init__(self, problems: Sequence[Diagnostic]) -> None:
        self.problems = tuple(
            sorted(problems, key=lambda one: (one.file, one.line, one.subject, one.field, one.message))
        )
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{count} in the instance catalog; nothing was loaded", *map(str, self.problems)]
        super().__init__("\n  ".join(lines))


class Findings:
    """The defects found so far, and the texts that show on which line each is."""

    def __init__(self, problems: Iterable[Diagnostic] = ()) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._problems = list(problems)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        return tuple(self._problems)

    def remember(self, file: str, text: str) -> None:
        """Keeps the text of a file that was read as YAML."""
        self._texts[file] = text

    def remember_line(self, file: str, line: int) -> None:
        """The line to report for something that is no file of its own."""
        self._lines[file] = line

    def line(self, file: str, path: Path) -> int:
        """The line of `path` in a file whose text is remembered, else the line remembered for it, or its first."""
        return line_of(self._texts[file], path) if file in self._texts else self._lines.get(file, 1)

    def add(
        self, file: str, path: Path, *, found: str, allowed: str, entry: str = "", field: Path = (), hint: str = ""
    ) -> None:
        self.add_at(file, self.line(file, path), found=found, allowed=allowed, entry=entry, field=field, hint=hint)

    def add_at(
        self, file: str, line: int, *, found: str, allowed: str, entry: str = "", field: Path = (), hint: str = ""
    ) -> None:
        self._problems.append(Diagnostic(expected(found, allowed), hint, field, entry, file=file, line=line))

    def add_in(self, layers: Layered, path: Path, *, entry: str, found: str, allowed: str, hint: str = "") -> None:
        """A defect of a field of a merged entry, reported where the field was last written."""
        file, place = layers.place(path)
        last = layers.sources[-1].file
        if file != last:
            hint = "; ".join(filter(None, (hint, f"{last} overrides other fields of this entry")))
        line = self.line(file, place)
        parts = tuple(dict.fromkeys(source.file for source in layers.sources))
        self._problems.append(
            Diagnostic(expected(found, allowed), hint, path, entry, file=file, line=line, sources=parts)
        )

    def checked_file(self, model: type[M], value: object, file: str) -> M | None:
        """`value` as `model`; None, with the defects noted, if it is not one."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for detail in error.errors():
                path, found, allowed, hint = _explained(detail, model)
                self.add(file, path, field=path, found=found, allowed=allowed, hint=hint)
            return None

    def checked_entry(self, model: type[M], layers: Layered, entry: str) -> M | None:
        """The merged entry as `model`; None, with the defects noted, if it is not one."""
        try:
            return model.model_validate(layers.merged)
        except ValidationError as error:
            for detail in error.errors():
                path, found, allowed, hint = _explained(detail, model)
                self.add_in(layers, path, entry=entry, found=found, allowed=allowed, hint=hint)
            return None

    def raise_if_any(self) -> None:
        if self._problems:
            raise CatalogError(self._problems)


def expected(found: str, allowed: str) -> str:
    """The message of every defect in a catalog file."""
    return f"found {found}; allowed: {allowed}"


def _explained(detail: ErrorDetails, model: type[BaseModel]) -> tuple[Path, str, str, str]:
    """The path, the value, the allowed values, and a hint."""
    path: Path = tuple(step for step in detail["loc"] if step != _KEY_MARK)
    found = _shown(detail["input"])
    context: Mapping[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            choices = ", ".join(known_choices(model, path))
            return path, "nothing", f"a value; it is required{f', of {choices}' if choices else ''}", ""
        case "extra_forbidden":
            fields = known_fields(model, path[:-1])
            return path, "an unknown field", ", ".join(fields), did_you_mean(str(path[-1]), fields)
        case "literal_error" | "enum":
            allowed = str(context["expected"])
            return path, found, allowed, did_you_mean(str(detail["input"]), allowed.split("'")[1::2])
        case "value_error":
            return path, found, str(context["error"]), ""
        case "string_pattern_mismatch":
            return path, found, f"text like {context['pattern']}", ""
        case "model_type" | "dict_type":
            return path, found, _mapping_at(path), ""
        case _:
            return path, found, _KINDS.get(detail["type"], detail["msg"].removeprefix("Input should be ")), ""


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _mapping_at(path: Path) -> str:
    if path[:1] in (("prices",), ("zonePrices",)):
        return "a mapping (field: value), or a number with pricesAsOf at the top of the file"
    return "a mapping (field: value)"

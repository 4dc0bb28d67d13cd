"""Catalog files that a command writes: checked with all other layers, then replaced in one step, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from autoscaler.catalog_refresh.atomic_write import (
    replace_file as replace_file,  # for the commands that write what was checked here
)
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.findings import CatalogError, expected
from instance_catalog.files.layers import Layer, text_layer
from instance_catalog.files.loader import edited_layers
from instance_catalog.files.merging import catalog_of, origins_of
from instance_catalog.files.yaml_text import line_of
from instance_catalog.kubernetes.profile import REFERENCE


def defects(path: Path, text: str, directories: Sequence[Path]) -> str:
    """The defects of the catalog if `path` had the content `text`; "" if there are none. Expired overlays are checked
    too."""
    try:
        catalog_of(edited_layers(path, text, directory=path.parent, below=directories))
        problems = tuple(selector_problems([text_layer(str(path), str(path.parent), text)]))
    except CatalogError as error:
        problems = error.problems
    return "\n".join(f"  {problem}" for problem in problems)


def without_effect(path: Path, text: str, directories: Sequence[Path], name: str, field: str) -> str:
    """The reason why `field` of the entry `name` in `path`, with the content `text`, would have no effect today; "" if
    it has one."""
    now = SystemClock().now()
    layers = edited_layers(path, text, directory=path.parent, below=directories)
    mine = next(layer for layer in layers if layer.name == str(path))
    if mine.expires is not None and mine.expires <= now:
        return f"it expired at {mine.expires:%Y-%m-%d %H:%M}Z"
    for origin in origins_of(name, layers, now=now):
        if f"{origin.field}.".startswith(f"{field}.") and origin.won.file != str(path):
            return (
                f"{origin.won.file}:{origin.won.line} says {origin.won.value!r} and comes later; change it there, or "
                f"give --priority {origin.won.priority + 1}"
            )
    return ""


def edited(path: Path, text: str, directories: Sequence[Path]) -> str | None:
    """The text that the user saves in an editor, without defects; None if it is unchanged.

    A text with defects can be edited again. Otherwise it is kept in a temporary file, which BadInputError names.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=".yaml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft = Path(name)
    while True:
        try:
            click.edit(filename=name)
        except click.ClickException as error:
            draft.unlink()
            raise BadInputError(
                f"no editor: {error.format_message()}; nothing is changed", next_step="set EDITOR=vim, say"
            ) from error
        found = draft.read_text(encoding="utf-8")
        if found == text:
            draft.unlink()
            return None
        wrong = defects(path, found, directories)
        if not wrong:
            draft.unlink()
            return found
        click.echo(f"not saved, because of\n{wrong}", err=True)
        if not (_is_terminal() and click.confirm("edit again?", default=True, err=True)):
            raise BadInputError(
                f"{path} is as it was; your changes are in {draft}",
                next_step=f"correct them, and copy the file to {path}",
            )


def _is_terminal() -> bool:
    return os.isatty(0) and os.isatty(2)


def selector_problems(layers: Iterable[Layer]) -> Iterator[Diagnostic]:
    """Every selector that does not compile, at its line. Of layers without other defects."""
    for layer, number, driver in _drivers(layers):
        # Few files describe drivers, and CEL is slow to import.
        from autoscaler.cel.checker.environment import View
        from autoscaler.cel.common.outcome import CompileFailure
        from autoscaler.cel.program import compile_selector

        for index, device_class in enumerate(driver.get("deviceClasses", ())):
            for place, selector in enumerate(device_class["selectors"]):
                failure = compile_selector(selector, REFERENCE, view=View.NEW)
                if isinstance(failure, CompileFailure):
                    path = ("deviceClasses", index, "selectors", place)
                    line = line_of(layer.text, ("drivers", number, *path))
                    allowed = "a CEL expression over `device`"
                    entry = f"driver {driver.get('name', '')}"
                    message = expected(failure.message, allowed)
                    yield Diagnostic(message, failure.hint or "", path, entry, file=layer.name, line=line)


def _drivers(layers: Iterable[Layer]) -> Iterator[tuple[Layer, int, dict[str, Any]]]:
    for layer in layers:
        if layer.file is not None and layer.text:
            yield from ((layer, number, driver) for number, driver in enumerate(layer.file.drivers))

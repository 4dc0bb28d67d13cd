"""The CEL selectors of drivers that catalog files describe, which the catalog cannot check: it knows no CEL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from instance_catalog.diagnostic import Diagnostic
from instance_catalog.files.findings import expected
from instance_catalog.files.layers import Layer
from instance_catalog.files.yaml_text import line_of
from instance_catalog.kubernetes.profile import REFERENCE


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
